"""Folding: in order, each once, and never before every row is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nightmail.core.state import ShardState, encode_row
from nightmail.engine.folding import Durable, Folded, Folding
from nightmail.engine.loop import LoopLimits
from nightmail.engine.memory import MemoryLog
from nightmail.engine.ports import Checkpoint, Failed, Overtaken, Stored, TrimmedAway, saving
from nightmail.engine.saver import SaverLimits, take_checkpoint
from nightmail.model.answers import Accepted
from nightmail.model.effects import Answer, Forward
from nightmail.model.ids import SERVER, account_id, shard_of
from nightmail.model.records import Acked, Receipted, Record, Ticked, encode_record
from nightmail.model.rows import Kept, Need, RowKey, Shard
from nightmail.model.words import Lane, MessageState, Reason
from sim.judges.strict import StrictState
from tests.engine.rig import (
    ALICE,
    BOB,
    PHONE,
    START,
    TABLET,
    HeldLog,
    HeldRows,
    Rig,
    a_message,
    a_person,
    restarted,
    started,
)

NORMAL = Lane.NORMAL
SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
SHARD = RowKey(Kept.SHARD, 0)


def a_saved_rig(messages: int = 2) -> Rig:
    """Everything is saved, and a new process has nothing of it in memory."""
    rig = started(SELDOM)
    for n in range(1, messages + 1):
        rig.say(PHONE, a_message(n))
    rig.loop.save(at_once=True)
    return restarted(rig)


# --- rows that are not in memory --------------------------------------------------------------


def test_a_record_waits_for_its_rows_and_so_does_everything_behind_it() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    first, second = rig.say(PHONE, a_message(3)), rig.say(PHONE, a_message(4))
    assert (rig.effects, rig.loop.caught_up, rig.loop.state.offset) == ([], False, 4)
    while rig.rows.loads:
        rig.rows.answer_load()
    assert (len(rig.answers(first)), len(rig.answers(second)), rig.loop.caught_up) == (1, 1, True)


def test_no_checkpoint_is_taken_while_a_record_waits() -> None:
    rig = started(SELDOM)
    rig.rows.holds_loads = True
    rig.say(PHONE, a_message(1, to=account_id("dave")))
    rig.loop.save(at_once=True)
    assert rig.saved == []
    rig.rows.holds_loads = False
    rig.rows.answer_load()
    rig.loop.save(at_once=True)
    assert [saved.upto for saved in rig.saved] == [3]


def test_what_follows_from_a_record_waits_for_its_own_rows() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    via = rig.say(TABLET, Acked(NORMAL, 2))
    rounds = 0
    while rig.rows.loads:
        rounds += 1
        assert rig.answers(via) == []
        rig.rows.answer_load()
    assert rounds == 4  # the mailbox, its entries; then for the receipt the account, its devices' receipts
    assert len(rig.answers(via)) == 1
    rig.rows.holds_loads = False
    assert rig.texts() == []


def test_a_load_that_failed_is_asked_again_with_each_tick_until_it_works() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    via = rig.say(PHONE, a_message(3))
    wanted = rig.rows.loaded[-1]
    for _ in range(3):
        rig.rows.answer_load(Failed("no"))
        rig.say(PHONE, a_message(9))  # What comes behind it waits, too, and asks for nothing.
        assert (len(rig.rows.loads), rig.answers(via)) == (0, [])
        rig.wait(1)
        assert rig.rows.loaded[-1] == wanted
    rig.rows.holds_loads = False
    rig.rows.answer_load()
    assert [type(said) for said in rig.answers(via)] == [Accepted]


def test_a_load_that_finds_another_owner_rebuilds_from_that_ones_checkpoint() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    via = rig.say(PHONE, a_message(3))
    rig.rows.answer_load(Overtaken(9))
    rig.rows.holds_loads = False
    assert not rig.loop.ready
    rig.wait(1)
    assert (rig.loop.ready, len(rig.answers(via)), rig.texts()) == (True, 1, ["hello"] * 3)


def test_an_answer_from_before_the_rebuilding_is_nobodys() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    via = rig.say(PHONE, a_message(3))
    late = rig.rows.loads.popleft()
    rig.rows.holds_loads = False
    rig.loop.fell_behind()
    rig.wait(1)
    offset = rig.loop.state.offset
    rig.rows.loads.append(late)
    rig.rows.answer_load(Overtaken(9))
    assert (rig.loop.ready, rig.loop.state.offset) == (True, offset)
    assert (len(rig.answers(via)), rig.texts()) == (1, ["hello"] * 3)


def test_a_pointer_that_is_settled_while_the_first_load_fails_is_where_the_replay_starts() -> None:
    """A save of unknown outcome was stored after all: opening the rows anew finds that out."""
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.rows.answer_save(Failed("unknown"))
    unknown = rig.rows.given[0]
    rig.rows.holds_loads = True
    rig.loop.fell_behind()
    rig.wait(1)
    rig.rows.answer_load(Failed("closed"))
    rig.rows.holds_loads = rig.rows.holds_saves = False
    rig.rows.save(unknown, lambda _: None)
    rig.wait(1)
    assert (rig.loop.ready, rig.loop.next_offset, rig.loop.state.offset) == (True, 4, 3)
    assert [type(said) for said in rig.answers(rig.say(PHONE, a_message(2)))] == [Accepted]
    assert rig.texts() == ["hello"] * 2


def test_a_row_in_memory_is_newer_than_the_one_that_a_late_load_brings() -> None:
    rig = a_saved_rig()
    rig.rows.holds_loads = True
    rig.loop.read(lambda s: [] if ALICE in s.accounts else [RowKey(Kept.ACCOUNT, ALICE)], lambda _: None)
    late = rig.rows.loads.popleft()
    rig.rows.holds_loads = False
    rig.say(SERVER, a_person("alice"))
    before = encode_row(rig.loop.state.accounts[ALICE])
    rig.rows.loads.append(late)
    rig.rows.answer_load()
    assert encode_row(rig.loop.state.accounts[ALICE]) == before


# --- looking at rows --------------------------------------------------------------------------


def wants_mailbox(state: ShardState) -> list[Need]:
    return [] if TABLET in state.mailboxes else [RowKey(Kept.MAILBOX, TABLET)]


def test_a_reader_is_called_at_once_if_nothing_is_missing() -> None:
    rig, seen = started(), list[ShardState]()
    rig.loop.read(lambda _: (), seen.append)
    assert seen == [rig.loop.state]


def test_rows_that_are_not_in_memory_are_read_first() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message())
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.loaded.clear()
    assert rig.texts() == ["hello"]
    assert len(rig.rows.loaded) == 2  # the mailbox, then what it points to
    assert rig.texts() == ["hello"]
    assert len(rig.rows.loaded) == 2


def test_what_was_read_while_the_pointer_moved_is_read_again() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.holds_loads, seen = True, list[bytes]()
    key = RowKey(Kept.MAILBOX, TABLET)
    rig.loop.read(wants_mailbox, lambda state: seen.append(encode_row(state.mailboxes[TABLET])))
    stale = rig.rows.rows[key]
    # Meanwhile it is changed, saved and let go.
    rig.rows.save(Checkpoint(4, START, rows=[saving(key, 4, b"newer")]), lambda _: None)
    rig.rows.rows[key] = stale
    rig.rows.answer_load()
    assert (seen, len(rig.rows.loads)) == ([], 1)
    rig.rows.answer_load()
    assert seen == [stale]


def test_a_reader_that_finds_another_owner_is_not_called_and_the_state_is_rebuilt() -> None:
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.holds_loads, seen = True, list[ShardState]()
    rig.loop.read(wants_mailbox, seen.append)
    rig.rows.answer_load(Overtaken(9))
    rig.rows.holds_loads = False
    assert (seen, rig.loop.ready) == ([], False)
    rig.wait(1)
    assert (seen, rig.loop.ready) == ([], True)


def test_a_reader_is_not_called_with_a_state_that_was_thrown_away() -> None:
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.holds_loads, seen = True, list[ShardState]()
    rig.loop.read(wants_mailbox, seen.append)
    rig.rows.holds_loads = False
    rig.loop.fell_behind()
    rig.rows.answer_load()  # before it is rebuilt, and so after it was of no use
    rig.wait(1)
    assert (seen, rig.loop.ready) == ([], True)


def test_a_read_that_fails_or_comes_before_it_is_ready_calls_nobody() -> None:
    rig, seen = Rig(), list[ShardState]()
    rig.loop.read(lambda _: (), seen.append)
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig = restarted(rig)
    rig.rows.holds_loads = True
    rig.loop.read(wants_mailbox, seen.append)
    rig.rows.answer_load(Failed("no"))
    assert (seen, rig.loop.ready) == ([], True)


# --- one batch after the other ----------------------------------------------------------------


class Recording:
    """A folding with nothing around it, and all that it hands out."""

    def __init__(self, log: MemoryLog | None = None, rows: HeldRows | None = None, shards: int = 1) -> None:
        self.log, self.rows = log or MemoryLog(), rows or HeldRows()
        self.handed: list[Folded] = []
        self.troubles: list[str] = []
        self.folding = Folding(
            self.log,
            self.rows,
            lambda: StrictState(shard_of(BOB, shards), shards),
            self.handed.append,
            self._raise,
            self.troubles.append,
        )

    def _raise(self, _offset: int, error: Exception) -> None:
        raise error


def a_batch(first: int, *bodies: object, at: int = START, by: int = PHONE) -> Durable:
    return Durable(first, at, [encode_record(Record(by, 7, body)) for body in bodies])  # pyright: ignore[reportArgumentType]


def test_each_batch_is_handed_out_once_whole_and_in_order() -> None:
    recording = Recording()
    recording.folding.rebuild()
    recording.folding.feed(a_batch(1, a_person("alice"), a_person("bob")))
    recording.folding.feed(a_batch(3, a_message(1), a_message(2)))
    assert [(folded.upto, len(folded.effects), folded.forwards) for folded in recording.handed] == [
        (2, 2, []),
        (4, 4, []),
    ]


def test_a_forward_comes_with_the_offset_it_follows_from() -> None:
    shards = 4
    assert shard_of(BOB, shards) != shard_of(ALICE, shards)
    recording = Recording(shards=shards)
    recording.folding.rebuild()
    recording.folding.feed(a_batch(1, a_person("bob")))
    recording.folding.feed(a_batch(2, a_message(1), a_message(2)))
    recording.folding.feed(a_batch(4, Ticked(), Acked(NORMAL, 2), by=TABLET))
    told = Receipted(PHONE, BOB, NORMAL, TABLET, MessageState.DELIVERED, Reason.NONE, START, ((1, 2),))
    assert recording.handed[-1].forwards == [(5, Forward(shard_of(ALICE, shards), 1, told))]


def test_time_goes_on_with_a_batch_and_never_back() -> None:
    recording = Recording()
    recording.folding.rebuild()
    for first, at in ((1, START), (2, START - 5), (3, START + 5)):
        recording.folding.feed(a_batch(first, Ticked(), at=at))
        assert recording.folding.state.now == max(at, START)


def test_what_the_checkpoint_has_of_a_batch_is_not_folded_again() -> None:
    whole = Recording()
    batch = Stored(1, START, a_batch(1, a_person("alice"), a_person("bob"), a_message(1), a_message(2)).data)
    whole.log.append(batch.at, batch.records, lambda _: None)
    whole.folding.rebuild()
    half = Recording(whole.log)
    half.folding.rebuild()
    first = Recording()
    first.folding.rebuild()
    first.folding.feed(Durable(1, START, batch.records[:3]))
    half.rows.save(take_checkpoint(first.folding.state, START), lambda _: None)
    half.folding.rebuild()
    assert half.folding.state.offset == 4
    half.folding.state.install(RowKey(Kept.MAILBOX, TABLET), None)
    assert encode_row(half.folding.state.mailboxes[TABLET]) == encode_row(whole.folding.state.mailboxes[TABLET])
    said = [effect.said for effect in half.handed[-1].effects if isinstance(effect, Answer)]
    assert [type(answer) for answer in said] == [Accepted]


def test_the_shard_is_as_the_checkpoint_says() -> None:
    rows = HeldRows()
    rows.save(Checkpoint(7, 0, rows=[saving(SHARD, 7, encode_row(Shard(now=5, dead=3)))]), lambda _: None)
    recording = Recording(rows=rows)
    recording.log.append(1, [b"x"] * 7, lambda _: None)
    recording.log.trim(7, 1)
    recording.folding.rebuild()
    assert (recording.folding.state.shard, recording.folding.next_offset) == (Shard(now=5, dead=3), 8)
    assert recording.folding.ready


# --- a log that others trim -------------------------------------------------------------------


class TrimmedLog(HeldLog):
    """Another owner has saved up to `begins`, and trimmed behind it."""

    begins = 0

    def replay(self, after: int) -> Iterator[Stored]:
        for batch in self.stored.replay(after):
            if after < self.begins:
                raise TrimmedAway("gone")
            yield batch


def test_a_log_that_was_trimmed_by_another_owner_is_replayed_from_the_newer_checkpoint() -> None:
    rig = started(SELDOM)
    rig.say(PHONE, a_message(1))
    log = TrimmedLog()
    log.stored, log.begins = rig.log.stored, 2
    behind = Rig(log)
    behind.loop.recover()
    assert not behind.loop.ready
    behind.wait(1)
    assert not behind.loop.ready
    behind.rows.save(take_checkpoint(restarted(rig).loop.state, START), lambda _: None)
    behind.wait(1)
    assert (behind.loop.ready, behind.texts()) == (True, ["hello"])


@pytest.mark.parametrize("cuts", [(1,), (2, 3), (1, 2, 3, 4)])
def test_however_the_log_is_cut_into_batches_the_state_is_the_same(cuts: tuple[int, ...]) -> None:
    bodies = (a_person("alice"), a_person("bob"), a_message(1), a_message(2), a_message(3))
    whole, cut = Recording(), Recording()
    for recording in (whole, cut):
        recording.folding.rebuild()
    whole.folding.feed(a_batch(1, *bodies))
    for low, high in zip((0, *cuts), (*cuts, 5), strict=True):
        cut.folding.feed(a_batch(low + 1, *bodies[low:high]))
    assert [(key, row and encode_row(row)) for key, row in cut.folding.state.known_rows()] == [
        (key, row and encode_row(row)) for key, row in whole.folding.state.known_rows()
    ]


def test_a_batch_that_covers_a_span_is_followed_by_the_next_span() -> None:
    recording = Recording()
    recording.folding.rebuild()
    for first, name in ((1, "alice"), (101, "bob")):
        data = a_batch(first, a_person(name)).data
        recording.folding.feed(Durable(first, START, data, None, 100))
    state = recording.folding.state
    assert (state.offset, recording.folding.next_offset) == (200, 201)
    # The shard's own row is as of the checkpoint.
    assert {version for *_, version, _ in take_checkpoint(state, START).rows} == {1, 101, 200}
