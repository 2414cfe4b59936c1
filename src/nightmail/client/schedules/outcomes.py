"""What became of messages for later. A delivered one stands in the history from then on, with ticks like any other.

Knows:   how an outcome changes a row, and what is deleted with it.
Touches: rows of schedules; own messages and their numbers.
Never:   shows a message twice: on another own device it may have come as a copy.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightmail.client.events import SentAck
from nightmail.client.machine.context import Context
from nightmail.client.messages import DeviceDelivery, Message, Tick, conversation_id
from nightmail.client.outbox.ticks import in_group
from nightmail.client.schedule_events import ScheduleChanged
from nightmail.client.store.rows import MessageNumber
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.timers.lives import counted
from nightmail.model.answers import ScheduleFate
from nightmail.model.group_chain import is_group
from nightmail.model.limits import DAY_MS
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Lane

SHOWN_MS = 7 * DAY_MS
"""How long one that has ended is still listed."""


class ScheduleOutcomes:
    def __init__(
        self, context: Context, deadlines: Deadlines, show: Callable[[Message], None],
        numbered: Callable[[MessageNumber], None],
    ) -> None:  # fmt: skip
        """`show` stores a message and tells the app; `numbered` hears which number a message has got."""
        self._context, self._deadlines, self._show, self._numbered = context, deadlines, show, numbered

    def put(self, row: ScheduledRow) -> ScheduledRow:
        self._context.store.put_schedule(row)
        return row

    def tell(self, row: ScheduledRow) -> None:
        self._context.tell(ScheduleChanged(row.id, row.to, row.state, row.reason, row.deliver_at, row.is_stale))

    def take(self, row: ScheduledRow, fate: ScheduleFate, *, has_news: bool) -> ScheduledRow:
        """The server says how far it has come; `has_news`: and that there is more to ask."""
        before = row
        row = replace(row, by=fate.by or row.by, deliver_at=fate.deliver_at, has_news=has_news)
        match fate.state:
            case ScheduleState.DELIVERED:
                return self._delivered(row, fate)
            case ScheduleState.CANCELLED | ScheduleState.FAILED:
                return self.end(row, fate.state, fate.error)
            case ScheduleState.PENDING | ScheduleState.PROCESSING:
                row = self.put(replace(row, state=fate.state, is_stale=fate.is_stale))
                if (row.state, row.is_stale) != (before.state, before.is_stale):
                    self.tell(row)
                return row

    def end(self, row: ScheduledRow, state: ScheduleState, reason: str = "") -> ScheduledRow:
        """Final. Its content goes, unless the person may want to write it again."""
        is_kept = state is ScheduleState.FAILED and not row.life_ms
        row = replace(
            row, state=state, reason=reason, body=row.body if is_kept else b"", content=None, sealed_for=(),
            is_stale=False, has_news=False, cancelling=False, ended_at=max(1, self._context.now),
        )  # fmt: skip
        self.tell(row)
        return self.put(row)

    def forget(self) -> None:
        """Once a day: what ended long ago is no longer listed."""
        store, oldest = self._context.store, self._context.now - SHOWN_MS
        for row in store.schedules():
            if row.ended_at and row.ended_at < oldest:
                store.drop_schedule(row.id)

    def _delivered(self, row: ScheduledRow, fate: ScheduleFate) -> ScheduledRow:
        store, me = self._context.store, self._context.identity
        known = store.message(row.id)
        in_a_group = is_group(row.to)
        message = known or Message(
            id=row.id, peer=row.to, by=fate.by, own=True, at=fate.at, body=row.body, kind=row.kind,
            life_ms=row.life_ms, state=Tick.SENT, group_seq=fate.group_seq,
            # Only the device that sealed it knows for which devices.
            places={} if in_a_group or fate.by != me.device else {each: DeviceDelivery() for each in row.sealed_for},
        )  # fmt: skip
        number = MessageNumber(fate.by, row.to, Lane.NORMAL, fate.n, row.id)
        store.put_numbered(number)
        if in_a_group:
            store.put_numbered(in_group(message))
        ended = self.end(row, ScheduleState.DELIVERED)
        if known is None and not self._deadlines.is_gone(row.id):
            self._show(counted(self._context, message))
        self._context.tell(SentAck(row.id, conversation_id(me.account, row.to), fate.at))
        if in_a_group:
            self._context.signals.numbered_in_group(row.to, fate.group_seq)
        self._numbered(number)
        return ended
