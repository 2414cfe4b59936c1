"""Entries that cannot be opened yet: parked until the queue is empty, unacknowledged, then judged."""

from __future__ import annotations

import pytest

from nightmail.client.events import QueueEmpty, Unreadable
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Message
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Cursors
from nightmail.e2ee.errors import NotAsAnnounced, Rejected, Undecipherable
from nightmail.e2ee.note import Note
from nightmail.model.records import Acked
from nightmail.model.rows import Entry
from nightmail.model.words import Lane, Reason
from nightmail.wire.items import Drained, Gone
from sim.world.opaque import Opaque
from tests.client.script import TABLET, Script, an_entry, entries

OTHER = TABLET + 1
EMPTY = Drained(0, 0, 0)


class Locked(Opaque):
    """Opens nothing of a device before it has the key."""

    def __init__(self, *devices: int, error: Rejected | None = None) -> None:
        self.locked, self.error = set(devices), error or Undecipherable()

    def open(self, entry: Entry) -> Note:
        if entry.by in self.locked:
            raise self.error
        return super().open(entry)


def connected(sealer: Locked, limits: ClientLimits | None = None, store: MemoryStore | None = None) -> Script:
    script = Script(sealer=sealer, limits=limits, store=store)
    script.connect()
    return script


def shown(script: Script) -> list[bytes]:
    return [message.body for message in script.told(Message)]


def acks(script: Script) -> list[Acked]:
    script.wait(5)
    return [body for body in script.bodies() if isinstance(body, Acked)]


def test_what_cannot_be_opened_is_neither_acknowledged_nor_given_up_before_the_queue_is_empty() -> None:
    sealer = Locked(TABLET)
    script = connected(sealer)
    script.say(entries(1, an_entry(1, by=OTHER), an_entry(2), an_entry(3, by=OTHER)))
    assert acks(script) == [Acked(Lane.NORMAL, 1)]
    assert shown(script) == [b"body 1", b"body 3"]
    sealer.locked.clear()
    script.say(EMPTY)
    assert acks(script) == [Acked(Lane.NORMAL, 3)]
    assert shown(script) == [b"body 1", b"body 3", b"body 2"]
    assert script.told(Unreadable) == []


def test_what_still_does_not_open_when_the_queue_is_empty_is_told_as_unreadable_once() -> None:
    script = connected(Locked(TABLET))
    script.say(entries(1, an_entry(1)))
    assert (acks(script), script.told(Unreadable)) == ([], [])
    script.say(EMPTY)
    assert acks(script) == [Acked(Lane.NORMAL, 1, (1,))]
    (unreadable,) = script.told(Unreadable)
    assert unreadable.message_id == an_entry(1).id
    kinds = [type(event) for event in script.events if isinstance(event, Unreadable | QueueEmpty)]
    assert kinds == [Unreadable, QueueEmpty]


def test_an_authors_entries_stay_in_order_behind_one_that_is_parked() -> None:
    sealer = Locked(TABLET)
    script = connected(sealer)
    script.say(entries(1, an_entry(1)))
    sealer.locked.clear()
    script.say(entries(2, an_entry(2), an_entry(3)))
    assert shown(script) == []
    script.say(EMPTY)
    assert shown(script) == [b"body 1", b"body 2", b"body 3"]


def test_the_high_lane_is_judged_first() -> None:
    sealer = Locked(TABLET, OTHER)
    script = connected(sealer)
    script.say(entries(1, an_entry(1)), entries(1, an_entry(2, by=OTHER), lane=Lane.HIGH))
    sealer.locked.clear()
    script.say(EMPTY)
    assert shown(script) == [b"body 2", b"body 1"]


def test_after_the_queue_was_empty_nothing_is_parked_until_the_next_connection() -> None:
    script = connected(Locked(TABLET))
    script.say(EMPTY, entries(1, an_entry(1)))
    assert acks(script) == [Acked(Lane.NORMAL, 1, (1,))]
    script.lose()
    script.connect()
    script.say(entries(2, an_entry(2)))
    assert acks(script) == [Acked(Lane.NORMAL, 1, (1,))]
    assert [event.message_id for event in script.told(Unreadable)] == [an_entry(1).id]


def test_what_is_not_as_announced_is_not_parked() -> None:
    script = connected(Locked(TABLET, error=NotAsAnnounced("kind")))
    script.say(entries(1, an_entry(1)))
    assert acks(script) == [Acked(Lane.NORMAL, 1, (1,))]


def test_a_restart_loses_nothing_that_is_parked_and_acknowledges_nothing_of_it() -> None:
    first = connected(Locked(TABLET))
    first.say(entries(1, an_entry(1), an_entry(2)))
    first.turn()
    first.store.crash()
    script = connected(Locked(), store=first.store)
    assert script.hello is not None
    assert (script.hello.normal, acks(script), shown(script)) == (2, [], [])
    script.say(EMPTY)
    assert shown(script) == [b"body 1", b"body 2"]
    assert acks(script) == [Acked(Lane.NORMAL, 2)]
    assert script.store.errands("parked ") == []


def test_parking_and_the_cursor_are_in_one_transaction() -> None:
    script = connected(Locked(TABLET))
    script.say(entries(1, an_entry(1)))
    script.store.crash()
    assert (script.store.cursors(), script.store.errands("parked ")) == (Cursors(), [])


@pytest.mark.parametrize(
    "limits", [ClientLimits(parked_entries=3), ClientLimits(parked_bytes=3 * len(b"body 1"))], ids=["entries", "bytes"]
)
def test_they_are_judged_early_when_much_was_handed_out_since_the_first(limits: ClientLimits) -> None:
    script = connected(Locked(TABLET), limits)
    script.say(entries(1, an_entry(1)), entries(2, an_entry(2, by=OTHER)))
    assert acks(script) == []
    script.say(entries(1, an_entry(3, by=OTHER), lane=Lane.HIGH))
    assert acks(script) == [Acked(Lane.NORMAL, 2, (1,)), Acked(Lane.HIGH, 1)]


def test_numbers_that_are_gone_count_because_they_use_up_credit() -> None:
    script = connected(Locked(TABLET))
    script.say(entries(1, an_entry(1)), Gone(Lane.NORMAL, 2, 500, Reason.EXPIRED))
    assert acks(script) == [Acked(Lane.NORMAL, 500, (1,))]


def test_they_are_judged_when_nothing_more_comes() -> None:
    script = connected(Locked(TABLET))
    script.say(entries(1, an_entry(1)))
    script.wait(script.limits.parked_ms - 1)
    assert script.bodies() == []
    script.wait(1)
    assert acks(script) == [Acked(Lane.NORMAL, 1, (1,))]
