"""What stays in memory decides nothing: what is let go comes back as it was."""

from __future__ import annotations

from typing import Any

from nightmail.core.state import KEYS_WEIGHT, ShardState, encode_row
from nightmail.engine.cache import forget_entries, forget_keys, freshen, shrink
from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits, take_checkpoint
from nightmail.model.answers import Accepted, Bundle, Said, Stocked
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import Acked, AnyBody, Claimed, LimitsSet, Unlinked
from nightmail.model.rows import EntryRange, Kept, RowKey, queue_id
from nightmail.model.words import Lane
from tests.core.world import published
from tests.engine.rig import ALICE, BOB, PHONE, START, TABLET, Rig, a_message, a_person, restarted, started

NORMAL = Lane.NORMAL
QUEUE = queue_id(TABLET, NORMAL)
SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
FORGETFUL = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9, rows_in_memory=0))


def in_memory(state: ShardState) -> set[RowKey]:
    return {key for key, _ in state.known_rows()}


def loaded(rig: Rig, key: RowKey) -> bytes | None:
    found: list[Any] = []

    def missing(state: ShardState) -> list[RowKey]:
        if key.kind in state.by_pair:
            return [] if (key.a, key.b) in state.by_pair[key.kind] else [key]
        return [] if key.a in state.by_number[key.kind] else [key]

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


def test_rows_that_were_only_read_are_let_go_although_nothing_is_written() -> None:
    rig = started(LoopLimits(saver=SaverLimits(rows_in_memory=20)))
    rig.loop.save(at_once=True)
    for account in range(100):
        loaded(rig, RowKey(Kept.ACCOUNT, account))
    assert len(in_memory(rig.loop.state)) > 100
    rig.wait(10_000)
    rig.wait(1)
    assert len(in_memory(rig.loop.state)) <= 20
    assert (len(rig.saved), rig.loop.unsaved) == (1, 0)


def test_rows_are_not_let_go_while_they_are_being_saved() -> None:
    """The store has older ones until then."""
    rig = started(FORGETFUL)
    rig.loop.save(at_once=True)
    first = rig.say(PHONE, a_message())
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.wait(1)
    assert (PHONE, BOB) in rig.loop.state.streams
    assert rig.answers(rig.say(PHONE, a_message())) == rig.answers(first)
    rig.rows.holds_saves = False
    rig.rows.answer_save()
    assert in_memory(rig.loop.state) == set()


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


def a_round(rig: Rig) -> None:
    """A checkpoint that has nothing to do with anybody's entries."""
    rig.say(SERVER, a_person("alice"))
    rig.loop.save(at_once=True)


def away() -> Rig:
    """Three entries of Bob's wait, and all were let go."""
    rig = started(SELDOM)
    for n in (1, 2, 3):
        rig.say(PHONE, a_message(n, text=f"message {n}"))
    rig.loop.save(at_once=True)
    a_round(rig)
    assert rig.loop.state.entries == {}
    return rig


def test_entries_that_were_read_again_are_let_go_by_the_same_rule() -> None:
    rig = away()
    assert len(rig.texts()) == 3
    a_round(rig)
    assert sorted(rig.loop.state.entries[QUEUE]) == [1, 2, 3], "one checkpoint found them waiting"
    rig.say(PHONE, a_message(4))
    a_round(rig)
    assert sorted(rig.loop.state.entries[QUEUE]) == [4]
    rig.say(TABLET, Acked(NORMAL, 1))
    assert rig.texts() == ["message 2", "message 3", "hello"]


def test_where_nothing_is_written_they_are_let_go_all_the_same() -> None:
    rig = started()
    rig.say(PHONE, a_message())
    for _ in range(3):
        rig.wait(10_000)
    assert rig.loop.state.entries == {}
    assert rig.texts() == ["hello"]
    rig.wait(9_999)
    assert QUEUE in rig.loop.state.entries
    for _ in range(3):
        rig.wait(10_000)
    assert (rig.loop.state.entries, len(rig.saved)) == ({}, 1)


def test_what_cannot_be_let_go_when_a_save_ends_goes_at_the_next_chance() -> None:
    rig = started(SELDOM)
    rig.say(SERVER, a_person("carol"))
    carols = device_id(account_id("carol"), 1)
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message())
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.rows.holds_loads = True
    rig.say(carols, a_message(by=carols, to=ALICE))
    assert len(rig.rows.loads) == 1, "the fold waits for a stream"
    rig.rows.holds_saves = False
    rig.rows.answer_save()
    rig.rows.holds_loads = False
    rig.rows.answer_load()
    rig.loop.save(at_once=True)
    assert QUEUE not in rig.loop.state.entries
    assert rig.texts() == ["hello"]


def test_when_one_entry_has_expired_no_more_are_read_to_set_the_next_clock() -> None:
    rig = started(SELDOM)
    rig.say(SERVER, LimitsSet(FoldLimits(tick_items=2)))
    rig.say(PHONE, a_message(1))
    rig.wait(DAY_MS)
    for n in (2, 3, 4):
        rig.say(PHONE, a_message(n))
    rig.loop.save(at_once=True)
    a_round(rig)
    rig.wait(29 * DAY_MS + 1_000)
    ranges = [need for needs in rig.rows.loaded for need in needs if isinstance(need, EntryRange)]
    assert ranges == [EntryRange(QUEUE, 1, 2)]
    assert rig.texts() == ["gap", "hello", "hello", "hello"]


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
