"""Messages for later, as this device asks for them: taken by the server, sealed again, cancelled, looked at.

Knows:   what each row waits for, and what the server was asked over this connection.
Touches: rows of schedules. Each is durable before anything of it leaves; its id makes every retry safe.
Never:   says that a message is cancelled before the server has said so, if the server may have it.

Of one message at most one question is open. The server's log decides between two devices that seal the same message
again, and between cancelling and its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from nightmail.client.link.framing import size_of
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.outbox.envelopes import new_id
from nightmail.client.schedule_events import CancelRefused, ScheduleChanged
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.note import NONCE_BYTES
from nightmail.model.answers import Done, Said, SchedulesFound, ScheduleTaken
from nightmail.model.group_chain import is_group
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Resealed, ScheduleCancelled, Scheduled, SchedulesAsked
from nightmail.model.refusals import (
    AlreadyEnded,
    AlreadySent,
    InProgress,
    RateLimited,
    Refusal,
    TimePast,
    UnknownSchedule,
)
from nightmail.model.schedule_rows import GroupTarget, PairTarget, ScheduleState
from nightmail.model.spans import Spans, add_span, contains, pairs
from nightmail.model.words import Kind
from nightmail.wire.items import Ask

from .outcomes import ScheduleOutcomes
from .sealing import ScheduleSealing, Unsealable

LOOKED_AT_ONCE = 64
HELD_MS = DAY_MS
"""To take an id so that nothing can be delivered under it, the message is scheduled so far ahead, and cancelled."""
GRACE_MS = 60_000
"""A server takes a message whose time has passed by no more than this, and delivers it at once."""
FORGOTTEN_MS = 7 * DAY_MS
"""A server remembers for so long at least what has become of a message."""
UNEXPECTED = "unexpected_answer"


class Scheduling:
    def __init__(self, context: Context, sealing: ScheduleSealing, outcomes: ScheduleOutcomes) -> None:
        self._context, self._sealing, self._outcomes = context, sealing, outcomes
        self.retry = Retry(context, self._go_on)
        self._asked: dict[str, int] = {}
        """Message → when the server was asked something about it that is not answered."""
        self._again: set[str] = set()
        """Messages of which there was news while the server was asked about them."""
        self._heard: Spans = []
        """Serials that there was news of over this connection."""
        self._repeated: set[str] = set()
        """Messages that the server was asked to take more than once."""
        self._stepping: set[str] = set()
        self._foreign: dict[str, None] = {}
        """Schedules that are to be cancelled, and that this device has no row of."""

    # --- what the person does -------------------------------------------------------------------

    def schedule(self, to: int, body: bytes, kind: Kind, life_ms: int, deliver_at: int) -> ScheduledRow:
        """Store a message for later. It keeps its id for good."""
        context = self._context
        row = ScheduledRow(
            id=new_id(context), to=to, kind=kind, body=body, life_ms=life_ms,
            nonce=context.secrets.draw(NONCE_BYTES), made_at=context.now, deliver_at=deliver_at,
            by=context.identity.device,
        )  # fmt: skip
        self._outcomes.put(row)
        self._step(row)
        return row

    def cancel(self, message_id: str) -> None:
        """Take a message back. What comes of it is told: `ScheduleChanged`, or `CancelRefused`."""
        row = self._context.store.schedule(message_id)
        if row is None:
            self._foreign[message_id] = None
            self._cancel_foreign(message_id)
        elif row.ended_at:
            self._tell_refused(row, _too_late(row.state))
        elif not row.asked_at and not row.serial:
            self._outcomes.end(row, ScheduleState.CANCELLED)
        else:
            self._step(self._outcomes.put(replace(row, cancelling=True)))

    def _tell_refused(self, row: ScheduledRow, word: str) -> None:
        if word:
            self._context.tell(CancelRefused(row.id, row.to, word))
        else:
            self._outcomes.tell(row)

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        self.retry.reset()
        self._go_on()

    def lost(self) -> None:
        self._asked.clear()
        self._again.clear()
        self._heard.clear()
        self.retry.lost()
        self._sealing.lost()

    def deadline(self) -> int | None:
        unanswered = min(self._asked.values(), default=None)
        dues = (self.retry.due, None if unanswered is None else unanswered + self._context.limits.answer_ms)
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        oldest = self._context.now - self._context.limits.answer_ms
        late = [ident for ident, at in self._asked.items() if at <= oldest]
        for ident in late:
            del self._asked[ident]
        self.retry.tick()
        if late:
            self._later()

    @property
    def is_settled(self) -> bool:
        """Nothing is under way. What waits for something that cannot be had now is not."""
        if self._asked or self._foreign:
            return False
        return self.retry.due is not None or not any(map(self._is_under_way, self._context.store.open_schedules()))

    def _is_under_way(self, row: ScheduledRow) -> bool:
        wants = not row.serial or row.has_news or row.cancelling or row.is_stale
        return wants and Scheduled.since <= self._context.server_since and not self._sealing.is_held(row)

    def unblocked(self, account: int) -> None:
        """An account's list, its keys or the person's consent are here."""
        self._step_all(row for row in self._context.store.open_schedules() if row.to == account)

    def group_goes_on(self, group: int) -> None:
        if self._context.online:
            self.unblocked(group)

    def key_changed(self, account: int) -> None:
        """What was sealed for devices of the former key is sealed again."""
        for row in self._context.store.open_schedules():
            if row.to == account and row.content is not None:
                self._outcomes.put(replace(row, content=None))

    def adopt(self, device: int) -> None:
        """The account has moved here from that device: what it has sealed would end with it."""
        for row in self._context.store.open_schedules():
            if row.by == device:
                self._step(self._outcomes.put(replace(row, is_stale=True)))

    def _later(self) -> None:
        """Something could not be had now. Many messages may say so at once: that is one failure."""
        if self.retry.due is None:
            self.retry.later()

    # --- how a row goes on ----------------------------------------------------------------------

    def _go_on(self) -> None:
        for ident in list(self._foreign):
            self._cancel_foreign(ident)
        self._step_all(self._context.store.open_schedules())
        self._look()

    def _step_all(self, rows: Iterable[ScheduledRow]) -> None:
        for row in list(rows):
            self._step(row)

    def _step_again(self, message_id: str) -> None:
        """What a message waited for is here."""
        if (row := self._context.store.schedule(message_id)) is not None:
            self._step(row)

    def _step(self, row: ScheduledRow) -> None:
        context, ident = self._context, row.id
        if not context.online or row.ended_at or ident in self._asked or ident in self._stepping:
            return
        if Scheduled.since > context.server_since:
            return  # the server is of an older version: the next one may take it
        self._stepping.add(ident)
        try:
            if row.cancelling:
                self._ask(row, ScheduleCancelled(context.identity.account, ident), self._cancelled)
            elif not row.serial:
                self._schedule(row, row.deliver_at)
            elif row.is_stale and not row.has_news:
                self._reseal(row)
        except Unsealable as error:
            self._unsealable(row, error.word)
        finally:
            self._stepping.discard(ident)

    def _unsealable(self, row: ScheduledRow, word: str) -> None:
        if row.serial:
            # The server has it, and says what becomes of it when nobody seals it again.
            self._outcomes.put(replace(row, is_stale=False))
        elif word == "keys_refused":
            self._later()
        else:
            self._outcomes.end(row, ScheduleState.FAILED, word)

    def _ask(
        self, row: ScheduledRow, body: Scheduled | Resealed | ScheduleCancelled,
        answered: Callable[[ScheduledRow, Said], None],
    ) -> None:  # fmt: skip
        self._asked[row.id] = self._context.now
        self._context.ask(body, partial(self._answered, row.id, answered))

    def _answered(self, ident: str, answered: Callable[[ScheduledRow, Said], None], said: Said) -> None:
        self._asked.pop(ident, None)
        row = self._context.store.schedule(ident)
        if row is None or row.ended_at:
            return
        if isinstance(said, RateLimited):
            self.retry.set_earlier(self._context.now + max(1, said.retry_ms))
        elif isinstance(said, Refusal) and said.retry:
            self._later()
        else:
            answered(row, said)

    # --- scheduling -----------------------------------------------------------------------------

    def _schedule(self, row: ScheduledRow, deliver_at: int) -> None:
        if row.content is None:
            sealed = self._sealing.seal(row, partial(self._step_again, row.id), self._later)
            if sealed is None:
                return
            row = replace(row, content=sealed.content, sealed_for=sealed.sealed_for)
        assert row.content is not None
        target = GroupTarget(row.to) if is_group(row.to) else PairTarget(row.to)
        tag = self._sealing.tag(row)
        body = Scheduled(row.id, tag, row.kind, row.life_ms, deliver_at, target, row.content)
        if size_of(Ask(0, body)) > self._context.frame_bytes:
            self._outcomes.end(row, ScheduleState.FAILED, "too_large")
            return
        if row.asked_at:
            self._repeated.add(row.id)
        row = self._outcomes.put(replace(row, asked_at=row.asked_at or max(1, self._context.now)))
        self._ask(row, body, self._scheduled)

    def _scheduled(self, row: ScheduledRow, said: Said) -> None:
        if isinstance(said, ScheduleTaken):
            self.retry.reset()
            # The news of it may have come before this answer: nobody knew the serial then.
            has_news = row.id in self._repeated or contains(self._heard, said.serial)
            self._repeated.discard(row.id)
            row = self._outcomes.put(replace(row, serial=said.serial, content=None, has_news=has_news))
            self._outcomes.tell(row)
            if row.cancelling:
                self._step(row)
            else:
                self._context.signals.schedule_taken(row)
            self._look()
        elif row.cancelling:
            self._outcomes.end(row, ScheduleState.CANCELLED)  # the server does not have it, and will not take it
        elif isinstance(said, TimePast) and self._may_be_forgotten(row):
            self._outcomes.end(row, ScheduleState.FAILED, "outcome_unknown")
        else:
            word = said.word if isinstance(said, Refusal) else UNEXPECTED
            self._outcomes.end(row, ScheduleState.FAILED, word)

    def _may_be_forgotten(self, row: ScheduledRow) -> bool:
        """Whether the server may have taken and delivered it, and has forgotten that by now."""
        in_time = row.asked_at <= row.deliver_at + GRACE_MS
        return in_time and self._context.now - row.deliver_at > FORGOTTEN_MS

    # --- sealing again --------------------------------------------------------------------------

    def _reseal(self, row: ScheduledRow) -> None:
        sealed = self._sealing.seal(row, partial(self._step_again, row.id), self._later)
        if sealed is not None:
            row = self._outcomes.put(replace(row, sealed_for=sealed.sealed_for))
            self._ask(row, Resealed(row.id, sealed.content), self._resealed)

    def _resealed(self, row: ScheduledRow, said: Said) -> None:
        self.retry.reset()
        if isinstance(said, ScheduleTaken):
            self._outcomes.put(replace(row, is_stale=False, by=self._context.identity.device))
        else:
            # Another device was faster, or it has ended.
            self._outcomes.put(replace(row, is_stale=False, has_news=True))
            self._look()

    # --- cancelling -----------------------------------------------------------------------------

    def _cancelled(self, row: ScheduledRow, said: Said) -> None:
        self.retry.reset()
        match said:
            case Done():
                self._outcomes.end(row, ScheduleState.CANCELLED)
            case UnknownSchedule() if not row.serial:
                # A copy of the request may still be under way. Once the id is taken, that copy changes nothing.
                self._schedule(row, self._context.now + HELD_MS)
            case AlreadySent() | InProgress() | AlreadyEnded() | UnknownSchedule():
                row = self._outcomes.put(replace(row, cancelling=False, has_news=bool(row.serial)))
                self._tell_refused(row, said.word)
                self._step(row)
                self._look()
            case _:
                self._outcomes.put(replace(row, cancelling=False))
                self._tell_refused(row, UNEXPECTED)

    def _cancel_foreign(self, ident: str) -> None:
        if self._context.online and ident not in self._asked:
            self._asked[ident] = self._context.now
            body = ScheduleCancelled(self._context.identity.account, ident)
            self._context.ask(body, partial(self._foreign_answered, ident))

    def _foreign_answered(self, ident: str, said: Said) -> None:
        self._asked.pop(ident, None)
        if ident not in self._foreign:
            return
        if isinstance(said, Refusal) and said.retry:
            self._later()
            return
        del self._foreign[ident]
        if isinstance(said, Done):
            self._context.tell(ScheduleChanged(ident, 0, ScheduleState.CANCELLED, "", 0))
        else:
            word = said.word if isinstance(said, Refusal) else UNEXPECTED
            self._context.tell(CancelRefused(ident, 0, word))

    # --- news -----------------------------------------------------------------------------------

    def take_news(self, serials: Spans) -> None:
        """The server says that something has become of schedules with these serials (as spans)."""
        for low, high in pairs(serials):
            add_span(self._heard, low, high)
            for row in self._context.store.open_schedules(max(1, low), high):
                self._outcomes.put(replace(row, has_news=True))
                self._again.add(row.id)
        self._look()

    def look_at(self, row: ScheduledRow) -> None:
        """A row that came from another own device: ask how far it is."""
        self._outcomes.put(row)
        self._look()

    def _look(self) -> None:
        """Ask for whatever there is news of."""
        context = self._context
        if not context.online or SchedulesAsked.since > context.server_since:
            return
        rows = [row for row in context.store.open_schedules(1) if row.has_news and row.id not in self._asked]
        for first in range(0, len(rows), LOOKED_AT_ONCE):
            some = rows[first : first + LOOKED_AT_ONCE]
            for row in some:
                self._asked[row.id] = context.now
                self._again.discard(row.id)
            context.ask(SchedulesAsked(tuple(row.serial for row in some)), partial(self._found, [r.id for r in some]))

    def _found(self, ids: list[str], said: Said) -> None:
        for ident in ids:
            self._asked.pop(ident, None)
        if not isinstance(said, SchedulesFound):
            self._later()
            return
        self.retry.reset()
        fates = {fate.id: fate for fate in said.schedules}
        for ident in ids:
            row = self._context.store.schedule(ident)
            if row is None or row.ended_at:
                continue
            if (fate := fates.get(ident)) is None:
                self._outcomes.end(row, ScheduleState.FAILED, "outcome_unknown")
                continue
            if fate.is_stale and not row.is_stale:
                self._sealing.outdate(row)
            self._step(self._outcomes.take(row, fate, has_news=ident in self._again))
        self._look()


def _too_late(state: ScheduleState) -> str:
    """Why one that has ended cannot be cancelled; empty: it is cancelled."""
    if state is ScheduleState.CANCELLED:
        return ""
    return AlreadySent("").word if state is ScheduleState.DELIVERED else AlreadyEnded("").word
