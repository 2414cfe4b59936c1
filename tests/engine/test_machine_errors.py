"""What the machine does wrong stops the loop, in words; it never decides what becomes of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from nightmail.core.state import ShardState
from nightmail.core.step import FOLDS
from nightmail.engine.ports import Damaged, EngineError, Failed, Found, Need, Overtaken
from nightmail.model.answers import Accepted
from nightmail.model.records import Sent
from nightmail.model.refusals import Unavailable
from nightmail.model.rows import Kept, RowKey
from tests.engine.rig import PHONE, SELDOM, TABLET, HeldRows, Rig, a_message, restarted, started

MAILBOX = RowKey(Kept.MAILBOX, TABLET)
NO_ROW = b"\xc1 no row begins like this"


def damaged(key: RowKey | None = None) -> tuple[Rig, RowKey, bytes]:
    """A process on rows of which one, a mailbox if no other is named, is not what was written; and what it was."""
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1, life_ms=2_000))
    rig.loop.save(at_once=True)
    key = key or next(key for key in rig.rows.rows if key.kind is Kept.DUE)
    good, rig.rows.rows[key] = rig.rows.rows[key], NO_ROW
    return restarted(rig), key, good


def stays_stopped(rig: Rig, pointer: int, last: int) -> None:
    """Nothing is poisoned, taken, saved or appended, however long it is left running."""
    for _ in range(3):
        rig.wait(60_000)
        rig.loop.save(at_once=True)
    assert (rig.loop.ready, rig.poisoned, rig.rows.pointer, rig.log.last) == (False, [], pointer, last)
    assert rig.answers(rig.say(PHONE, a_message(9))) == [Unavailable()]


def test_a_record_that_meets_a_damaged_row_is_not_judged_and_folds_once_the_row_is_right() -> None:
    rig, _, good = damaged(MAILBOX)
    via = rig.say(PHONE, a_message(2))
    assert isinstance(rig.loop.stopped, Damaged)
    assert str(rig.loop.stopped) == f"the row MAILBOX {TABLET} is stored, but cannot be read"
    stays_stopped(rig, pointer=3, last=4)
    assert rig.answers(via) == []
    rig.rows.rows[MAILBOX] = good
    again = restarted(rig, announce_after=0)
    assert (again.loop.stopped, again.texts()) == (None, ["hello", "hello"])
    assert (type(again.answers(via)[0]), again.loop.state.shard.dead) == (Accepted, 0)


def test_a_damaged_row_that_a_session_looks_at_stops_the_loop_and_not_the_session() -> None:
    rig, _, _ = damaged(MAILBOX)
    assert rig.texts() == []
    assert isinstance(rig.loop.stopped, Damaged)
    stays_stopped(rig, pointer=3, last=3)


def test_a_damaged_row_of_time_stops_the_loop_at_the_first_tick_that_meets_it() -> None:
    rig, key, good = damaged()
    rig.wait(5_000)
    assert str(rig.loop.stopped) == f"the row DUE {key.a} is stored, but cannot be read"
    stays_stopped(rig, pointer=3, last=4)
    rig.rows.rows[key] = good
    again = restarted(rig)
    again.wait(1)
    assert (again.loop.stopped, again.texts(), again.loop.state.shard.dead) == (None, ["gap"], 0)


def test_a_damaged_shard_is_said_at_the_start() -> None:
    rig, _, _ = damaged(RowKey(Kept.SHARD, 0))
    assert str(rig.loop.stopped) == "the row SHARD 0 is stored, but cannot be read"
    assert isinstance(rig.loop.stopped, Damaged)


def test_a_damaged_row_that_comes_late_stops_the_loop_too() -> None:
    rig, _, _ = damaged(MAILBOX)
    rig.rows.holds_loads = True
    rig.say(PHONE, a_message(2))
    while rig.rows.loads:
        rig.rows.answer_load()
    assert isinstance(rig.loop.stopped, Damaged)
    stays_stopped(rig, pointer=3, last=4)


FAULTS = {
    "memory": (MemoryError(), "there is not enough memory to continue"),
    "disk": (OSError(5, "Input/output error"), "the machine failed: [Errno 5] Input/output error"),
    "engine": (EngineError("the rows are gone"), "the rows are gone"),
}


@pytest.mark.parametrize(("fault", "says"), FAULTS.values(), ids=list(FAULTS))
def test_a_machine_that_fails_in_the_middle_of_a_record_does_not_poison_it(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, says: str
) -> None:
    needs, step = FOLDS[1][Sent]

    def falls(state: ShardState, by: int, via: int, sent: Sent) -> None:
        step(state, by, via, sent)
        raise fault

    rig = started(SELDOM)
    with monkeypatch.context() as patch:
        patch.setitem(FOLDS[1], Sent, (needs, falls))  # pyright: ignore[reportArgumentType]
        via = rig.say(PHONE, a_message(1))
    assert (type(rig.loop.stopped), str(rig.loop.stopped)) == (EngineError, says)
    stays_stopped(rig, pointer=0, last=3)
    again = restarted(rig, announce_after=0)
    assert (type(again.answers(via)[0]), again.texts(), again.poisoned) == (Accepted, ["hello"], [])


@pytest.mark.parametrize(("fault", "says"), FAULTS.values(), ids=list(FAULTS))
def test_a_machine_that_fails_while_rows_are_read_stops_the_loop(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, says: str
) -> None:
    def falls(_rows: HeldRows, _needs: Sequence[Need], _done: Callable[[Found | Overtaken | Failed], None]) -> None:
        raise fault

    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    monkeypatch.setattr(HeldRows, "load", falls)
    assert rig.texts() == []
    assert str(rig.loop.stopped) == says


def test_what_raises_in_whoever_asked_for_rows_is_theirs() -> None:
    def falls(_: ShardState) -> None:
        raise OSError("a session's own trouble")

    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    with pytest.raises(OSError, match="own trouble"):
        rig.loop.read(lambda state: () if TABLET in state.mailboxes else (MAILBOX,), falls)
    assert (rig.loop.stopped, rig.loop.ready) == (None, True)
