"""Receipts that can be waited for, and listeners that may be slow."""

from __future__ import annotations

import asyncio

import pytest

from nightmail.client.errors import DeliveryFailed, Misused
from nightmail.client.messages import Tick
from nightmail.client.receipt import Receipt


def test_a_later_state_settles_every_earlier_wait() -> None:
    async def story() -> None:
        receipt = Receipt("m")
        waits = [asyncio.ensure_future(wait) for wait in (receipt.sent(), receipt.delivered(), receipt.read())]
        await asyncio.sleep(0)
        receipt.move(Tick.DELIVERED)
        await waits[0]
        await waits[1]
        assert not waits[2].done()
        receipt.move(Tick.SENT)
        assert receipt.state is Tick.DELIVERED
        receipt.move(Tick.READ)
        await waits[2]

    asyncio.run(story())


def test_a_failed_message_raises_from_every_wait_and_says_why() -> None:
    async def story() -> None:
        receipt = Receipt("m")
        wait = asyncio.ensure_future(receipt.delivered())
        await asyncio.sleep(0)
        receipt.move(Tick.FAILED, "too_old")
        with pytest.raises(DeliveryFailed, match="too_old"):
            await wait
        with pytest.raises(DeliveryFailed):
            await receipt.sent()
        receipt.move(Tick.SENT)  # it was taken after all
        await receipt.sent()

    asyncio.run(story())


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def story() -> None:
        receipt = Receipt("m")
        wait = asyncio.ensure_future(receipt.sent())
        await asyncio.sleep(0)
        wait.cancel()
        await asyncio.wait([wait])
        assert receipt._waiters == []
        receipt.abandon(Misused("closed"))

    asyncio.run(story())
