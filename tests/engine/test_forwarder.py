"""Forwards: each shard's log gets them in their order, and at least once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nightmail.engine.forwarder import RETRY_MS, Forwarder, ForwarderLimits
from nightmail.engine.loop import LoopLimits
from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import Checkpoint, Failed
from nightmail.engine.saver import SaverLimits
from nightmail.model.effects import Forward
from nightmail.model.ids import SERVER, shard_of
from nightmail.model.records import Acked, Forwarded, Receipted, Record, decode_record, encode_record
from nightmail.model.refusals import Overloaded
from nightmail.model.words import Lane, MessageState, Reason
from sim.judges.strict import StrictState
from tests.engine.rig import ALICE, BOB, PHONE, TABLET, HeldLog, HeldRows, Rig, a_message, a_person

NORMAL = Lane.NORMAL
HERE, THERE, ELSEWHERE = 0, 1, 2
SHARDS = 4
ALICES, BOBS = shard_of(ALICE, SHARDS), shard_of(BOB, SHARDS)


class Logs:
    """Other shards' logs. Each append waits until it is answered."""

    def __init__(self) -> None:
        self.logs: dict[int, list[int]] = {}
        """Shard → the k of each forward that stands in its log."""
        self.under_way: list[tuple[int, list[int], Callable[[bool], None]]] = []

    def append(self, shard: int, records: Sequence[bytes], done: Callable[[bool], None]) -> None:
        forwarded = [decode_record(data) for data in records]
        assert all(record.by == SERVER and record.via == 0 for record in forwarded)
        bodies = [record.body for record in forwarded]
        self.under_way.append((shard, [body.k for body in bodies if isinstance(body, Forwarded)], done))

    def answer(self, durable: bool = True, *, kept: bool | None = None) -> None:
        """The oldest of those under way; `kept`: whether it stands there, whatever is said."""
        shard, ks, done = self.under_way.pop(0)
        if durable if kept is None else kept:
            self.logs.setdefault(shard, []).extend(ks)
        done(durable)

    def answer_all(self) -> None:
        while self.under_way:
            self.answer()


def told(k: int, shard: int = THERE) -> Forward:
    return Forward(shard, k, Receipted(PHONE, BOB, NORMAL, TABLET, MessageState.DELIVERED, Reason.NONE, 5, ((k, k),)))


TOLD_BYTES = len(encode_record(Record(SERVER, 0, Forwarded(HERE, 1, told(1).body))))


class PagedRows(MemoryRows):
    """They answer a reading of forwards when a test says so, and can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = self.fails = False
        self.read: list[tuple[int, int, int, int]] = []
        """(shard, after, upto, limit) of every page asked for."""
        self.held: list[Callable[[], None]] = []

    def save_all(self, forwarder: Forwarder) -> None:
        """A checkpoint."""
        unsaved = forwarder.take_unsaved()
        self.save(Checkpoint(self.pointer + 1, 1, forwards=unsaved), lambda _: None)
        forwarder.saved(unsaved)

    def saved(self, shard: int = THERE) -> list[int]:
        return sorted(k for to, k in self.forwards if to == shard)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        self.read.append((shard, after, upto, limit))
        if self.fails:
            done(Failed("no"))
            return
        found: list[Sequence[tuple[int, bytes]] | Failed] = []
        super().load_forwards(shard, after, upto, limit, found.append)
        self.held.append(lambda: done(found[0]))
        if not self.holds:
            self.held.pop()()

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        if self.fails:
            done(Failed("no"))
        else:
            super().drop_forwards(shard, upto, done)


def a_forwarder(rows: MemoryRows | None = None, limits: ForwarderLimits | None = None) -> tuple[Forwarder, Logs]:
    logs = Logs()
    return Forwarder(HERE, logs.append, rows or MemoryRows(), limits), logs


def tell(forwarder: Forwarder, low: int, high: int) -> None:
    for k in range(low, high + 1):
        forwarder.add(told(k))


def waiting(logs: Logs) -> list[tuple[int, list[int]]]:
    return [(shard, ks) for shard, ks, _ in logs.under_way]


def test_a_forward_says_who_tells_and_as_the_which() -> None:
    seen: list[Record] = []
    forwarder = Forwarder(7, lambda _shard, records, _done: seen.extend(map(decode_record, records)), MemoryRows())
    forwarder.add(told(1))
    forwarder.tick(0)
    assert seen == [Record(SERVER, 0, Forwarded(7, 1, told(1).body))]


def test_each_shard_is_told_in_order_and_one_batch_at_a_time() -> None:
    forwarder, logs = a_forwarder()
    for k in (1, 2):
        forwarder.add(told(k))
        forwarder.add(told(k, ELSEWHERE))
    forwarder.tick(0)
    forwarder.add(told(3))
    forwarder.tick(1)
    assert waiting(logs) == [(THERE, [1, 2]), (ELSEWHERE, [1, 2])]
    logs.answer_all()
    assert logs.logs == {THERE: [1, 2, 3], ELSEWHERE: [1, 2]}
    forwarder.tick(10_000)
    assert logs.under_way == []


def test_one_batch_follows_the_other_without_waiting_for_a_tick() -> None:
    forwarder, logs = a_forwarder(limits=ForwarderLimits(batch=4))
    tell(forwarder, 1, 9)
    forwarder.tick(0)
    sizes: list[int] = []
    while logs.under_way:
        sizes.append(len(logs.under_way[0][1]))
        logs.answer()
    assert (sizes, logs.logs[THERE]) == ([4, 4, 1], list(range(1, 10)))


def test_a_batch_is_bounded_in_bytes_and_has_one_forward_in_any_case() -> None:
    sizes: dict[int, list[int]] = {}
    for size in (1, 2 * TOLD_BYTES):
        forwarder, logs = a_forwarder(limits=ForwarderLimits(batch_bytes=size))
        tell(forwarder, 1, 5)
        forwarder.tick(0)
        while logs.under_way:
            sizes.setdefault(size, []).append(len(logs.under_way[0][1]))
            logs.answer()
    assert sizes == {1: [1] * 5, 2 * TOLD_BYTES: [2, 2, 1]}


def test_after_a_failure_it_starts_again_from_there_and_nothing_overtakes() -> None:
    forwarder, logs = a_forwarder()
    tell(forwarder, 1, 2)
    forwarder.tick(0)
    forwarder.add(told(3))
    logs.answer(durable=False)
    forwarder.tick(RETRY_MS - 1)
    assert logs.under_way == []
    forwarder.tick(RETRY_MS)
    assert waiting(logs) == [(THERE, [1, 2, 3])]
    logs.answer_all()
    assert logs.logs == {THERE: [1, 2, 3]}


def test_what_failed_and_was_kept_all_the_same_is_told_again() -> None:
    forwarder, logs = a_forwarder()
    forwarder.add(told(1))
    forwarder.tick(0)
    logs.answer(durable=False, kept=True)
    forwarder.tick(RETRY_MS)
    logs.answer_all()
    assert logs.logs == {THERE: [1, 1]}


def test_one_shard_that_fails_does_not_hold_up_another() -> None:
    forwarder, logs = a_forwarder()
    forwarder.add(told(1))
    forwarder.tick(0)
    logs.answer(durable=False)
    forwarder.add(told(1, ELSEWHERE))
    forwarder.tick(1)
    logs.answer_all()
    assert logs.logs == {ELSEWHERE: [1]}


# --- saved ------------------------------------------------------------------------------------


def test_what_a_checkpoint_must_have_is_what_no_other_log_and_no_checkpoint_has() -> None:
    rows = PagedRows()
    forwarder, logs = a_forwarder(rows)
    tell(forwarder, 1, 2)
    forwarder.tick(0)
    forwarder.add(told(3))
    forwarder.add(told(1, ELSEWHERE))
    assert [(shard, k) for shard, k, _ in forwarder.take_unsaved()] == [
        (THERE, 1),
        (THERE, 2),
        (THERE, 3),
        (ELSEWHERE, 1),
    ]
    logs.answer()
    assert [(shard, k) for shard, k, _ in forwarder.take_unsaved()] == [(THERE, 3), (ELSEWHERE, 1)]
    rows.save_all(forwarder)
    forwarder.add(told(4))
    assert [(shard, k) for shard, k, _ in forwarder.take_unsaved()] == [(THERE, 4)]
    assert (forwarder.unsaved, forwarder.unsaved_bytes) == (1, TOLD_BYTES)


def test_saved_forwards_are_removed_once_the_other_log_has_them_and_not_before() -> None:
    rows = PagedRows()
    forwarder, logs = a_forwarder(rows, ForwarderLimits(batch=2))
    tell(forwarder, 1, 4)
    rows.save_all(forwarder)
    forwarder.tick(0)
    logs.answer(durable=False)
    forwarder.tick(RETRY_MS)
    assert rows.saved() == [1, 2, 3, 4]
    logs.answer()
    forwarder.tick(RETRY_MS + 1)
    assert rows.saved() == [3, 4]
    logs.answer_all()
    rows.fails = True
    forwarder.tick(RETRY_MS + 2)
    assert rows.saved() == [3, 4]
    rows.fails = False
    forwarder.tick(RETRY_MS + 3)
    assert (rows.saved(), logs.logs) == ([], {THERE: [1, 2, 3, 4]})


def test_what_is_delivered_while_it_is_being_saved_is_removed_afterwards() -> None:
    rows = PagedRows()
    forwarder, logs = a_forwarder(rows)
    tell(forwarder, 1, 2)
    taken = forwarder.take_unsaved()
    forwarder.tick(0)
    logs.answer()
    rows.save(Checkpoint(1, 1, forwards=taken), lambda _: None)
    forwarder.saved(taken)
    forwarder.tick(1)
    assert (rows.saved(), logs.under_way, rows.read) == ([], [], [])


def test_while_a_log_is_down_only_the_first_stay_in_memory_and_the_rest_is_read_back_in_order() -> None:
    rows = PagedRows()
    forwarder, logs = a_forwarder(rows, ForwarderLimits(batch=3, page=4))
    for low in (1, 6, 11):
        tell(forwarder, low, low + 4)
        rows.save_all(forwarder)
    tell(forwarder, 16, 17)
    forwarder.tick(0)
    logs.answer(durable=False)
    assert (forwarder.unsaved, rows.read) == (2, [])
    forwarder.tick(RETRY_MS)
    logs.answer_all()
    forwarder.tick(RETRY_MS + 1)
    assert logs.logs == {THERE: list(range(1, 18))}
    assert rows.read == [(THERE, 3, 15, 4), (THERE, 7, 15, 4), (THERE, 11, 15, 4)]
    assert rows.saved() == []


def test_what_is_saved_while_a_page_is_read_is_read_after_it() -> None:
    rows = PagedRows()
    forwarder, logs = a_forwarder(rows, ForwarderLimits(batch=1, page=4))
    tell(forwarder, 1, 3)
    rows.save_all(forwarder)
    rows.holds = True
    forwarder.tick(0)
    logs.answer()
    tell(forwarder, 4, 5)
    rows.save_all(forwarder)
    tell(forwarder, 6, 6)
    while rows.held:
        rows.held.pop()()
        logs.answer_all()
    assert (rows.read, logs.logs) == ([(THERE, 1, 3, 4), (THERE, 3, 5, 4)], {THERE: [1, 2, 3, 4, 5, 6]})


def test_what_cannot_be_read_back_is_asked_for_again_and_nothing_overtakes_it() -> None:
    rows = PagedRows()
    rows.save(Checkpoint(1, 1, forwards=[(THERE, 2, b"two")]), lambda _: None)
    sent: list[Sequence[bytes]] = []
    forwarder = Forwarder(HERE, lambda _shard, records, _done: sent.append(records), rows)
    forwarder.begin({THERE: 2})
    forwarder.add(told(3))
    rows.fails = True
    forwarder.tick(0)
    forwarder.tick(RETRY_MS - 1)
    assert (sent, len(rows.read)) == ([], 1)
    rows.fails = False
    forwarder.tick(RETRY_MS)
    assert sent == [[b"two"]]


# --- from a checkpoint on ---------------------------------------------------------------------


def test_what_was_saved_goes_out_before_what_is_told_from_the_checkpoint_on() -> None:
    rows = PagedRows()
    before, _ = a_forwarder(rows)
    tell(before, 1, 3)
    rows.save_all(before)
    tell(before, 4, 4)
    after, logs = a_forwarder(rows)
    after.begin({THERE: 3, ELSEWHERE: 8})
    tell(after, 4, 5)
    after.add(told(9, ELSEWHERE))
    after.tick(0)
    assert waiting(logs) == [(THERE, [1, 2, 3]), (ELSEWHERE, [9])]
    logs.answer_all()
    after.tick(1)
    assert (logs.logs, rows.saved()) == ({THERE: [1, 2, 3, 4, 5], ELSEWHERE: [9]}, [])


def test_what_an_owner_saved_above_the_checkpoint_is_not_sent_from_the_rows() -> None:
    rows = PagedRows()
    before, _ = a_forwarder(rows)
    tell(before, 1, 3)
    rows.save_all(before)
    after, logs = a_forwarder(rows)
    after.begin({THERE: 2})
    after.tick(0)
    logs.answer_all()
    assert logs.logs == {THERE: [1, 2]}


def test_after_a_new_beginning_it_tells_what_it_is_given_and_heeds_no_older_answer() -> None:
    forwarder, logs = a_forwarder()
    tell(forwarder, 1, 2)
    forwarder.tick(0)
    forwarder.begin({THERE: 1})
    forwarder.add(told(2))
    forwarder.tick(1)
    assert waiting(logs) == [(THERE, [1, 2]), (THERE, [2])]
    logs.answer()  # the answer to what was told before
    forwarder.tick(2)
    assert (forwarder.unsaved, len(logs.under_way)) == (1, 1)
    logs.answer()
    assert forwarder.unsaved == 0


# --- with the loop ----------------------------------------------------------------------------


def a_rig(logs: Logs, log: HeldLog | None = None, rows: HeldRows | None = None, ms: int = 10**9) -> Rig:
    """Bob's shard, one of four."""
    rows = rows or HeldRows()
    return Rig(
        log, rows, forwarder=Forwarder(BOBS, logs.append, rows), new_state=lambda: StrictState(BOBS, SHARDS),
        limits=LoopLimits(saver=SaverLimits(checkpoint_ms=ms)),
    )  # fmt: skip


def test_a_checkpoint_is_saved_although_the_log_over_there_is_down() -> None:
    logs = Logs()
    rig = a_rig(logs, ms=1_000)
    rig.loop.recover()
    rig.say(SERVER, a_person("bob"))
    for n in (1, 2):
        rig.say(PHONE, a_message(n))
        rig.say(TABLET, Acked(NORMAL, n))
        rig.wait(1_000)
        logs.answer(durable=False)
    assert [saved.upto for saved in rig.saved] == [3, 5]
    assert sorted(rig.rows.forwards) == [(ALICES, 1), (ALICES, 2)]
    rig.wait(RETRY_MS)
    logs.answer_all()
    rig.wait(1)
    assert (logs.logs, rig.rows.forwards) == ({ALICES: [1, 2]}, {})


def test_sends_are_refused_while_more_forwards_wait_than_may_be_unsaved() -> None:
    logs, rows = Logs(), HeldRows()
    limits = LoopLimits(unsaved_bytes=1, saver=SaverLimits(checkpoint_ms=10**9))
    forwarder = Forwarder(BOBS, logs.append, rows)
    rig = Rig(rows=rows, forwarder=forwarder, new_state=lambda: StrictState(BOBS, SHARDS), limits=limits)
    rig.loop.recover()
    rig.say(SERVER, a_person("bob"))
    rig.say(PHONE, a_message(1))
    rig.loop.save(at_once=True)
    rig.say(TABLET, Acked(NORMAL, 1))
    assert (forwarder.unsaved, rig.loop.unsaved_bytes, rig.loop.overloaded) == (1, forwarder.unsaved_bytes, True)
    via = rig.say(PHONE, a_message(2))
    assert rig.answers(via) == [Overloaded()]
    rig.loop.save(at_once=True)
    assert (rig.loop.unsaved_bytes, rig.loop.overloaded) == (0, False)


def test_a_rebuilding_tells_everything_behind_the_checkpoint_again_and_once() -> None:
    logs = Logs()
    rig = a_rig(logs)
    rig.loop.recover()
    rig.say(SERVER, a_person("bob"))
    for n in (1, 2):
        rig.say(PHONE, a_message(n))
        rig.say(TABLET, Acked(NORMAL, n))
    rig.loop.fell_behind()
    rig.wait(1)
    logs.answer_all()
    rig.wait(1)
    logs.answer_all()
    assert logs.logs == {ALICES: [1, 2]}


def test_a_takeover_tells_again_what_was_saved_and_what_stands_behind_the_checkpoint() -> None:
    log, rows = HeldLog(), HeldRows()
    first = a_rig(Logs(), log, rows)
    first.loop.recover()
    first.say(SERVER, a_person("bob"))
    for n in (1, 2, 3):
        first.say(PHONE, a_message(n))
        first.say(TABLET, Acked(NORMAL, n))
        if n == 2:
            first.loop.save(at_once=True)
    assert sorted(rows.forwards) == [(ALICES, 1), (ALICES, 2)]
    logs = Logs()
    second = a_rig(logs, log, rows)
    second.loop.recover()
    second.wait(1)
    assert waiting(logs) == [(ALICES, [1, 2])]
    logs.answer_all()
    second.wait(1)
    assert (logs.logs, rows.forwards) == ({ALICES: [1, 2, 3]}, {})
