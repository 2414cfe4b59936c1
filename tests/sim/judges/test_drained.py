from __future__ import annotations

from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import MessageNumber, ReadMark
from nightmail.model.ids import account_id, device_id, log_of
from nightmail.model.words import Lane
from sim.judges.drained import has_untold_reading

ADA, BOB, GROUP = account_id("ada"), account_id("bob"), 1 << 45


def a_store(peer: int, **marks: ReadMark) -> MemoryStore:
    """Of Ada, who has messages of a peer: `n1` is the first."""
    store = MemoryStore()
    for name, mark in marks.items():
        n = int(name[1:])
        by, to = (log_of(peer), peer) if peer == GROUP else (device_id(peer, 1), ADA)
        store.put_numbered(MessageNumber(by, to, Lane.NORMAL, n, f"{n}", mark))
    return store


def test_what_was_read_is_told_unless_it_stands_behind_an_unread_message_of_its_group() -> None:
    unread, reading = ReadMark.UNREAD, ReadMark.READING
    assert not has_untold_reading(a_store(GROUP, n1=unread, n2=reading, n3=unread))
    assert has_untold_reading(a_store(GROUP, n1=reading, n2=unread, n3=reading))
    assert has_untold_reading(a_store(GROUP, n2=reading))
    assert has_untold_reading(a_store(BOB, n1=unread, n2=reading))
    assert not has_untold_reading(a_store(BOB, n1=unread))
