"""A record that the fold cannot take: it alone is set aside, and everything else goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nightmail.core.letters import burying
from nightmail.core.receipts import needs_receipts, receipts_after
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.core.step import FOLDS
from nightmail.engine.forwarder import Forwarder
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Failed
from nightmail.engine.saver import SaverLimits
from nightmail.model.answers import Accepted, Done
from nightmail.model.effects import Answer, Grew
from nightmail.model.ids import SERVER, account_id, device_id, shard_of
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Acked, Forwarded, Receipted, Record, Sent, Ticked, decode_record, encode_record
from nightmail.model.refusals import DeadLettered, OutOfOrder, Unavailable
from nightmail.model.rows import Kept, Need, RowKey
from nightmail.model.words import Lane
from sim.judges.strict import StrictState
from tests.engine.rig import BOB, PHONE, START, TABLET, HeldRows, Rig, a_message, a_person, restarted, started

NORMAL = Lane.NORMAL
SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
CAROL = account_id("carol")
CAROLS = device_id(CAROL, 1)


def raised(limits: LoopLimits) -> Rig:
    """As `started`, and raised to the newest fold."""
    rig = started(limits)
    while not rig.loop.adopt(NEWEST_FOLD, FoldLimits()):
        pass
    return rig


class Mistake(Exception):
    """Ours."""


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that says poison is half applied when the fold falls over it."""
    needs, step = FOLDS[1][Sent]

    def stumble(state: ShardState, by: int, via: int, sent: Sent) -> None:
        step(state, by, via, sent)
        if sent.tag.startswith(b"poison"):
            raise Mistake("planted")

    for fold in FOLDS.values():
        monkeypatch.setitem(fold, Sent, (needs, stumble))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def poisoned_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carol's receipts cannot be taken."""
    needs, step = FOLDS[1][Receipted]

    def stumble(state: ShardState, by: int, via: int, receipt: Receipted) -> None:
        step(state, by, via, receipt)
        if receipt.by == CAROLS:
            raise Mistake("planted")

    for fold in FOLDS.values():
        monkeypatch.setitem(fold, Receipted, (needs, stumble))  # pyright: ignore[reportArgumentType]


def heard(rig: Rig, device: int) -> list[list[int]]:
    found: list[list[int]] = []
    rig.loop.read(
        lambda state: needs_receipts(state, device),
        lambda state: found.extend(change.numbers for change in receipts_after(state, device, 0, 100)),
    )
    return found


def three_messages(rig: Rig) -> list[int]:
    """One batch, whose second record is poison. From two people, so that nothing is out of order."""
    rig.say(SERVER, a_person("carol"))
    rig.effects.clear()
    vias = [
        rig.submit(PHONE, a_message(1, text="before")),
        rig.submit(CAROLS, a_message(1, text="poison", by=CAROLS)),
        rig.submit(PHONE, a_message(2, text="behind")),
    ]
    rig.loop.flush()
    return vias


@pytest.mark.usefixtures("poison")
def test_poison_is_set_aside_and_the_rest_of_its_batch_is_applied_once() -> None:
    rig = started(SELDOM)
    before, dead, behind = three_messages(rig)
    assert (rig.effects, rig.loop.ready, rig.poisoned) == ([], False, [(5, "planted")])
    rig.wait(1)
    assert rig.effects == [
        Grew(TABLET, NORMAL),
        Answer(before, Accepted(a_message(1).id, b"before".ljust(16, b"."), START, 1)),
        Answer(dead, DeadLettered()),
        Grew(TABLET, NORMAL),
        Answer(behind, Accepted(a_message(2).id, b"behind".ljust(16, b"."), START + 1, 1)),
    ]
    assert (rig.texts(), rig.loop.ready) == (["before", "behind"], True)
    record = encode_record(Record(CAROLS, dead, a_message(1, text="poison", by=CAROLS)))
    assert rig.letter(5) == DeadLetter(record, ["Mistake in Sent"], START)
    assert rig.loop.state.shard.dead == 1


@pytest.mark.usefixtures("poison")
def test_nothing_that_was_announced_before_the_poison_is_announced_again() -> None:
    rig = started(SELDOM)
    first = rig.say(PHONE, a_message(1))
    dead = rig.say(PHONE, a_message(2, text="poison"))
    rig.wait(1)
    assert len(rig.answers(first)) == 1
    assert rig.effects[2:] == [Answer(dead, DeadLettered())]


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("saved", [False, True], ids=["replayed", "from a checkpoint"])
def test_poison_is_dead_after_a_restart_as_it_was_before(saved: bool) -> None:
    rig = started(SELDOM)
    three_messages(rig)
    rig.wait(1)
    if saved:
        rig.loop.save(at_once=True)
    again = restarted(rig)
    again.wait(1)
    assert (again.loop.ready, again.effects, again.texts()) == (True, [], ["before", "behind"])
    assert again.everything() == rig.everything()
    assert again.poisoned == ([] if saved else [(5, "planted")])


@pytest.mark.usefixtures("poison")
def test_it_is_rebuilt_from_the_checkpoint_and_not_from_the_half_changed_state() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1, text="saved"))
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message(2, text="logged"))
    rig.say(PHONE, a_message(3, text="poison"))
    rig.wait(1)
    assert rig.texts() == ["saved", "logged"]
    assert rig.answers(rig.say(PHONE, a_message(4))) == [OutOfOrder(3)]  # the dead one left no trace in its stream


@pytest.mark.usefixtures("poison")
def test_between_the_poison_and_the_rebuilding_nothing_is_taken_saved_or_shown() -> None:
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.holds_loads, shown = True, list[ShardState]()
    rig.loop.read(lambda s: [] if CAROL in s.accounts else [RowKey(Kept.ACCOUNT, CAROL)], shown.append)
    rig.say(PHONE, a_message(1, text="poison"))
    rig.rows.holds_loads = False
    mine, folds = rig.rows.loads.popleft(), rig.rows.loads.popleft()
    rig.rows.loads.append(folds)
    while rig.rows.loads:
        rig.rows.answer_load()
    assert rig.poisoned == [(3, "planted")]
    rig.rows.loads.append(mine)
    rig.rows.answer_load()
    rig.loop.save(at_once=True)
    assert (shown, rig.texts(), rig.rows.pointer) == ([], [], 2)
    assert rig.answers(rig.say(PHONE, a_message(1))) == [Unavailable()]
    rig.wait(1)
    assert (rig.texts(), rig.rows.pointer) == ([], 2)


@pytest.mark.usefixtures("poison")
def test_poison_that_is_met_while_a_save_is_under_way_waits_for_it() -> None:
    rig = started(SELDOM)
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    dead = rig.say(PHONE, a_message(1, text="poison"))
    rig.wait(1)
    assert (rig.loop.ready, rig.answers(dead)) == (False, [])
    rig.rows.answer_save()
    rig.wait(1)
    assert (rig.loop.ready, rig.answers(dead), rig.rows.pointer) == (True, [DeadLettered()], 2)


@pytest.mark.usefixtures("poison")
def test_a_checkpoint_that_had_failed_is_taken_anew_after_the_rebuilding() -> None:
    rig = started(SELDOM)
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.rows.answer_save(Failed("no"))
    rig.say(PHONE, a_message(1, text="poison"))
    rig.wait(1)
    rig.rows.holds_saves = False
    rig.wait(100)
    rig.loop.save(at_once=True)
    assert [checkpoint.upto for checkpoint in rig.saved] == [3]
    assert restarted(rig).everything() == rig.everything()


@pytest.mark.usefixtures("poison")
def test_several_poisoned_records_are_each_set_aside() -> None:
    rig = started(SELDOM)
    for handle in ("carol", "dave"):
        rig.say(SERVER, a_person(handle))
    by = [PHONE, CAROLS, device_id(account_id("dave"), 1)]
    vias = [rig.submit(device, a_message(1, text="poison", by=device)) for device in by]
    good = rig.submit(TABLET, a_message(1, by=TABLET, to=account_id("alice")))
    rig.loop.flush()
    for _ in range(3):
        rig.wait(1)
    assert [rig.answers(via) for via in vias] == [[DeadLettered()]] * 3
    assert isinstance(rig.answers(good)[0], Accepted)
    assert (rig.loop.state.shard.dead, rig.texts(), rig.texts(PHONE)) == (3, [], ["hello"])


@pytest.mark.usefixtures("poison")
def test_poison_slows_down_what_follows_only_until_the_next_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    needs, step = FOLDS[1][Sent]
    asked: list[int] = []

    def noted(state: ShardState, by: int, sent: Any) -> Sequence[Need]:
        asked.append(sent.n)
        return needs(state, by, sent)

    monkeypatch.setitem(FOLDS[1], Sent, (noted, step))  # pyright: ignore[reportArgumentType]
    rig = Rig(limits=SELDOM, new_state=ShardState)
    rig.loop.recover()
    for handle in ("alice", "bob", "carol"):
        rig.say(SERVER, a_person(handle))
    rig.say(CAROLS, a_message(1, text="poison", by=CAROLS))
    rig.wait(1)
    for n in (1, 2):
        rig.say(PHONE, a_message(n))
    assert asked[-1] == 2, "a record that may be poisoned is asked for its needs first"
    rig.loop.save(at_once=True)
    asked.clear()
    for n in (3, 4, 5):
        rig.say(PHONE, a_message(n))
    assert asked == [3], "the first one finds out that nothing is poisoned any more"
    assert (rig.texts(), rig.loop.state.shard.dead) == (["hello"] * 5, 1)


@pytest.mark.usefixtures("poison")
def test_the_sender_can_go_on_with_the_same_number() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1, text="poison"))
    rig.wait(1)
    assert isinstance(rig.answers(rig.say(PHONE, a_message(1, text="better")))[0], Accepted)
    assert rig.texts() == ["better"]


@pytest.mark.usefixtures("poisoned_receipts")
def test_poison_that_follows_from_a_record_kills_neither_it_nor_what_else_follows() -> None:
    rig = started(SELDOM)
    rig.say(SERVER, a_person("carol"))
    rig.say(CAROLS, a_message(1, by=CAROLS))
    rig.say(PHONE, a_message(1))
    acked = rig.say(TABLET, Acked(NORMAL, 2))
    rig.wait(1)
    assert (rig.answers(acked), rig.texts()) == ([Done()], [])
    assert (heard(rig, PHONE), heard(rig, CAROLS)) == ([[1, 1]], [])
    record = encode_record(Record(TABLET, acked, Acked(NORMAL, 2)))
    assert rig.letter(6) == DeadLetter(record, ["Mistake in Receipted"], START)
    again = restarted(rig)
    again.wait(1)
    assert again.everything() == rig.everything()


@pytest.mark.usefixtures("poison")
def test_what_its_batch_told_other_shards_is_told_once() -> None:
    shards, told = 4, list[object]()
    here = shard_of(BOB, shards)

    def append(_shard: int, records: Sequence[bytes], done: Callable[[bool], None]) -> None:
        told.extend(decode_record(data).body for data in records)
        done(True)

    rows = HeldRows()
    rig = Rig(rows=rows, forwarder=Forwarder(here, append, rows), new_state=lambda: StrictState(here, shards))
    rig.loop.recover()
    rig.say(SERVER, a_person("bob"))
    rig.say(PHONE, a_message(1))
    rig.submit(TABLET, Acked(NORMAL, 1))
    rig.submit(PHONE, a_message(2, text="poison"))
    rig.loop.flush()
    for _ in range(3):
        rig.wait(1)
    assert [body.k for body in told if isinstance(body, Forwarded)] == [1]


# --- since fold 2 a message that is buried stays sent -----------------------------------------


@pytest.mark.usefixtures("poison")
def test_a_buried_message_is_answered_sent_and_consumes_its_number() -> None:
    rig = raised(SELDOM)
    dead = rig.say(PHONE, a_message(1, text="poison"))
    rig.wait(1)
    accepted = Accepted(a_message(1).id, b"poison".ljust(16, b"."), START, 1)
    assert rig.answers(dead) == [accepted]
    assert rig.answers(rig.say(PHONE, a_message(1, text="poison"))) == [accepted]
    assert isinstance(rig.answers(rig.say(PHONE, a_message(2, text="behind")))[0], Accepted)
    assert (rig.texts(), rig.loop.state.shard.dead) == (["behind"], 1)


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("saved", [False, True], ids=["replayed", "from a checkpoint"])
def test_it_is_buried_alike_after_a_restart(saved: bool) -> None:
    rig = raised(SELDOM)
    rig.say(PHONE, a_message(1, text="poison"))
    rig.wait(1)
    rig.say(PHONE, a_message(2, text="behind"))
    if saved:
        rig.loop.save(at_once=True)
    again = restarted(rig)
    again.wait(1)
    assert again.everything() == rig.everything()


@pytest.mark.usefixtures("poison")
def test_a_message_whose_burial_raises_too_is_buried_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> int:
        raise Mistake("again")

    monkeypatch.setattr(burying, "take_number", stumble)
    rig = raised(SELDOM)
    dead = rig.say(PHONE, a_message(1, text="poison"))
    for _ in range(3):
        rig.wait(1)
    assert rig.answers(dead) == [DeadLettered()]
    assert [error for _, error in rig.poisoned] == ["planted", "again"]
    letter = rig.letter(rig.loop.state.offset)
    assert letter is not None
    assert letter.errors == ["Mistake in Sent"]
    assert isinstance(rig.answers(rig.say(PHONE, a_message(1, text="better")))[0], Accepted)


# --- time -------------------------------------------------------------------------------------


@pytest.fixture
def poisoned_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due two seconds after the start cannot be taken."""
    needs, step = FOLDS[1][Ticked]

    def stumble(state: ShardState, by: int, via: int, ticked: Ticked) -> None:
        cursed = state.shard.next_due == START // 1000 + 2
        step(state, by, via, ticked)
        if cursed and state.derived:
            raise Mistake("planted")

    monkeypatch.setitem(FOLDS[1], Ticked, (needs, stumble))  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("poisoned_second")
@pytest.mark.parametrize("saved", [False, True], ids=["in memory", "only in the store"])
def test_a_dead_tick_leaves_its_slot_behind_and_time_goes_on(saved: bool) -> None:
    rig = started(SELDOM)
    for n, life_ms in ((1, 2_000), (2, 3_000)):
        rig.say(PHONE, a_message(n, text=f"for {life_ms} ms", life_ms=life_ms))
    if saved:
        rig.loop.save(at_once=True)
        rig = restarted(rig)
    for _ in range(40):
        rig.wait(100)
    assert [offset for offset, _ in rig.poisoned] == [5]
    assert (rig.log.last, rig.loop.state.shard.dead, rig.texts()) == (6, 1, ["for 2000 ms", "gap"])
    letter = rig.letter(5)
    assert letter is not None
    assert letter.errors == ["Mistake in Ticked"]
    again = restarted(rig)
    again.wait(1)
    assert (again.everything(), again.log.last) == (rig.everything(), 6)


def test_a_tick_that_always_raises_ends_with_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    needs, _ = FOLDS[1][Ticked]

    def stumble(_state: ShardState, _by: int, _via: int, _ticked: Ticked) -> None:
        raise Mistake("planted")

    monkeypatch.setitem(FOLDS[1], Ticked, (needs, stumble))  # pyright: ignore[reportArgumentType]
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n, life_ms=n * 1_000))
    for _ in range(100):
        rig.wait(100)
    assert [offset for offset, _ in rig.poisoned] == [6, 7, 8]
    assert (rig.log.last, rig.loop.ready) == (8, True)


# --- bytes that are no record -----------------------------------------------------------------


def test_bytes_that_are_no_record_are_set_aside_without_rebuilding() -> None:
    rig = started(SELDOM)
    good = encode_record(Record(PHONE, 0, a_message()))
    rig.log.stored.append(START, [b"rubbish", good, good[:-1]], lambda _: None)
    again = restarted(rig)
    assert again.loop.ready
    assert again.poisoned == [
        (3, "a record is shorter than its header"),
        (5, "a record's body is not of any known form"),
    ]
    assert again.texts() == ["hello"]
    assert again.letter(3) == DeadLetter(b"rubbish", ["a record is shorter than its header"], START)
    assert again.letter(5) == DeadLetter(good[:-1], ["a record's body is not of any known form"], START)
    assert (again.letter(4), again.loop.state.shard.dead) == (None, 2)
    assert isinstance(again.answers(again.say(PHONE, a_message(2)))[0], Accepted)


# --- what must not be taken for poison --------------------------------------------------------


def test_needs_that_never_end_are_poison_and_not_a_loop_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    _, step = FOLDS[1][Sent]

    def always(_state: ShardState, _by: int, sent: Any) -> list[RowKey]:
        return [RowKey(Kept.ACCOUNT, sent.to)]

    monkeypatch.setitem(FOLDS[1], Sent, (always, step))  # pyright: ignore[reportArgumentType]
    rig = started(SELDOM)
    via = rig.say(PHONE, a_message())
    rig.wait(1)
    assert rig.answers(via) == [DeadLettered()]
    letter = rig.letter(3)
    assert letter is not None
    assert letter.errors == ["AssertionError in Sent"]
    assert rig.poisoned == [(3, "the needs of Sent never end")]
