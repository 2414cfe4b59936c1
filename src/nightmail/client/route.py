"""Where to connect next, and when. No sockets here, and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

from nightmail.wire.closing import CloseCode
from nightmail.wire.items import PATH

from .errors import Misused
from .limits import ClientLimits
from .retries import backoff_ms

_SOCKET = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_HTTP = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


class Address(NamedTuple):
    """A server, under both of its doors."""

    socket: str
    http: str

    @classmethod
    def parse(cls, text: str) -> Address:
        parts = urlsplit(text)
        if parts.scheme not in _SOCKET or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise Misused(f"not a server's address (want wss://host:port): {parts.scheme}://{parts.hostname}")
        base = parts.netloc + parts.path.rstrip("/")
        return cls(f"{_SOCKET[parts.scheme]}://{base}{PATH}", f"{_HTTP[parts.scheme]}://{base}")


class Next(NamedTuple):
    address: Address
    in_ms: int


class Route:
    """Several addresses, taken in turn, with waits that grow while none of them is any good."""

    def __init__(self, servers: Sequence[str], limits: ClientLimits, chance: Random) -> None:
        if not servers:
            raise Misused("a client needs at least one server address")
        self._addresses = [Address.parse(server) for server in servers]
        self._limits, self._chance = limits, chance
        self._at = 0
        self._failures = 0
        self._drained = 0

    @property
    def addresses(self) -> list[Address]:
        """All of them, the present one first."""
        return self._addresses[self._at :] + self._addresses[: self._at]

    def ended(self, code: int, retry_ms: int, lasted_ms: int) -> Next:
        """A connection (or an attempt at one) ended in this way after this long."""
        if lasted_ms >= self._limits.settled_ms:
            self._failures = self._drained = 0
        self._at = (self._at + 1) % len(self._addresses)
        if code == CloseCode.DRAINING and self._drained < len(self._addresses):
            # A server that stops says so to send us elsewhere at once; if all do, it is a failure like any other.
            self._drained += 1
            return Next(self._addresses[self._at], retry_ms)
        self._failures += 1
        wait = backoff_ms(self._failures, self._limits, self._chance)
        return Next(self._addresses[self._at], max(retry_ms, wait) if not retry_ms else retry_ms + wait // 10)
