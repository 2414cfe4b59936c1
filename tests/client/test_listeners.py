"""Listeners: each gets every event, and a slow one is told so."""

from __future__ import annotations

import asyncio

import pytest

from nightmail.client.errors import Lagging, Stopped
from nightmail.client.events import QueueEmpty
from nightmail.client.listeners import Listeners
from nightmail.client.messages import Message


def a_message(*, own: bool = False) -> Message:
    return Message(id="1001:1:1:a", peer=3, by=0x1001, own=own, body=b"hello")


def test_the_first_to_ask_for_messages_misses_none_and_own_ones_are_not_among_them() -> None:
    async def story() -> None:
        listeners = Listeners(10)
        listeners.tell(a_message())
        listeners.tell(a_message(own=True))
        listeners.tell(QueueEmpty())
        listeners.end(None)
        assert [message async for message in listeners.messages()] == [a_message()]

    asyncio.run(story())


def test_a_listener_that_lags_is_told_so_instead_of_filling_the_memory() -> None:
    async def story() -> None:
        listeners = Listeners(2)
        events = listeners.events()
        for _ in range(5):
            listeners.tell(QueueEmpty())
        assert [await anext(events), await anext(events)] == [QueueEmpty(), QueueEmpty()]
        with pytest.raises(Lagging):
            await anext(events)
        listeners.tell(QueueEmpty())
        assert await anext(events) == QueueEmpty()

    asyncio.run(story())


def test_a_listener_knows_whether_the_next_event_has_been_told() -> None:
    async def story() -> None:
        listeners = Listeners(2)
        events = listeners.events()
        seen = [events.has_next]
        listeners.tell(QueueEmpty())
        seen.append(events.has_next)
        await anext(events)
        assert [*seen, events.has_next] == [False, True, False]

    asyncio.run(story())


def test_a_client_that_was_stopped_says_so_to_its_listeners() -> None:
    async def story() -> None:
        listeners = Listeners(2)
        messages = listeners.messages()
        listeners.end(Stopped(4010, "removed"))
        with pytest.raises(Stopped):
            await anext(messages)

    asyncio.run(story())


def test_handlers_may_be_plain_or_async_and_one_that_fails_does_not_stop_the_others() -> None:
    async def story() -> None:
        listeners, told, failures = Listeners(2), list[str](), list[BaseException]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))

        @listeners.on(QueueEmpty)
        def fails(_: QueueEmpty) -> None:
            raise RuntimeError("an app's mistake")

        @listeners.on(QueueEmpty)
        def plain(_: QueueEmpty) -> None:
            told.append("plain")

        @listeners.on(QueueEmpty)
        async def later(_: QueueEmpty) -> None:
            told.append("async")

        listeners.tell(QueueEmpty())
        listeners.tell(a_message())
        await asyncio.sleep(0)
        await listeners.close()
        assert (told, [str(error) for error in failures]) == (["plain", "async"], ["an app's mistake"])
        assert (fails, plain, later) is not None

    asyncio.run(story())
