"""A caller that waits is woken by its event, or when no event will come any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from nightmail.client.errors import ClientError, Misused
from nightmail.client.events import DeviceLinked, DeviceNotLinked, Reachable, SentAck
from nightmail.client.messages import Tick
from nightmail.client.receipt import Receipt
from nightmail.client.waiters import Waiters

LAPTOP, TABLET = 7, 8


async def started(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    return task


def test_a_caller_that_waits_for_a_device_is_told_of_that_one_alone() -> None:
    async def story() -> None:
        waiting = Waiters()
        for device in (LAPTOP, TABLET):
            waiting.expect(device)
        first, second = await started(waiting.linked(LAPTOP)), await started(waiting.linked(TABLET))
        waiting.tell(DeviceLinked(LAPTOP))
        await first
        assert not second.done()
        waiting.tell(DeviceNotLinked(TABLET, "it did not come in time"))
        with pytest.raises(Misused, match="did not come in time"):
            await second
        await waiting.linked(LAPTOP)  # nobody expects it any more

    asyncio.run(story())


def test_who_is_cancelled_takes_nothing_from_the_others() -> None:
    async def story() -> None:
        waiting = Waiters()
        waiting.begin(is_reachable=False)
        impatient, patient = await started(waiting.reachable()), await started(waiting.reachable())
        impatient.cancel()
        await asyncio.wait([impatient])
        waiting.tell(Reachable())
        await patient

    asyncio.run(story())


def test_a_receipt_moves_only_by_what_is_said_of_its_own_message() -> None:
    waiting = Waiters()
    receipt, other = waiting.follow(Receipt("one")), waiting.follow(Receipt("two"))
    waiting.tell(SentAck("one", "", 1))
    assert (receipt.state, other.state) == (Tick.SENT, Tick.PENDING)
    assert waiting.receipt("one") is receipt
    assert waiting.receipt("three") is None


def test_nobody_waits_for_a_client_that_has_ended() -> None:
    async def story() -> None:
        waiting, end = Waiters(), ClientError("the end")
        waiting.begin(is_reachable=False)
        waiting.expect(LAPTOP)
        receipt = waiting.follow(Receipt("one"))
        tasks = [await started(work) for work in (waiting.linked(LAPTOP), waiting.reachable(), receipt.sent())]
        waiting.end(end)
        assert await asyncio.gather(*tasks, return_exceptions=True) == [end, end, end]

    asyncio.run(story())
