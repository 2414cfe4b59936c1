"""News of schedules: the first at once, what follows together."""

from __future__ import annotations

from nightmail.core.state import NEWEST_FOLD
from nightmail.gateway.pump import NEWS_MS
from nightmail.model.ids import SERVER
from nightmail.model.records import Acked, Envelope, FoldRaised, Scheduled
from nightmail.model.schedule_rows import PairContent, PairTarget
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import FromServer, Receipts
from tests.gateway.rig import BEN, PHONE, TABLET, Town, a_message, a_town

TAG = bytes(16)


def a_schedule(town: Town, n: int, in_ms: int) -> Scheduled:
    envelope = Envelope(TABLET, 7, b"later")
    ident = f"{PHONE:x}:{town.clock}:{n:05d}:x9k2"
    return Scheduled(
        ident, TAG, Kind.TEXT, 0, town.clock + in_ms, PairTarget(BEN), PairContent(1, (envelope,), ())
    )  # fmt: skip


def serials(items: list[FromServer]) -> list[list[int]]:
    """What each frame of receipts says about schedules."""
    return [
        receipt.numbers
        for item in items
        if isinstance(item, Receipts)
        for receipt in item.receipts
        if receipt.key[0] == SERVER
    ]


def test_the_first_news_of_a_schedule_come_at_once_and_those_that_follow_come_together() -> None:
    town = a_town()
    town.fold(SERVER, FoldRaised(NEWEST_FOLD))
    ada = town.connect(PHONE)
    for n in range(1, 5):
        town.fold(PHONE, a_schedule(town, n, 100 * n))
    town.wait(150)
    assert serials(ada.take()) == [[1, 1]]
    town.wait(250)
    assert ada.take() == []
    town.wait(NEWS_MS)
    assert serials(ada.take()) == [[1, 4]]


def test_receipts_of_messages_that_come_shortly_after_news_wait_as_long() -> None:
    town = a_town()
    town.fold(SERVER, FoldRaised(NEWEST_FOLD))
    ada = town.connect(PHONE)
    town.fold(PHONE, a_schedule(town, 1, 100))
    town.wait(150)
    assert len(ada.take()) == 1
    town.fold(TABLET, Acked(Lane.NORMAL, 1))
    town.turn()
    assert ada.take() == []
    town.wait(NEWS_MS)
    [delivered] = ada.take()
    assert isinstance(delivered, Receipts)
    assert [receipt.key[0] for receipt in delivered.receipts] == [PHONE]


def test_messages_do_not_wait_for_news() -> None:
    town = a_town()
    town.fold(SERVER, FoldRaised(NEWEST_FOLD))
    ada = town.connect(PHONE)
    town.fold(PHONE, a_schedule(town, 1, 100))
    town.wait(150)
    ada.take()
    town.fold(TABLET, a_message(1, by=TABLET, to=PHONE))
    assert ada.numbers() == [1]
