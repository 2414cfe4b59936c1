"""Delivers events to the app: handlers by kind of event, and iterators with a bounded queue."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from .errors import ClientError, Lagging
from .events import Event
from .messages import Message

E = TypeVar("E")


class EventIterator(AsyncIterator[E], Generic[E]):
    """Ends when the client is closed; raises what ended the client otherwise, or Lagging."""

    def __init__(self, wants: Callable[[Event], bool], limit: int) -> None:
        self._wants, self._limit = wants, limit
        self._events: deque[Any] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = self._lagged = False
        self._error: ClientError | None = None

    @property
    def has_next(self) -> bool:
        """The next event has been told already."""
        return bool(self._events)

    def tell(self, event: Event) -> None:
        if self._lagged or not self._wants(event):
            return
        if len(self._events) >= self._limit:
            self._lagged = True
            return
        self._events.append(event)
        self._wake()

    def end(self, error: ClientError | None) -> None:
        self._ended, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> EventIterator[E]:
        return self

    async def __anext__(self) -> E:
        while not self._events:
            if self._lagged:
                self._lagged = False
                raise Lagging(self._limit)
            if self._ended:
                if self._error:
                    raise self._error
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._events.popleft()


class Listeners:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._handlers: list[tuple[type[Any], Callable[[Any], Any]]] = []
        # It collects from the start, so that the first call of `messages` misses none.
        self._first: EventIterator[Message] | None = EventIterator(_is_theirs, limit)
        self._listeners: list[EventIterator[Any]] = [self._first]
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: ClientError | None = None

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Awaitable[None] | None]], Callable[[E], Any]]:
        def add(handler: Callable[[E], Awaitable[None] | None]) -> Callable[[E], Any]:
            self._handlers.append((kind, handler))
            return handler

        return add

    def messages(self) -> EventIterator[Message]:
        first, self._first = self._first, None
        return first or self._add(EventIterator(_is_theirs, self._limit))

    def events(self) -> EventIterator[Event]:
        return self._add(EventIterator(lambda _: True, self._limit))

    def _add(self, listener: EventIterator[E]) -> EventIterator[E]:
        self._listeners.append(listener)
        return listener

    def tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener.tell(event)
        for kind, handler in self._handlers:
            if isinstance(event, kind):
                self._call(handler, event)

    def _call(self, handler: Callable[[Any], Any], event: Event) -> None:
        loop = asyncio.get_running_loop()
        try:
            result = handler(event)
        except Exception as error:  # noqa: BLE001  # an app's bug must not stop the client
            loop.call_exception_handler({"message": "a handler of the Nightmail client failed", "exception": error})
            return
        if inspect.isawaitable(result):
            task = loop.create_task(_await(result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def end(self, error: ClientError | None) -> None:
        for listener in self._listeners:
            listener.end(error)

    async def close(self) -> None:
        """Stop the handlers that still run."""
        # A handler may close the client: it must not wait for itself.
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _await(result: Awaitable[None]) -> None:
    await result


def _is_theirs(event: Event) -> bool:
    return isinstance(event, Message) and not event.own
