"""What a door reads of a connection while its turn has not come, and after it was refused."""

from __future__ import annotations

import asyncio
from typing import Any

from nightmail.gateway.door import UNREAD_BYTES, Door
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.proxies import Proxies
from nightmail.gateway.turns import HEADS_AT_ONCE
from nightmail.gateway.websocket import WebSocketRules
from tests.gateway.rig import Town, a_town

POST = b"POST /v1/accounts HTTP/1.1\r\nHost: here\r\nContent-Length: 60000\r\n\r\n"


class Socket(asyncio.Transport):
    """Remembers what was written, and delivers only to a peer that is read from."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 4_321)})
        self.written = b""
        self.reading = True
        self.protocol: asyncio.BaseProtocol | None = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def abort(self) -> None: ...


class Http(asyncio.Protocol):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.got = b""

    def data_received(self, data: bytes) -> None:
        self.got += data


def a_door(town: Town, http: Http, address: str = "192.0.2.1") -> tuple[Door, Socket]:
    gateway = town.gateway
    rules = WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)
    door, socket = Door(gateway, lambda _: http, Proxies(""), rules), Socket(address)
    door.connection_made(socket)
    return door, socket


def test_a_body_that_comes_before_its_turn_arrives_whole_and_only_some_of_it_is_read_until_then() -> None:
    town, http = a_town(), Http()
    door, socket = a_door(town, http)
    body = bytes(range(256)) * 20
    door.data_received(POST + body[:100])
    door.data_received(body[100:])
    assert (socket.reading, http.got) == (False, b"")
    town.turn()
    assert (socket.reading, http.got, socket.protocol) == (True, POST + body, http)


def test_one_turn_looks_at_so_many_first_requests_however_many_are_there() -> None:
    town = a_town(GatewayLimits(address_requests_burst=1))
    doors = [a_door(town, Http(), f"192.0.2.{number % 2}") for number in range(200)]
    for door, _ in doors:
        door.data_received(POST)
    refused = list[int]()
    for _ in range(3):
        town.turn_once()
        refused.append(sum(socket.written.startswith(b"HTTP/1.1 429 ") for _, socket in doors))
    # Each network may ask once.
    assert refused == [HEADS_AT_ONCE * turns - 2 for turns in (1, 2, 3)]


def test_a_refused_peer_that_goes_on_sending_is_no_longer_read_from() -> None:
    town = a_town(GatewayLimits(address_requests_burst=1))
    (first, _), (door, socket) = a_door(town, Http()), a_door(town, Http())
    for each in (first, door):
        each.data_received(POST)
        town.turn()
    assert socket.written.startswith(b"HTTP/1.1 429 ")
    for _ in range(UNREAD_BYTES // 65_536):
        door.data_received(bytes(65_536))
        assert socket.reading
    door.data_received(b"1")
    assert not socket.reading


def test_a_connection_that_left_before_its_turn_is_not_looked_at() -> None:
    town, http = a_town(), Http()
    door, socket = a_door(town, http)
    door.data_received(POST)
    door.connection_lost(None)
    town.turn()
    assert (http.got, socket.written, socket.protocol) == (b"", b"", None)
