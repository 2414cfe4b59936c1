"""Every store, and what is left of it after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightmail.client.messages import Message
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.port import Store
from nightmail.client.store.sqlite import SqliteStore
from nightmail.model.ids import account_id, device_id

ALICE, BOB = account_id("alice"), account_id("bob")
KEY = bytes(range(32))
PHONE, TABLET = device_id(ALICE, 1), device_id(BOB, 1)


class Kept:
    """A store, and what is left of it after a crash."""

    def __init__(self, store: Store, crash: Callable[[Store], Store]) -> None:
        self.store, self._crash = store, crash

    def crash(self) -> Store:
        self.store = self._crash(self.store)
        return self.store


@pytest.fixture(params=["memory", "sqlite"], name="kept")
def kept_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    if request.param == "memory":
        memory = MemoryStore()

        def drop(_: Store) -> Store:
            memory.crash()
            return memory

        yield Kept(memory, drop)
        return

    def reopen(store: Store) -> Store:
        store.close()
        return SqliteStore(tmp_path, KEY)

    place = Kept(SqliteStore(tmp_path, KEY), reopen)
    yield place
    place.store.close()


def a_message(number: int = 1, *, at: int = 0, by: int = PHONE, peer: int = BOB) -> Message:
    return Message(
        id=f"{by:x}:{1_000 + number}:{number:05d}:abcd", peer=peer, by=by, own=True, at=at, body=b"body %d" % number
    )
