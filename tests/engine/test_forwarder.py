"""Forwards: each shard's log gets them in their order, and at least once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nightmail.engine.forwarder import BATCH, RETRY_MS, Forwarder
from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits
from nightmail.model.effects import Forward
from nightmail.model.ids import SERVER, shard_of
from nightmail.model.records import Acked, Forwarded, Receipted, Record, decode_record
from nightmail.model.words import Lane, MessageState, Reason
from sim.judges.strict import StrictState
from tests.engine.rig import ALICE, BOB, PHONE, TABLET, HeldLog, HeldRows, Rig, a_message, a_person

NORMAL = Lane.NORMAL
HERE, THERE, ELSEWHERE = 0, 1, 2


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


def a_forwarder() -> tuple[Forwarder, Logs]:
    logs = Logs()
    return Forwarder(HERE, logs.append), logs


def test_a_forward_says_who_tells_and_as_the_which() -> None:
    seen: list[Record] = []
    forwarder = Forwarder(7, lambda _shard, records, _done: seen.extend(map(decode_record, records)))
    forwarder.add(3, told(1))
    forwarder.tick(0)
    assert seen == [Record(SERVER, 0, Forwarded(7, 1, told(1).body))]


def test_each_shard_is_told_in_order_and_one_batch_at_a_time() -> None:
    forwarder, logs = a_forwarder()
    for k in (1, 2):
        forwarder.add(k, told(k))
        forwarder.add(k, told(k, ELSEWHERE))
    forwarder.tick(0)
    forwarder.add(3, told(3))
    forwarder.tick(1)
    assert [(shard, ks) for shard, ks, _ in logs.under_way] == [(THERE, [1, 2]), (ELSEWHERE, [1, 2])]
    logs.answer_all()
    assert logs.logs == {THERE: [1, 2, 3], ELSEWHERE: [1, 2]}
    forwarder.tick(10_000)
    assert logs.under_way == []


def test_one_batch_follows_the_other_without_waiting_for_a_tick() -> None:
    forwarder, logs = a_forwarder()
    for k in range(1, 2 * BATCH + 2):
        forwarder.add(k, told(k))
    forwarder.tick(0)
    sizes: list[int] = []
    while logs.under_way:
        sizes.append(len(logs.under_way[0][1]))
        logs.answer()
    assert (sizes, logs.logs[THERE]) == ([BATCH, BATCH, 1], list(range(1, 2 * BATCH + 2)))


def test_after_a_failure_it_starts_again_from_there_and_nothing_overtakes() -> None:
    forwarder, logs = a_forwarder()
    for k in (1, 2):
        forwarder.add(k, told(k))
    forwarder.tick(0)
    forwarder.add(3, told(3))
    logs.answer(durable=False)
    forwarder.tick(RETRY_MS - 1)
    assert logs.under_way == []
    forwarder.tick(RETRY_MS)
    assert [ks for _, ks, _ in logs.under_way] == [[1, 2, 3]]
    logs.answer_all()
    assert logs.logs == {THERE: [1, 2, 3]}


def test_what_failed_and_was_kept_all_the_same_is_told_again() -> None:
    forwarder, logs = a_forwarder()
    forwarder.add(1, told(1))
    forwarder.tick(0)
    logs.answer(durable=False, kept=True)
    forwarder.tick(RETRY_MS)
    logs.answer_all()
    assert logs.logs == {THERE: [1, 1]}


def test_one_shard_that_fails_does_not_hold_up_another() -> None:
    forwarder, logs = a_forwarder()
    forwarder.add(1, told(1))
    forwarder.tick(0)
    logs.answer(durable=False)
    forwarder.add(2, told(1, ELSEWHERE))
    forwarder.tick(1)
    logs.answer_all()
    assert logs.logs == {ELSEWHERE: [1]}


def test_settled_means_that_all_told_up_to_there_is_durable_everywhere() -> None:
    forwarder, logs = a_forwarder()
    assert forwarder.settled(99)
    forwarder.add(3, told(1))
    forwarder.add(5, told(1, ELSEWHERE))
    assert [forwarder.settled(upto) for upto in (2, 3, 5)] == [True, False, False]
    forwarder.tick(0)
    assert not forwarder.settled(3)
    logs.answer()
    assert [forwarder.settled(upto) for upto in (3, 4, 5)] == [True, True, False]
    logs.answer(durable=False)
    assert not forwarder.settled(5)
    forwarder.tick(RETRY_MS)
    logs.answer()
    assert forwarder.settled(5)


def test_after_a_restart_it_tells_what_it_is_given_anew_and_heeds_no_older_answer() -> None:
    forwarder, logs = a_forwarder()
    for k in (1, 2):
        forwarder.add(k, told(k))
    forwarder.tick(0)
    forwarder.restart()
    assert forwarder.settled(99)
    forwarder.add(2, told(2))
    forwarder.tick(1)
    late, present = logs.under_way
    assert (late[1], present[1]) == ([1, 2], [2])
    logs.answer()  # the answer of an earlier life
    forwarder.tick(2)
    assert (forwarder.settled(2), len(logs.under_way)) == (False, 1)
    logs.answer()
    assert forwarder.settled(2)


# --- with the loop ----------------------------------------------------------------------------


def test_a_checkpoint_waits_until_what_it_told_is_durable_over_there() -> None:
    shards, logs = 4, Logs()
    here = shard_of(BOB, shards)
    forwarder = Forwarder(here, logs.append)
    seldom = LoopLimits(saver=SaverLimits(checkpoint_ms=1_000))
    rig = Rig(limits=seldom, forwarder=forwarder, new_state=lambda: StrictState(here, shards))
    rig.loop.recover()
    rig.say(SERVER, a_person("bob"))
    rig.say(PHONE, a_message())
    rig.say(TABLET, Acked(NORMAL, 1))
    rig.wait(1_000)
    assert (rig.rows.given, [(shard, ks) for shard, ks, _ in logs.under_way]) == ([], [(shard_of(ALICE, shards), [1])])
    rig.wait(1_000)
    assert rig.rows.given == []
    logs.answer()
    rig.wait(1)
    assert [saved.upto for saved in rig.saved] == [3]


def test_a_rebuilding_tells_everything_behind_the_checkpoint_again_and_once() -> None:
    shards, logs = 4, Logs()
    here = shard_of(BOB, shards)
    forwarder = Forwarder(here, logs.append)
    rig = Rig(forwarder=forwarder, new_state=lambda: StrictState(here, shards))
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
    assert logs.logs == {shard_of(ALICE, shards): [1, 2]}


def test_a_takeover_tells_again_what_stands_behind_the_checkpoint() -> None:
    shards = 4
    here, log, rows = shard_of(BOB, shards), HeldLog(), HeldRows()
    told_by: list[list[int]] = []
    for _ in range(2):
        logs = Logs()
        rig = Rig(
            log, rows, forwarder=Forwarder(here, logs.append), new_state=lambda: StrictState(here, shards),
            limits=LoopLimits(saver=SaverLimits(checkpoint_ms=10**9)),
        )  # fmt: skip
        rig.loop.recover()
        if not log.last:
            rig.say(SERVER, a_person("bob"))
            rig.loop.save(at_once=True)
            rig.say(PHONE, a_message())
            rig.say(TABLET, Acked(NORMAL, 1))
        rig.wait(1)
        logs.answer_all()
        told_by.append(logs.logs[shard_of(ALICE, shards)])
    assert told_by == [[1], [1]]
