"""Messages for later, as an app asks for them."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightmail.client.errors import DeliveryFailed, Misused
from nightmail.client.schedule_client import AHEAD_MS, moment_of
from nightmail.client.schedule_errors import BadTime, NotCancelled
from nightmail.client.sync import SyncClient
from nightmail.e2ee.content import Content
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind
from tests.client.harbour import QUICK, Harbour, harbour

NOW = 1_700_000_000_000


def at_ms(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)


def test_a_time_is_said_in_one_of_two_ways() -> None:
    assert moment_of(NOW, at_ms(NOW + 5_000), None) == NOW + 5_000
    assert moment_of(NOW, None, 5) == moment_of(NOW, None, timedelta(seconds=5)) == NOW + 5_000
    assert moment_of(NOW, None, 0.0001) == NOW + 1
    assert moment_of(NOW, None, 0) == NOW
    assert moment_of(NOW, None, AHEAD_MS / 1_000) == NOW + AHEAD_MS


@pytest.mark.parametrize(
    ("at", "delay", "word"),
    [
        (None, None, "no_time"),
        (at_ms(NOW + 5_000), 5, "two_times"),
        (None, math.nan, "not_a_time"),
        (None, math.inf, "not_a_time"),
        (None, -math.inf, "not_a_time"),
        (None, -0.001, "time_past"),
        (None, timedelta(seconds=-1), "time_past"),
        (at_ms(NOW - 1), None, "time_past"),
        (at_ms(NOW).replace(tzinfo=None), None, "not_a_time"),
        (at_ms(NOW + AHEAD_MS + 1_000), None, "too_far_off"),
        (None, AHEAD_MS / 1_000 + 1, "too_far_off"),
        (None, 1e300, "too_far_off"),
    ],
)
def test_a_time_that_is_none_is_refused(at: datetime | None, delay: float | timedelta | None, word: str) -> None:
    with pytest.raises(BadTime) as refused:
        moment_of(NOW, at, delay)
    assert refused.value.word == word


def test_a_script_schedules_lists_and_cancels(tmp_path: Path) -> None:
    def script(place: Harbour, profile: Path) -> None:
        with SyncClient(profile, [place.address], limits=QUICK) as alice:
            first = alice.schedule("bob", "later", delay=3_600)
            second = alice.schedule("bob", "much later", at=datetime.now(UTC) + timedelta(days=2))
            with pytest.raises(BadTime):
                alice.schedule("bob", "never", delay=math.nan)
            with pytest.raises(Misused):
                alice.schedule("bob", Content(Kind.CONTROL), delay=1)
            listed = alice.scheduled()
            assert [(each.id, each.handle, each.text) for each in listed] == [
                (first, "bob", "later"),
                (second, "bob", "much later"),
            ]
            alice.cancel(first, timeout=120)
            alice.cancel(first, timeout=120)
            assert [(each.state, each.text) for each in alice.scheduled()] == [
                (ScheduleState.CANCELLED, ""),
                (listed[1].state, "much later"),
            ]
            with pytest.raises(NotCancelled) as refused:
                alice.cancel("1367e18d9b02f001:1700000000000:00001:abcd", timeout=120)
            assert refused.value.word == "unknown_schedule"

    async def story() -> None:
        async with harbour() as place:
            place.profile(tmp_path, "bob")
            place.town.now = int(datetime.now(UTC).timestamp() * 1_000)
            await asyncio.to_thread(script, place, place.profile(tmp_path, "alice"))

    asyncio.run(story())


def test_the_receipt_of_a_cancelled_one_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            place.profile(tmp_path, "bob")
            async with place.client(tmp_path, "alice") as alice:
                receipt = await alice.schedule("bob", "later", delay=3_600)
                await alice.cancel(receipt.message_id)
                with pytest.raises(DeliveryFailed) as failed:
                    await receipt.sent()
                assert failed.value.reason == "cancelled"

    asyncio.run(story())
