"""HTTP, as uvicorn speaks it, with limits on what one connection and one network may keep.

Knows:   how many HTTP connections each network has.
Touches: one transport; uvicorn does the rest.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .gateway import Gateway

RESERVED_PATHS = frozenset({b"/healthz", b"/readyz", b"/metrics"})
RESERVED = 16
"""Connections beyond the limit that only these paths may use: they are answered at once, whatever else waits."""


class HttpPlaces:
    """HTTP connections by network."""

    def __init__(self, most_of_one: int) -> None:
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()

    def add(self, network: str) -> None:
        self._taken[network] += 1

    def remove(self, network: str) -> None:
        self._taken[network] -= 1
        if not self._taken[network]:
            del self._taken[network]

    def exceeded(self, network: str) -> bool:
        return bool(network) and self._taken[network] > self._most_of_one


class Requests(HttpToolsProtocol):
    """The head of every later request has a time limit, too."""

    def __init__(self, gateway: Gateway, places: HttpPlaces, network: str, *parts: Any) -> None:
        super().__init__(*parts)
        self._shared, self._places, self._network = gateway.shared, places, network
        self._begun: int | None = None
        """When the head began that has not ended yet."""
        self._armed = False

    def connection_made(self, transport: Any) -> None:
        self._places.add(self._network)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.remove(self._network)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = self._shared.pace()

    def on_headers_complete(self) -> None:
        self._begun = None
        if (most := self.config.limit_concurrency) is not None:
            if self.url.partition(b"?")[0] in RESERVED_PATHS:
                self.limit_concurrency = most + RESERVED
            else:
                self.limit_concurrency = 0 if self._places.exceeded(self._network) else most
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arm()

    def _arm(self) -> None:
        if self._begun is not None and not self._armed:
            self._armed = True
            self._shared.wheel.add(self._begun + self._shared.limits.hello_ms, self._look)

    def _look(self, now: int) -> None:
        self._armed = False
        if self._begun is not None and now - self._begun >= self._shared.limits.hello_ms:
            self.transport.abort()
        else:
            self._arm()
