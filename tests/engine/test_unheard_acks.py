from __future__ import annotations

from nightmail.engine.unheard_acks import LISTED, UnheardAcks
from nightmail.model.records import Acked, ReceiptsAcked, Record, Ticked
from nightmail.model.words import Lane

PHONE, TABLET = 0x1001, 0x1002
NORMAL, HIGH = Lane.NORMAL, Lane.HIGH


def kept(*records: Record) -> list[Record]:
    unheard = UnheardAcks()
    unheard.keep(records)
    has_some, again = bool(unheard), unheard.take()
    assert (has_some, unheard.take()) == (bool(again), [])
    return again


def test_of_each_queue_the_farthest_is_said_again_once() -> None:
    far, receipts = Record(PHONE, 0, Acked(NORMAL, 7)), Record(PHONE, 0, ReceiptsAcked(5))
    others = [Record(PHONE, 0, Acked(HIGH, 1)), Record(TABLET, 0, Acked(NORMAL, 2))]
    near = [Record(PHONE, 0, Acked(NORMAL, 6)), Record(PHONE, 0, ReceiptsAcked(4))]
    assert kept(far, receipts, *others, *near) == [far, receipts, *others]


def test_what_somebody_waits_for_and_what_is_no_acknowledgement_is_not_said_again() -> None:
    assert kept(Record(PHONE, 9, Acked(NORMAL, 7)), Record(0, 0, Ticked())) == []


def test_what_an_earlier_one_could_not_open_stays_unreadable() -> None:
    first, second = Acked(NORMAL, 5, (2, 4)), Acked(NORMAL, 9, (4, 8))
    together = [Record(PHONE, 0, Acked(NORMAL, 9, (2, 4, 8)))]
    assert kept(Record(PHONE, 0, first), Record(PHONE, 0, second)) == together
    assert kept(Record(PHONE, 0, second), Record(PHONE, 0, first)) == together


def test_no_more_is_acknowledged_than_can_be_listed() -> None:
    first, second = tuple(range(1, LISTED + 1)), tuple(range(LISTED + 1, LISTED + 10))
    records = [Record(PHONE, 0, Acked(NORMAL, LISTED, first)), Record(PHONE, 0, Acked(NORMAL, 900, second))]
    assert kept(*records) == [Record(PHONE, 0, Acked(NORMAL, LISTED, first))]
