"""Messages for later, for an app: the methods of `Client` that are about them.

Knows:   what a person may mean by a time.
Never:   decides anything about a message: the machine and the server do.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from datetime import datetime, timedelta

from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.content import Content
from nightmail.model.group_chain import is_group
from nightmail.model.limits import FoldLimits
from nightmail.model.words import Kind

from .contacts import handle_in
from .errors import Misused
from .group_client import GroupClient
from .groups.group import Group
from .receipt import Receipt
from .schedule_errors import BadTime
from .schedules.scheduled import ScheduledMessage

AHEAD_MS = FoldLimits().schedule_ahead_ms
"""So far ahead a message may be scheduled, as servers have it."""


class ScheduleClient(GroupClient):
    """A part of `Client`."""

    @abstractmethod
    def _account(self, peer: str | int | Group) -> int: ...

    async def _whom(self, to: str | int | Group) -> tuple[int, str]:
        """The account or group that is meant, and the handle by which the person named it; empty: by none."""
        if isinstance(to, str):
            account, handle, _ = await self._find(to)
            return account, handle
        return self._account(to), ""

    async def schedule(
        self, to: str | int | Group, text: str | Content, *, at: datetime | None = None,
        delay: float | timedelta | None = None, life_ms: int | None = None,
    ) -> Receipt:  # fmt: skip
        """Have a message delivered later: `at` a time with its zone, or after a `delay` (seconds, or a timedelta), by
        this device's clock; at most 14 days ahead.

        When this returns, it is durable here. It is sealed now, and the server delivers it at its time, also if this
        device is off then. Works offline: it is handed to the server by the next connection; if its time has passed by
        more than a minute then, it has failed (`time_past`). `ScheduleChanged` tells what becomes of it. The receipt is
        that of the message: it is *sent* when it was delivered to the conversation, and *failed* if that never happens
        (`cancelled`, if it was cancelled).

        `to` and `life_ms` are those of `send`. Raises BadTime, TooLarge, Misused, GroupError.
        """
        content = text if isinstance(text, Content) else Content(Kind.TEXT, text)
        if content.kind is Kind.CONTROL:
            raise Misused("control messages are the client's own")
        driver = self._open_driver()
        deliver_at = moment_of(driver.clock(), at, delay)
        peer, handle = await self._whom(to)
        with driver.working() as machine:
            if handle:
                machine.learn_handle(peer, handle, driver.clock())
            row = machine.schedule(peer, content, deliver_at, driver.clock(), life_ms=life_ms)
        receipt = self._waiters.follow(Receipt(row.id))
        await driver.committed()
        return receipt

    async def cancel(self, message_id: str) -> None:
        """Take a message for later back, or a call to a webhook, of whichever device of this account. Returns when that
        is certain: it is never delivered then.

        If this device is offline, it waits for the server. A message of this device stays to be cancelled, also if the
        caller no longer waits. Raises NotCancelled if it was too late, or if nothing has that id.
        """
        driver = self._open_driver()
        waiting = self._waiters.cancelled(message_id)
        with driver.working() as machine:
            machine.cancel(message_id, driver.clock())
        await driver.committed()
        await waiting

    def scheduled(self) -> list[ScheduledMessage]:
        """The messages for later that this device knows, by their time; those that have ended for 7 days."""
        return [self._shown(row) for row in self._store.schedules()]

    def _shown(self, row: ScheduledRow) -> ScheduledMessage:
        if not is_group(row.to):
            mine = row.to == self.identity.account
            return ScheduledMessage.of(row, self.identity.handle if mine else handle_in(self._store, row.to))
        group = self._store.group(row.to)
        return ScheduledMessage.of(row, group.name if group else "")


def moment_of(now: int, at: datetime | None, delay: float | timedelta | None) -> int:
    """The time that is meant, in milliseconds since 1970. Raises BadTime."""
    if (at is None) == (delay is None):
        word = "no_time" if at is None else "two_times"
        raise BadTime(word, "say when: either `at` or `delay`")
    if at is not None:
        moment = _of_time(at)
    else:
        assert delay is not None
        moment = now + _of_delay(delay)
    if moment < now:
        raise BadTime("time_past", "that time has passed")
    if moment > now + AHEAD_MS:
        raise BadTime("too_far_off", f"a message can be scheduled at most {AHEAD_MS // 86_400_000} days ahead")
    return moment


def _of_time(at: datetime) -> int:
    if at.utcoffset() is None:
        raise BadTime("not_a_time", "a time needs its zone")
    return math.ceil(at.timestamp() * 1_000)


def _of_delay(delay: float | timedelta) -> int:
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if not math.isfinite(seconds):
        raise BadTime("not_a_time", "a delay is a number of seconds")
    if seconds < 0:
        raise BadTime("time_past", "a delay is not negative")
    return math.ceil(min(seconds, AHEAD_MS) * 1_000)
