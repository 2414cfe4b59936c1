"""Rows that an owner shows: an account, what a group is, schedules and dead letters, as new as everything that was
durable when it was asked.

Knows:   which questions wait, and how far the log must be folded before each is answered.
Touches: the shared log, by asking for its end; the owner's mailboxes, by reading.
Never:   shows a row because this owner believes that it is the owner. It may have been replaced, or its reader may
         lag, and an old row names devices that were unlinked and misses those that were linked.

A question whose end cannot be had is dropped: the desk that asked asks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ParamSpec, TypeAlias

from nightmail.engine.loop import Loop
from nightmail.engine.ports import Failed, LetterSeen, Listing, ScheduleListing, ScheduleSeen
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.group_questions import ChainAsked, GroupAnswer, GroupQuestion, MembersAsked, ToldSoFar
from nightmail.model.rows import Account, KnownAccounts
from nightmail.model.schedule_rows import ScheduleState

from .ports import OwnerQuestions

WAITING_MAX = 20_000
"""Questions that may wait while the log does not answer, or its reader lags. Later ones are dropped: that way the
oldest are answered as soon as the fold gets there."""

BEHIND_MAX = 2_000
"""Likewise, questions that wait for what another shard has told; of more, the oldest are dropped."""

P = ParamSpec("P")

Question: TypeAlias = Callable[[int], None]
"""Puts a question to the mailboxes, which have folded up to this end of the log."""


class FreshReads:
    """The `OwnerQuestions` of one owner. Call `look` often, and when batches were folded."""

    def __init__(
        self, mailboxes: OwnerQuestions, loop: Loop, ask_end: Callable[[Callable[[int | Failed], None]], None]
    ) -> None:
        # A device's cursor guards these: an owner that lags offers less, and what is missing comes later.
        self.note_connection, self.offer = mailboxes.note_connection, mailboxes.offer
        self.receipts, self.trace = mailboxes.receipts, mailboxes.trace
        # A push that is made in vain does no harm, and one that is not made is asked for again.
        self.push, self.push_platforms = mailboxes.push, mailboxes.push_platforms
        self._mailboxes, self._loop, self._ask_end = mailboxes, loop, ask_end
        self._new: list[Question] = []
        """The next request for the log's end serves them: one that is under way may have been answered already."""
        self._under_way = False
        self._waiting: deque[tuple[int, Question]] = deque()
        """With the end of the log that each waits for, in the order they came."""
        self._count = 0
        """Questions that were not dropped and not passed on to the mailboxes."""
        self._behind: deque[tuple[ToldSoFar, Callable[[], None]]] = deque(maxlen=BEHIND_MAX)
        """Questions that wait until this shard has heard what another one had told it. Those asked again are newer."""

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        self._add(lambda end: self._mailboxes.account(account, partial(self._show, end, then)))

    def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
        self._add(lambda end: self._mailboxes.relations(account, partial(self._show, end, then)))

    def about_group(self, question: GroupQuestion, then: Callable[[GroupAnswer], None]) -> None:
        if isinstance(question, ChainAsked | MembersAsked):
            self._add(lambda end: self._mailboxes.about_group(question, partial(self._show, end, then)))
        else:
            # Like a mailbox: an owner that lags shows less of the log, and nobody whom it has not folded yet.
            self._mailboxes.about_group(question, then)

    # --- schedules and dead letters: of one loop, so the shard that is named there is 0 ----------

    def schedule(self, account: int, ident: str, then: Callable[[ScheduleSeen | None], None]) -> None:
        self._add(lambda end: self._mailboxes.schedule(account, ident, partial(self._show, end, then)))

    def schedules(
        self, account: int, wanted: ScheduleState | None, before: int, then: Callable[[ScheduleListing], None]
    ) -> None:
        self._add(lambda end: self._mailboxes.schedules(account, wanted, before, partial(self._show, end, then)))

    def letter_counts(self, shard: int, then: Callable[[Mapping[str, int]], None]) -> None:
        self._add(lambda end: self._mailboxes.letter_counts(0, partial(self._show, end, then)))

    def letters(self, shard: int, error: str, page: int, then: Callable[[Listing], None]) -> None:
        self._add(lambda end: self._mailboxes.letters(0, error, page, partial(self._show, end, then)))

    def letter(self, shard: int, offset: int, then: Callable[[LetterSeen | None], None]) -> None:
        self._add(lambda end: self._mailboxes.letter(0, offset, partial(self._show, end, then)))

    # --- blobs ----------------------------------------------------------------------------------

    def blob(self, name: BlobId, device: int, then: Callable[[BlobSeen | None], None]) -> None:
        self._add(lambda end: self._mailboxes.blob(name, device, partial(self._show, end, then)))

    def backups(self, account: int, then: Callable[[Sequence[tuple[BlobId, BlobSeen]]], None]) -> None:
        self._add(lambda end: self._mailboxes.backups(account, partial(self._show, end, then)))

    # --- of groups ------------------------------------------------------------------------------

    def high_heads(self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]) -> None:
        self._behind.append((told, partial(self._show_high_heads, devices, told, then)))
        self._look_behind()

    def _show_high_heads(
        self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]
    ) -> None:
        def found(heads: Mapping[int, int]) -> None:
            # Likewise: a rebuilt state may not have heard it yet, and the desk asks again.
            if self._has_heard(told):
                then(heads)

        self._mailboxes.high_heads(devices, told, found)

    def _look_behind(self) -> None:
        if not self._behind:
            return
        waiting = list(self._behind)
        self._behind.clear()
        for told, put in waiting:
            if self._has_heard(told):
                put()
            else:
                self._behind.append((told, put))

    def _has_heard(self, told: ToldSoFar) -> bool:
        state = self._loop.state
        heard = told.source == state.index or state.shard.heard.get(told.source, 0) >= told.counts.get(state.index, 0)
        # What was heard last may still wait for rows: it counts as heard, and is not filed yet.
        is_filed = self._loop.folded_upto == state.offset
        return self._loop.ready and is_filed and heard

    def _add(self, question: Question) -> None:
        if self._count < WAITING_MAX:
            self._count += 1
            self._new.append(question)
            self._request()

    def look(self) -> None:
        """Answer what the fold has reached."""
        while self._waiting and self._has_folded(self._waiting[0][0]):
            end, put = self._waiting.popleft()
            self._count -= 1
            put(end)
        self._look_behind()

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

    def _show(self, end: int, then: Callable[P, None], *rows: P.args, **named: P.kwargs) -> None:
        # While the rows were read, the state may have been rebuilt from a checkpoint that lies before the end.
        if self._has_folded(end):
            then(*rows, **named)

    def _has_folded(self, end: int) -> bool:
        return self._loop.ready and self._loop.folded_upto >= end
