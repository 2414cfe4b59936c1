"""Telling the server what is stored here: cumulative, in groups, and again whenever an ack may have been lost.

Knows:   the cursors, and which numbers could not be opened.
Never:   runs ahead of the store (the machine commits before an ack leaves), or acknowledges an entry that is parked.
"""

from __future__ import annotations

from functools import partial

from nightmail.client.events import ServerBehind
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Backoff
from nightmail.model.answers import Done, Said
from nightmail.model.limits import FormLimits
from nightmail.model.records import Acked, ReceiptsAcked
from nightmail.model.refusals import AckAboveHead, Refusal
from nightmail.model.words import Lane

from .parked import Parked

LISTED = FormLimits().unreadable
"""The most unreadable numbers that one ack may list."""


class Acks:
    def __init__(self, context: Context, parked: Parked) -> None:
        self._context, self._parked = context, parked
        self.cursors = context.store.cursors()
        self._since = [0, 0]
        self._due: list[int | None] = [None, None]
        self._receipts_since = 0
        self._receipts_due: int | None = None
        self._backoff = Backoff(context)
        self._answered_upto = [0, 0]
        """How far the server has answered the acks of each lane."""
        self._wants_answers = False

    def stored(self, lane: Lane, count: int) -> None:
        """This many more numbers of a lane are stored."""
        self._since[lane] += count
        limits = self._context.limits
        if self._since[lane] >= limits.ack_entries:
            self._say(lane)
        else:
            self._by(lane, self._context.now + limits.ack_ms)

    def repeat(self, lane: Lane) -> None:
        """The server sent entries that are stored already: it has not seen the ack."""
        self._by(lane, self._context.now)

    def receipts_stored(self, count: int) -> None:
        self._receipts_since += count
        limits = self._context.limits
        if self._receipts_since >= limits.receipts_ack_entries:
            self._say_receipts()
        elif self._receipts_due is None:
            self._receipts_due = self._context.now + limits.receipts_ack_ms

    def connected(self) -> None:
        """The last acks may have been lost. Ask for an answer: it says whether the server agrees."""
        self._backoff.reset()
        for lane in Lane:
            if self.cursors.of(lane):
                self._say(lane, wants_answer=True)
        if self.cursors.receipts:
            self._say_receipts(wants_answer=True)

    def lost(self) -> None:
        self._since, self._due[:] = [0, 0], (None, None)
        self._receipts_since, self._receipts_due = 0, None

    def deadline(self) -> int | None:
        return min((due for due in (*self._due, self._receipts_due) if due is not None), default=None)

    def tick(self) -> None:
        for lane in Lane:
            if (due := self._due[lane]) is not None and self._context.now >= due:
                self._say(lane)
        if self._receipts_due is not None and self._context.now >= self._receipts_due:
            self._say_receipts()

    def flush(self) -> None:
        """Send the acks that wait for more entries."""
        for lane in Lane:
            if self._due[lane] is not None:
                self._say(lane)
        if self._receipts_due is not None:
            self._say_receipts()

    def confirm(self) -> None:
        """Have every ack answered from now on, until `is_confirmed`."""
        self._wants_answers = True
        for lane in Lane:
            if self._upto(lane) > self._answered_upto[lane]:
                self._say(lane)

    @property
    def is_confirmed(self) -> bool:
        """The server has answered an ack of everything that can be acknowledged."""
        return all(self._answered_upto[lane] >= self._upto(lane) for lane in Lane)

    def _upto(self, lane: Lane) -> int:
        first = self._parked.first(lane)
        return self.cursors.of(lane) if first is None else first - 1

    def _by(self, lane: Lane, due: int) -> None:
        before = self._due[lane]
        self._due[lane] = due if before is None else min(before, due)

    def _say(self, lane: Lane, *, wants_answer: bool = False) -> None:
        self._since[lane], self._due[lane] = 0, None
        upto = self._upto(lane)
        if not self._context.online or not upto:
            return
        unopened = [seq for seq in self._context.store.unopened(lane) if seq <= upto]
        if len(unopened) > LISTED:
            # As far as one ack can list; the rest follows when this one is answered.
            upto, unopened = unopened[LISTED] - 1, unopened[:LISTED]
        # What could not be opened is listed again until an ack that lists it is answered.
        wants_answer = wants_answer or self._wants_answers or bool(unopened)
        answered = partial(self._answered, lane, upto, unopened) if wants_answer else None
        self._context.ask(Acked(lane, upto, tuple(unopened)), answered)

    def _answered(self, lane: Lane, upto: int, unopened: list[int], said: Said) -> None:
        if not (isinstance(said, Refusal) and said.retry):
            self._answered_upto[lane] = max(self._answered_upto[lane], upto)
        if isinstance(said, Done):
            self._backoff.reset()
            if unopened:
                self._context.store.drop_unopened(lane, unopened)
                if self._context.store.unopened(lane):
                    self._by(lane, self._context.now)
            return
        if isinstance(said, AckAboveHead):
            self._context.tell(ServerBehind(lane, said.head, self.cursors.of(lane)))
        if isinstance(said, Refusal) and (said.retry or isinstance(said, AckAboveHead)):
            # After a takeover this device may be above the new owner's head for a moment.
            self._by(lane, self._backoff.failed())

    def _say_receipts(self, *, wants_answer: bool = False) -> None:
        self._receipts_since, self._receipts_due = 0, None
        if self._context.online:
            self._context.ask(ReceiptsAcked(self.cursors.receipts), self._receipts_answered if wants_answer else None)

    def _receipts_answered(self, said: Said) -> None:
        if isinstance(said, AckAboveHead):
            self._context.tell(ServerBehind(None, said.head, self.cursors.receipts))
