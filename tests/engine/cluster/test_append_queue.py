from __future__ import annotations

from collections.abc import Sequence

from nightmail.engine.cluster.append_queue import AppendQueue, QueueLimits
from nightmail.model.records import Acked, AnyBody, Record, decode_record
from nightmail.model.words import Lane
from tests.engine.cluster.rig import HeldSharedLog
from tests.engine.rig import PHONE, START, a_message

SHARD = 2


class Rig:
    def __init__(self, limits: QueueLimits | None = None) -> None:
        self.now = 0
        self.log = HeldSharedLog()
        self.log.holds = True
        self.unknown: list[Record] = []
        self.queue = AppendQueue(
            self.log, SHARD, lambda: START + self.now, lambda: self.now, self._on_unknown, limits or QueueLimits()
        )

    def _on_unknown(self, records: Sequence[Record]) -> None:
        self.unknown.extend(records)

    def add(self, *records: Record) -> None:
        for record in records:
            self.queue.add(record)
        self.queue.flush()

    def under_way(self) -> list[list[Record]]:
        return [[decode_record(data) for data in records] for _, _, records, _ in self.log.held]

    def stored(self) -> list[list[Record]]:
        return [[decode_record(data) for data in batch.records] for batch in self.log.batches[SHARD]]


def sent(n: int) -> Record:
    return Record(PHONE, n, a_message(n))


def unaddressed(upto: int) -> Record:
    body: AnyBody = Acked(Lane.NORMAL, upto)
    return Record(PHONE, 0, body)


def test_one_append_is_under_way_and_what_comes_meanwhile_goes_together() -> None:
    rig = Rig()
    rig.add(sent(1))
    rig.add(sent(2))
    rig.add(sent(3))
    assert rig.under_way() == [[sent(1)]]
    rig.log.succeed()
    assert rig.under_way() == [[sent(2), sent(3)]]
    rig.log.succeed()
    assert (rig.stored(), rig.queue.is_idle, rig.unknown) == ([[sent(1)], [sent(2), sent(3)]], True, [])


def test_an_append_holds_no_more_than_its_bounds() -> None:
    rig = Rig(QueueLimits(batch_records=2))
    rig.add(*map(sent, (1, 2, 3)))
    assert rig.under_way() == [[sent(1), sent(2)]]
    rig.log.succeed()
    assert rig.under_way() == [[sent(3)]]
    small = Rig()
    small.log.batch_bytes_max = 1
    small.add(sent(1), sent(2))
    assert small.under_way() == [[sent(1)]]


def test_after_an_unknown_outcome_askers_are_told_and_what_has_no_address_goes_again_first() -> None:
    rig = Rig(QueueLimits(retry_ms=300))
    rig.add(sent(1), unaddressed(5))
    rig.add(sent(2))
    rig.log.fail()
    assert (rig.unknown, rig.under_way(), rig.queue.is_idle) == ([sent(1)], [], False)
    rig.now = 299
    rig.queue.flush()
    assert rig.under_way() == []
    rig.now = 300
    rig.queue.flush()
    assert rig.under_way() == [[unaddressed(5), sent(2)]]


def test_it_is_full_while_too_many_bytes_wait() -> None:
    rig = Rig(QueueLimits(waiting_bytes=0))
    rig.add(sent(1))
    assert not rig.queue.is_full  # On its way: the log's business.
    rig.add(sent(2))
    assert rig.queue.is_full
    rig.log.succeed()
    assert not rig.queue.is_full


def test_a_batch_bears_the_time_at_which_it_goes() -> None:
    rig = Rig()
    rig.now = 50
    rig.add(sent(1))
    rig.now = 70
    rig.log.succeed()
    assert [batch.at for batch in rig.log.batches[SHARD]] == [START + 50]
