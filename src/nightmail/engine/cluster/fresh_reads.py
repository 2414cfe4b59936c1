"""Account rows that an owner shows: at least as new as everything that was durable when it was asked.

Knows:   which questions wait, and how far the log must be folded before each is answered.
Touches: the shared log, by asking for its end; the owner's mailboxes, by reading.
Never:   shows a row because this owner believes that it is the owner. It may have been replaced, or its reader may
         lag, and an old row names devices that were unlinked and misses those that were linked.

A question whose end cannot be had is dropped: the desk that asked asks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from nightmail.engine.loop import Loop
from nightmail.engine.ports import Failed, Mailboxes
from nightmail.model.rows import Account

WAITING_MAX = 20_000
"""Questions that may wait while the log does not answer, or its reader lags. Later ones are dropped: that way the
oldest are answered as soon as the fold gets there."""

Question: TypeAlias = tuple[int, Callable[[Account | None], None]]
"""An account, and whom to show it."""


class FreshReads:
    """The `Mailboxes` of one owner. Call `look` often, and when batches were folded."""

    def __init__(
        self, mailboxes: Mailboxes, loop: Loop, ask_end: Callable[[Callable[[int | Failed], None]], None]
    ) -> None:
        # A device's cursor guards these: an owner that lags offers less, and what is missing comes later.
        self.note_connection, self.offer = mailboxes.note_connection, mailboxes.offer
        self.receipts, self.trace = mailboxes.receipts, mailboxes.trace
        self._mailboxes, self._loop, self._ask_end = mailboxes, loop, ask_end
        self._new: list[Question] = []
        """The next request for the log's end serves them: one that is under way may have been answered already."""
        self._under_way = False
        self._waiting: deque[tuple[int, Question]] = deque()
        """With the end of the log that each waits for, in the order they came."""
        self._count = 0
        """Questions that were not dropped and not passed on to the mailboxes."""

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        if self._count < WAITING_MAX:
            self._count += 1
            self._new.append((account, then))
            self._request()

    def look(self) -> None:
        """Answer what the fold has reached."""
        while self._waiting and self._has_folded(self._waiting[0][0]):
            end, (account, then) = self._waiting.popleft()
            self._count -= 1
            self._mailboxes.account(account, partial(self._show, end, then))

    def _request(self) -> None:
        if self._under_way or not self._new:
            return
        served, self._new = self._new, []
        self._under_way = True
        self._ask_end(partial(self._ended, served))

    def _ended(self, served: list[Question], end: int | Failed) -> None:
        self._under_way = False
        if isinstance(end, Failed):
            self._count -= len(served)
        else:
            self._waiting.extend((end, question) for question in served)
        self._request()
        self.look()

    def _show(self, end: int, then: Callable[[Account | None], None], row: Account | None) -> None:
        # While the row was read, the state may have been rebuilt from a checkpoint that lies before the end.
        if self._has_folded(end):
            then(row)

    def _has_folded(self, end: int) -> bool:
        return self._loop.ready and self._loop.folded_upto >= end
