"""Where the stories of metrics happen: a real node, two people, and what its metrics say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from nightmail.model.records import (
    SaidByDevices,
)
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import (
    PATH,
    SUBPROTOCOL,
    VERSION,
    Ask,
    Hello,
)
from tests.server.rig import WAIT_S, Person, Town

SCRAPES_MAX = 100_000
"""More than any story takes. What has not moved by then does not move."""


class Stage(NamedTuple):
    """Where a story happens."""

    town: Town
    ada: Person
    bob: Person
    patch: pytest.MonkeyPatch
    until_read: ExitStack
    """Closed after the metrics were read."""

    @contextmanager
    def opened(self) -> Generator[ClientConnection]:
        """A WebSocket that says nothing."""
        with connect(f"ws://127.0.0.1:{self.town.port}{PATH}", subprotocols=[SUBPROTOCOL]) as opened:  # type: ignore[list-item]
            yield opened

    @contextmanager
    def online(self, who: Person) -> Generator[ClientConnection]:
        with self.opened() as opened:
            opened.send(encode([Hello(VERSION, who.device, who.token, 0, 0, 0)]))
            opened.recv(WAIT_S)
            yield opened

    def stays(self, who: Person) -> ClientConnection:
        return self.until_read.enter_context(self.online(who))


def ask(opened: ClientConnection, *bodies: SaidByDevices) -> None:
    """Say everything in one frame, and wait for the answers."""
    opened.send(encode([Ask(ref, body) for ref, body in enumerate(bodies, 1)]))
    waiting = len(bodies)
    while waiting:
        data = opened.recv(WAIT_S)
        assert isinstance(data, bytes)
        waiting -= sum(type(item).__name__ == "Answered" for item in decode_from_server(data))


def received(opened: ClientConnection) -> bytes:
    data = opened.recv(WAIT_S)
    assert isinstance(data, bytes)
    return data


def wait_for_end(opened: ClientConnection) -> None:
    with suppress(ConnectionClosed):
        while True:
            opened.recv(WAIT_S)


def scraped(town: Town) -> dict[str, dict[str, float]]:
    """Metric → its samples."""
    text = town.run(town.node.metrics.scrape).decode()
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: {
            f"{sample.name}{sample.labels}": sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(text)
    }
