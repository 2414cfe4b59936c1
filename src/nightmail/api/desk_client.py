"""Submits records to the desk and awaits their answers; reads accounts and traces.

Knows:   the api's own line, and which request waits under which number on it.
Touches: the desk.
Never:   keeps a row: `view` copies what is needed while the desk shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nightmail.engine.ports import REF_BITS, Desk
from nightmail.model.answers import Answer, Done, Joined, Said
from nightmail.model.forms import Form
from nightmail.model.group_questions import GroupAnswer, MembersAsked, MembersShown
from nightmail.model.ids import SERVER
from nightmail.model.records import AnyBody, Record
from nightmail.model.refusals import Unavailable
from nightmail.model.roster import GroupReceipts
from nightmail.model.rows import Account
from nightmail.model.traces import Trace
from nightmail.model.words import PushPlatform

from .limits import HttpLimits
from .problems import problem, refused

T = TypeVar("T")

REF_MAX = (1 << REF_BITS) - 1


class DeskClient:
    """One for all requests."""

    def __init__(self, desk: Desk, form: Form, limits: HttpLimits, soon: Callable[[], None]) -> None:
        self._desk, self._form, self._limits, self._soon = desk, form, limits, soon
        self._waiting: dict[int, asyncio.Future[Said]] = {}
        self._ref = 0
        self._traces = 0
        self._line = desk.open_line(self._on_answer)

    def _on_answer(self, ref: int, said: Said) -> None:
        future = self._waiting.pop(ref, None)
        if future and not future.done():
            future.set_result(said)

    async def record(self, by: int, body: AnyBody) -> Answer:
        """Submit a record. Raises a Problem if it is refused, or not answered in time."""
        if wrong := self._form.check(by, body):
            raise refused(wrong)
        return await self._submit(by, body)

    async def command(self, body: AnyBody) -> None:
        """Tell every shard what only the operator may say. The caller has checked that it is the operator.

        Raises a Problem if one of them did not answer: what the others took stays, and the command may be repeated.
        """
        shards = range(self._desk.shards)
        for said in await asyncio.gather(*(self._submit(SERVER, body, shard) for shard in shards)):
            assert isinstance(said, Done)

    async def tell(self, shard: int, body: AnyBody) -> Answer:
        """Tell one shard what only the operator may say. The caller has checked that, and the body's bounds.

        Raises a Problem if it is refused.
        """
        return await self._submit(SERVER, body, shard)

    async def look(self, ask: Callable[[Callable[[T], None]], None]) -> T:
        """The answer to a question that takes a callback. Raises a Problem if it does not come in time."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def show(found: T) -> None:
            if not future.done():
                future.set_result(found)

        ask(show)
        return await self._wait(future)

    async def _submit(self, by: int, body: AnyBody, shard: int | None = None) -> Answer:
        """To the record's home, unless a shard is given."""
        # A number under which an earlier request still waits is skipped.
        ref = self._ref % REF_MAX + 1
        while ref in self._waiting:
            ref = ref % REF_MAX + 1
        self._ref = ref
        future = self._waiting[ref] = asyncio.get_running_loop().create_future()
        record = Record(by, self._line << REF_BITS | ref, body)
        if shard is None:
            self._desk.submit([record])
        else:
            self._desk.submit_to(shard, record)
        self._soon()
        try:
            said = await self._wait(future)
        finally:
            self._waiting.pop(ref, None)
        if isinstance(said, Answer):
            return said
        raise refused(said)

    async def join(self, by: int, body: AnyBody) -> Joined:
        said = await self.record(by, body)
        assert isinstance(said, Joined)
        return said

    async def done(self, by: int, body: AnyBody) -> None:
        said = await self.record(by, body)
        assert isinstance(said, Done)

    async def account(self, account: int, view: Callable[[Account], T]) -> T | None:
        """What `view` returns for the account; None if it does not exist or is closed."""
        return await self.row(account, lambda row: view(row) if row and row.devices and not row.closed else None)

    async def row(self, account: int, view: Callable[[Account | None], T]) -> T:
        """What `view` returns for the account's row, even if the account is closed."""
        return await self.look(lambda then: self._desk.account(account, lambda row: then(view(row))))

    async def push_platforms(self, devices: Sequence[int]) -> Mapping[int, PushPlatform]:
        """By whose service each of an account's devices is woken; of those that have a push token."""
        return await self.look(lambda then: self._desk.push_platforms(devices, then))

    @property
    def shards(self) -> int:
        return self._desk.shards

    async def group_receipts(self, device: int, group: int) -> GroupReceipts:
        """How much the authors in a group are told; nothing, if the device is not in it."""
        future: asyncio.Future[GroupReceipts] = asyncio.get_running_loop().create_future()

        def show(shown: GroupAnswer) -> None:
            if not future.done():
                future.set_result(shown.settings.receipts if isinstance(shown, MembersShown) else GroupReceipts.NONE)

        self._desk.about_group(MembersAsked(group, device, 0, 1), show)
        return await self._wait(future)

    async def trace(self, message_id: str) -> Trace:
        """The delivery log of a message. Few at a time, because each reads from the disk."""
        if self._traces >= self._limits.traces:
            raise problem("not_ready", "too many ask for the life of a message at the same time", retry_s=1)
        future: asyncio.Future[Trace | None] = asyncio.get_running_loop().create_future()

        def show(trace: Trace | None) -> None:
            self._traces -= 1
            if not future.done():
                future.set_result(trace)

        self._traces += 1
        self._desk.trace(message_id, show)
        if (trace := await self._wait(future)) is None:
            raise refused(Unavailable())
        return trace

    async def _wait(self, future: asyncio.Future[T]) -> T:
        try:
            return await asyncio.wait_for(future, self._limits.answer_ms / 1000)
        except TimeoutError:
            raise refused(Unavailable()) from None
