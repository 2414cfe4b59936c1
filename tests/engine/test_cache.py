"""What stays in memory decides nothing: what is let go comes back as it was."""

from __future__ import annotations

from typing import Any

from nightmail.core.state import KEYS_WEIGHT, State, encode_row
from nightmail.engine.cache import forget_entries, forget_keys, freshen, shrink
from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits, take_checkpoint
from nightmail.model.answers import Accepted, Bundle, Said, Stocked
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Acked, AnyBody, Claimed, Unlinked
from nightmail.model.rows import Kept, RowKey, queue_id
from nightmail.model.words import Lane
from tests.core.world import published
from tests.engine.rig import BOB, PHONE, START, TABLET, Rig, a_message, a_person, restarted, started

NORMAL = Lane.NORMAL
QUEUE = queue_id(TABLET, NORMAL)
SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
FORGETFUL = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9, rows_in_memory=0))


def in_memory(state: State) -> set[RowKey]:
    return {key for key, _ in state.known_rows()}


def loaded(rig: Rig, key: RowKey) -> bytes | None:
    found: list[Any] = []

    def missing(state: State) -> list[RowKey]:
        table: Any = state.streams if key.kind is Kept.STREAM else state.by_number[key.kind]
        return [] if ((key.a, key.b) if key.kind is Kept.STREAM else key.a) in table else [key]

    rig.loop.read(missing, lambda state: found.append(state.row(key)))
    return found[0] and encode_row(found[0])


# --- rows -------------------------------------------------------------------------------------


def test_a_row_that_is_not_saved_yet_is_never_let_go() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message())
    changed = {key for key, _, _ in rig.loop.state.changed_rows() if key.kind is not Kept.SHARD}
    shrink(rig.loop.state, 0)
    assert in_memory(rig.loop.state) == changed
    assert QUEUE in rig.loop.state.entries


def test_saved_rows_are_let_go_and_come_back_equal() -> None:
    rig = started(FORGETFUL)
    rig.say(PHONE, a_message())
    before = {key: row and encode_row(row) for key, row in rig.loop.state.known_rows()}
    rig.loop.save(at_once=True)
    assert (in_memory(rig.loop.state), rig.loop.state.entries) == (set(), {})
    assert {key: loaded(rig, key) for key in before} == before
    assert rig.texts() == ["hello"]


def test_no_more_are_left_than_there_may_be() -> None:
    rig = started(SELDOM)
    for n in range(20):
        rig.say(SERVER, a_person(f"person {n}"))
    take_checkpoint(rig.loop.state, START)
    for most in (40, 10, 3, 0):
        shrink(rig.loop.state, most)
        assert len(in_memory(rig.loop.state)) <= most


def test_nothing_is_let_go_while_there_is_room() -> None:
    rig = started(SELDOM)
    take_checkpoint(rig.loop.state, START)
    before = in_memory(rig.loop.state)
    shrink(rig.loop.state, len(before))
    assert in_memory(rig.loop.state) == before


def test_those_go_first_that_have_not_changed_for_longest() -> None:
    rig = started(SELDOM)
    for n in range(20):
        rig.say(SERVER, a_person(f"person {n}"))
    take_checkpoint(rig.loop.state, START)
    rig.say(PHONE, a_message())  # the mailbox of one of the oldest accounts changes
    freshen(rig.loop.state)
    take_checkpoint(rig.loop.state, START)
    shrink(rig.loop.state, 12)
    assert TABLET in rig.loop.state.mailboxes
    assert PHONE not in rig.loop.state.mailboxes


def test_what_a_checkpoint_saves_counts_as_touched() -> None:
    rig = started(LoopLimits(saver=SaverLimits(checkpoint_ms=10**9, rows_in_memory=24)))
    for n in range(5):
        rig.say(SERVER, a_person(f"person {n}"))
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message())  # the mailbox of one of the oldest accounts
    rig.loop.save(at_once=True)
    for n in range(5, 7):
        rig.say(SERVER, a_person(f"person {n}"))
    rig.loop.save(at_once=True)
    assert TABLET in rig.loop.state.mailboxes
    assert PHONE not in rig.loop.state.mailboxes


def test_with_nothing_in_memory_everything_goes_on_as_with_everything() -> None:
    rigs = started(SELDOM), started(FORGETFUL)
    for rig in rigs:
        for n in range(1, 6):
            rig.say(PHONE, a_message(n, text=f"message {n}"))
            rig.loop.save(at_once=True)
            if n % 2 == 0:
                rig.say(TABLET, Acked(NORMAL, n - 1))
                rig.loop.save(at_once=True)
    remembering, forgetful = rigs
    assert forgetful.effects == remembering.effects
    assert forgetful.texts() == remembering.texts() == ["message 4", "message 5"]
    assert forgetful.everything() == remembering.everything()
    assert forgetful.rows.entries == remembering.rows.entries


def test_a_watermark_survives_being_let_go() -> None:
    rig = started(FORGETFUL)
    first = rig.say(PHONE, a_message())
    rig.loop.save(at_once=True)
    assert (PHONE, BOB) not in rig.loop.state.streams
    again = rig.say(PHONE, a_message())
    assert rig.answers(again) == rig.answers(first)
    assert rig.texts() == ["hello"]


# --- entries ----------------------------------------------------------------------------------


def test_entries_of_a_device_that_is_away_are_let_go_after_two_checkpoints_and_found_again() -> None:
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n, text=f"message {n}"))
        rig.loop.save(at_once=True)
    assert sorted(rig.loop.state.entries[QUEUE]) == [3]
    assert rig.texts() == ["message 1", "message 2", "message 3"]


def test_entries_that_were_let_go_are_acknowledged_and_leave_the_store() -> None:
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n))
        rig.loop.save(at_once=True)
    rig.say(TABLET, Acked(NORMAL, 2))
    rig.loop.save(at_once=True)
    assert list(rig.rows.entries) == [(QUEUE, 3)]
    assert rig.texts() == ["hello"]
    mailbox = rig.loop.state.mailboxes[TABLET]
    assert mailbox is not None
    assert mailbox.lanes[NORMAL].waiting == 1


def test_an_entry_that_is_not_in_the_store_is_never_let_go() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message(2))
    rig.loop.save()
    forget_entries(rig.loop.state, [(QUEUE, 1)])
    assert sorted(rig.loop.state.entries[QUEUE]) == [2]
    assert rig.texts() == ["hello", "hello"]


def test_forgetting_what_is_not_there_does_nothing() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message())
    forget_entries(rig.loop.state, [(QUEUE, 7), (QUEUE + 1, 1)])
    assert sorted(rig.loop.state.entries[QUEUE]) == [1]
    forget_entries(rig.loop.state, [(QUEUE, 1)])
    assert rig.loop.state.entries == {}


def test_a_mailbox_of_many_comes_back_with_its_place_in_both_lanes() -> None:
    rig = started(FORGETFUL)
    rig.say(SERVER, a_person("carol"))
    carols = device_id(account_id("carol"), 1)
    for n in range(1, 4):
        rig.say(PHONE, a_message(n))
        rig.say(carols, a_message(n, by=carols))
        rig.loop.save(at_once=True)
    rig.say(TABLET, Acked(NORMAL, 4))
    rig.loop.save(at_once=True)
    again = restarted(rig)
    assert again.texts() == rig.texts() == ["hello"] * 2
    assert isinstance(again.answers(again.say(PHONE, a_message(4)))[0], Accepted)
    assert again.texts() == ["hello"] * 3


# --- keys -------------------------------------------------------------------------------------


def said(rig: Rig, by: int, body: AnyBody) -> Said:
    (answer,) = rig.answers(rig.say(by, body))
    return answer


def test_keys_are_let_go_as_soon_as_they_are_saved_and_come_back_equal() -> None:
    rig = started(SELDOM)
    assert said(rig, TABLET, published(TABLET, range(2, 9), range(2, 5))) == Stocked(7, 3)
    forget_keys(rig.loop.state)
    assert list(rig.loop.state.keys) == [TABLET], "not saved yet"
    before = encode_row(rig.loop.state.keys[TABLET])
    rig.loop.save(at_once=True)
    assert len(rig.loop.state.keys) == 0
    assert TABLET in rig.loop.state.mailboxes, "others stay"
    first = said(rig, PHONE, Claimed(TABLET, 1))
    assert isinstance(first, Bundle)
    rig.loop.save(at_once=True)
    assert said(rig, PHONE, Claimed(TABLET, 1)) == first, "looked at again, and not changed"
    assert list(rig.loop.state.keys) == [TABLET]
    rig.loop.save(at_once=True)
    assert len(rig.loop.state.keys) == 0
    assert loaded(rig, RowKey(Kept.KEYS, TABLET)) != before


def test_keys_start_a_checkpoint_by_their_weight() -> None:
    rig = started(LoopLimits(saver=SaverLimits(checkpoint_ms=10**9, checkpoint_rows=2 * KEYS_WEIGHT)))
    rig.loop.save(at_once=True)
    rig.say(TABLET, published(TABLET, range(2, 9), range(2, 5)))
    rig.loop.tick()
    assert rig.loop.state.keys.changed
    rig.say(PHONE, published(PHONE, range(2, 9), range(2, 5)))
    rig.loop.tick()
    assert (rig.loop.state.keys.changed, len(rig.loop.state.keys)) == ({}, 0)
    assert rig.loop.unsaved == 0


def test_keys_that_were_only_looked_at_refuse_nothing() -> None:
    """There is nothing to save, so no checkpoint would ever lift the refusal."""
    rig = started(LoopLimits(unsaved_rows=KEYS_WEIGHT - 1, saver=SaverLimits(checkpoint_ms=10**9)))
    rig.say(SERVER, Unlinked(TABLET))
    rig.loop.save(at_once=True)
    rig.say(PHONE, published(PHONE, range(2, 9), range(2, 5)))
    rig.loop.save(at_once=True)
    first = said(rig, PHONE, Claimed(PHONE, 1))
    rig.loop.save(at_once=True)
    assert said(rig, PHONE, Claimed(PHONE, 1)) == first
    assert (list(rig.loop.state.keys), rig.loop.state.keys.changed, rig.loop.overloaded) == ([PHONE], {}, False)
