"""Where to connect next, and when. No sockets here, and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

from nightmail.client.errors import Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.retry import reconnect_ms
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import PATH

_SOCKET = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_HTTP = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


class ServerAddress(NamedTuple):
    """A server's address, for WebSocket and for HTTP."""

    socket: str
    http: str

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        parts = urlsplit(text)
        if parts.scheme not in _SOCKET or not parts.hostname or parts.query or parts.fragment or parts.username:
            # An address may hold a password before its host.
            shown = f"{parts.scheme}://{parts.hostname}" if "@" in text else text
            raise Misused(f"not a server's address: {shown}; write it like https://host:port")
        base = parts.netloc + parts.path.rstrip("/")
        return cls(f"{_SOCKET[parts.scheme]}://{base}{PATH}", f"{_HTTP[parts.scheme]}://{base}")


class Next(NamedTuple):
    address: ServerAddress
    in_ms: int


class ServerRoute:
    """Several addresses, taken in turn, with waits that grow while none of them works."""

    def __init__(self, servers: Sequence[str], limits: ClientLimits, chance: Random) -> None:
        if not servers:
            raise Misused("a client needs at least one server address")
        self._addresses = [ServerAddress.parse(server) for server in servers]
        self._limits, self._chance = limits, chance
        self._at = 0
        self._failures = 0
        self._drained = 0

    @property
    def addresses(self) -> list[ServerAddress]:
        """All addresses, the present one first."""
        return self._addresses[self._at :] + self._addresses[: self._at]

    def ended(self, code: int, retry_ms: int, lasted_ms: int) -> Next:
        """A connection, or an attempt at one, ended like this after this long. Where and when to try next."""
        if lasted_ms >= self._limits.settled_ms:
            self._failures = self._drained = 0
        self._at = (self._at + 1) % len(self._addresses)
        if code == CloseCode.DRAINING and self._drained < len(self._addresses):
            # A server that stops sends its clients elsewhere at once. If all servers do, it counts as a failure.
            self._drained += 1
            return Next(self._addresses[self._at], retry_ms)
        self._failures += 1
        wait = reconnect_ms(self._failures, self._limits, self._chance)
        return Next(self._addresses[self._at], max(retry_ms, wait) if not retry_ms else retry_ms + wait // 10)
