"""The one port: reads the head of a connection's first request and decides who takes the connection.

Knows:   where a head ends; `handshake.py` reads it.
Touches: the transport, until a WebSocket or the HTTP server takes it over.
Never:   reads more than a head from an unknown peer, or waits longer for it than `hello_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from nightmail.wire.items import PATH
from nightmail.wire.networks import network

from .gateway import Gateway
from .handshake import HttpRefusal, answer_handshake, path_of
from .proxies import Proxies
from .requests import HttpPlaces, Requests
from .websocket import WebSocket, WebSocketRules

END = b"\r\n\r\n"
EMPTY = bytearray()
"""Nothing is ever added to it."""
UNREAD_BYTES = 262_144
"""What a refused peer still sends is read up to here, so that it reads the reason; the rest waits in its socket."""
TOO_LARGE = HttpRefusal("431 Request Header Fields Too Large")

Handler = Callable[[str], asyncio.Protocol]
"""Builds the HTTP side of a connection from a network."""


class Door(asyncio.Protocol):
    """Holds a connection for its first few hundred bytes."""

    __slots__ = ("_decided", "_gateway", "_head", "_http", "_left", "_network", "_proxies", "_rules", "_transport")

    def __init__(self, gateway: Gateway, http: Handler, proxies: Proxies, rules: WebSocketRules) -> None:
        self._gateway, self._http, self._proxies, self._rules = gateway, http, proxies, rules
        self._head = bytearray()
        """`EMPTY` once it is no longer wanted."""
        self._decided = False
        """Its head has arrived whole, or was refused."""
        self._left = UNREAD_BYTES
        """How much is still read for nothing, once it is refused."""
        self._network = ""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name.
        # Whom a trusted proxy speaks for is in the head.
        peer = _peer(transport)
        self._network = network("" if self._proxies.trusts(peer) else peer)
        self._gateway.admission.add_caller(self, self._network)

    def data_received(self, data: bytes) -> None:
        head, bytes_max = self._head, self._gateway.shared.limits.hello_bytes
        if self._decided:
            self._take_early(data, bytes_max)
            return
        head += data
        end = head.find(END)
        if end < 0:
            if len(head) > bytes_max:
                self._refuse(TOO_LARGE)
        elif end > bytes_max:
            self._refuse(TOO_LARGE)
        else:
            self._decided = True
            self._gateway.turns.look(lambda: self._decide(end), self._network)

    def _take_early(self, data: bytes, bytes_max: int) -> None:
        """Sent before its turn came, or after it was refused: only so much of it is read."""
        if self._head is EMPTY:
            self._left -= len(data)
            enough = self._left < 0
        else:
            self._head += data
            enough = len(self._head) > bytes_max
        if enough and self._transport is not None:
            self._transport.pause_reading()

    def _decide(self, end: int) -> None:
        """Who takes the connection, now that its first request has a head and it is its turn."""
        gateway, transport = self._gateway, self._transport
        if transport is None:
            return
        address = self._proxies.client(_peer(transport), bytes(self._head[:end]))
        if path_of(self._head) != PATH.encode():
            if wait_ms := gateway.admission.request_wait_ms(address):
                self._refuse(HttpRefusal("429 Too Many Requests", _retry_after(wait_ms)))
            else:
                transport.pause_reading()
                near = network(address)
                gateway.turns.request(lambda: self._hand_over(near), near)
        elif wait_ms := gateway.admit(address):
            self._refuse(HttpRefusal("503 Service Unavailable", _retry_after(wait_ms)))
        else:
            gateway.greet(lambda: self._upgrade(end, address), network(address))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def turn_away(self) -> None:
        """Drop the connection without an answer: to make room, or because it is too late."""
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        """The connection was taken over, or is gone."""
        self._transport = None
        self._head = EMPTY
        self._gateway.admission.remove_caller(self)

    def _hand_over(self, network: str) -> None:
        """Give the connection to the HTTP server, when it is this request's turn."""
        transport, head = self._transport, bytes(self._head)
        if transport is None:
            return
        self._leave()
        protocol = self._http(network)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        transport.resume_reading()
        protocol.data_received(head)

    def _upgrade(self, end: int, address: str) -> None:
        """Answer the handshake, when it is this newcomer's turn."""
        transport, gateway = self._transport, self._gateway
        if transport is None:
            return
        head, rest = bytes(self._head[:end]), bytes(self._head[end + len(END) :])
        answer = answer_handshake(head)
        if isinstance(answer, HttpRefusal):
            self._refuse(answer)
            return
        self._leave()
        websocket = WebSocket(self._rules)
        transport.set_protocol(websocket)
        transport.resume_reading()
        transport.write(answer)
        websocket.begin(transport, gateway.open(websocket, address))
        if rest:
            websocket.take(memoryview(rest))

    def _refuse(self, refusal: HttpRefusal) -> None:
        status, headers = refusal
        transport, self._decided, self._head = self._transport, True, EMPTY
        assert transport is not None
        self._gateway.admission.refuse_caller(self)
        transport.write(f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
        if transport.can_write_eof():
            # close() with unread bytes would reset the connection, and the peer might never read the reason.
            transport.write_eof()
        else:
            transport.close()


def _peer(transport: asyncio.BaseTransport) -> str:
    name: object = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else ""  # pyright: ignore[reportUnknownArgumentType]


def _retry_after(wait_ms: int) -> str:
    return f"Retry-After: {-(-wait_ms // 1000)}\r\n"


DoorFactory = Callable[[Config, ServerState, dict[str, Any], asyncio.AbstractEventLoop], Callable[[], Door]]


def door(gateway: Gateway, proxies: Proxies, places: HttpPlaces) -> DoorFactory:
    """Takes what uvicorn's HTTP protocol wants, once, and then makes a door for each connection."""
    rules = WebSocketRules(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)

    def open_up(
        config: Config, state: ServerState, app_state: dict[str, Any], loop: asyncio.AbstractEventLoop
    ) -> Callable[[], Door]:
        def http(network: str) -> asyncio.Protocol:
            return Requests(gateway, places, network, config, state, app_state, loop)

        return lambda: Door(gateway, http, proxies, rules)

    return open_up
