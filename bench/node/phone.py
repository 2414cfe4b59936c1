"""One device: writes to one other, takes what it is sent, acknowledges, checks.

Knows:   what it wrote, what it was answered and told, what it was shown.
Never:   acknowledges a message before it has looked at it, or says two things where one frame would do.

An honest client's manners: entries are acknowledged once per frame; a receipt is acknowledged with the
next thing that is said anyway, at the latest `LAZY_S` later; the Hello tells how far it is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from nightmail.model.answers import Accepted
from nightmail.model.records import Acked, Envelope, ReceiptsAcked, Sent
from nightmail.model.refusals import Refusal
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Kind, Lane, MessageState
from nightmail.wire.items import (
    REF_MAX,
    VERSION,
    Answered,
    Ask,
    Drained,
    Entries,
    FromDevice,
    FromServer,
    Gone,
    Goodbye,
    Hello,
    Receipts,
)

from . import people
from .checks import BODY, TAG, Inbox, Tally
from .link import Link

LAZY_S = 0.2
"""As the client library does it."""

NORMAL, TEXT, DELIVERED = Lane.NORMAL, Kind.TEXT, MessageState.DELIVERED


class Owing(Protocol):
    def pay(self) -> None: ...


class Hub:
    """What all devices of one load process share."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.latencies: list[float] = []
        self.answers: list[float] = []
        self.ready = 0
        self.owing: deque[tuple[float, Owing]] = deque()
        """Who has yet to acknowledge receipts, and by when."""
        self.codes: dict[int, int] = {}
        """Close code (0: none was said) → connections that ended with it."""
        self.why = ""
        self.on_ready: Callable[[Phone], None] = lambda phone: None

    def sweep(self, now: float) -> None:
        while self.owing and self.owing[0][0] <= now:
            self.owing.popleft()[1].pay()


class Phone(Link):
    __slots__ = (
        "_answered", "_asked", "_began", "_changes", "_delivered", "_device", "_envelopes", "_head", "_hub", "_n",
        "_number", "_owes", "_peer", "going", "inbox", "window",
    )  # fmt: skip

    def __init__(self, hub: Hub, number: int, peer: int, window: int, *, writes: bool, plant: bool = False) -> None:
        super().__init__()
        self._hub, self._number, self.window = hub, number, window if writes else 0
        self._device = people.device(number)
        self._peer = people.account(peer)
        self._envelopes = (Envelope(people.device(peer), people.REGISTRATION, BODY),)
        self._head = f"{self._device:x}:{time.time_ns() // 1_000_000}:"
        self.inbox = Inbox(people.device(peer), hub.tally, plant=plant)
        self._n = self._answered = self._delivered = self._changes = 0
        self._asked: deque[float] = deque()
        self._began: deque[float] = deque()
        self._owes = False
        self.going = False

    # --- what it says -------------------------------------------------------------------------

    def opened(self) -> None:
        hello = Hello(
            VERSION, self._device, people.token(self._number), self.inbox.cursor, 0, self._changes, "bench",
        )  # fmt: skip
        self.send([hello])

    def go(self) -> None:
        """From now on there are `window` messages in flight."""
        self.going = True
        out: list[FromDevice] = []
        self._fill_window(out)
        if out:
            self.send(out)

    def write_one(self, scheduled: float) -> None:
        """One message, whatever else is in flight. Its clock has been running since it was due."""
        out: list[FromDevice] = []
        if self._owes:
            self._owes = False
            out.append(Ask(0, ReceiptsAcked(self._changes)))
        self._write(scheduled, out)
        self.send(out)

    def pay(self) -> None:
        if self._owes:
            self._owes = False
            self.send([Ask(0, ReceiptsAcked(self._changes))])

    def _fill_window(self, out: list[FromDevice]) -> None:
        if self.going and self._n - self._delivered < self.window:
            now = time.monotonic()
            while self._n - self._delivered < self.window:
                self._write(now, out)

    def _write(self, began: float, out: list[FromDevice]) -> None:
        self._n = n = self._n + 1
        self._began.append(began)
        self._asked.append(began)
        self._hub.tally.sent += 1
        identity = f"{self._head}{n:05d}:x9k2"
        floor = self._answered + 1
        sent = Sent(self._peer, NORMAL, n, floor, 0, identity, TAG, TEXT, None, 0, 1, self._envelopes, ())
        out.append(Ask(n % REF_MAX + 1, sent))

    # --- what it hears ------------------------------------------------------------------------

    def heard(self, items: list[FromServer]) -> None:
        out: list[FromDevice] = []
        has_entries = has_receipts = False
        now = time.monotonic()
        for item in items:
            kind = type(item)
            if kind is Entries:
                assert isinstance(item, Entries)
                self.inbox.take(item.first, item.entries)
                has_entries = True
            elif kind is Answered:
                assert isinstance(item, Answered)
                self._take_answer(item, now)
            elif kind is Receipts:
                assert isinstance(item, Receipts)
                self._take_receipts(item.receipts, now)
                has_receipts = True
            elif kind is Drained:
                self._hub.ready += 1
                self._hub.on_ready(self)
            elif kind is Gone:
                assert isinstance(item, Gone)
                self._hub.tally.lost += item.high - item.low + 1
            elif kind is Goodbye:
                assert isinstance(item, Goodbye)
                self.turned_away(item)
        if has_entries:
            out.append(Ask(0, Acked(NORMAL, self.inbox.cursor)))
        self._fill_window(out)
        if has_receipts and not self._owes:
            self._owes = True
            if not out:
                self._hub.owing.append((now + LAZY_S, self))
        if out:
            if self._owes:
                self._owes = False
                out.append(Ask(0, ReceiptsAcked(self._changes)))
            self.send(out)

    def _take_answer(self, answer: Answered, now: float) -> None:
        said, hub = answer.said, self._hub
        n = self._answered + 1
        if type(said) is not Accepted or answer.ref != n % REF_MAX + 1:
            hub.tally.refused += isinstance(said, Refusal)
            hub.tally.changed += 1
            hub.why = hub.why or f"message {n} was answered {answer}"
            return
        self._answered = n
        hub.tally.answered += 1
        hub.answers.append(now - self._asked.popleft())

    def _take_receipts(self, changes: tuple[PendingReceipt, ...], now: float) -> None:
        hub, before = self._hub, self._delivered
        for change in changes:
            self._changes = change.seq
            low, *_, high = change.numbers
            if change.key[4] != DELIVERED or low > self._delivered + 1 or high > self._n:
                hub.tally.changed += 1
                hub.why = hub.why or f"after {self._delivered} of {self._n} came the receipt {change}"
            elif high > self._delivered:
                self._delivered = high
        arrived = self._delivered - before
        hub.tally.delivered += arrived
        hub.latencies.extend(now - self._began.popleft() for _ in range(arrived))

    # --- the end ------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        return self._delivered == self._n == self._answered

    @property
    def written(self) -> int:
        return self._n

    def finish(self) -> None:
        """No more receipts will come."""
        if missing := max(self._n - self._delivered, self._n - self._answered):
            self._hub.tally.lost += missing
            self._hub.why = (
                self._hub.why or f"of {self._n} sent, {self._answered} answered, {self._delivered} delivered"
            )
            self._n = self._answered = self._delivered

    def turned_away(self, goodbye: Goodbye) -> None:
        self.retry_ms = goodbye.retry_ms or None
        if not self.retry_ms:
            self._hub.why = self._hub.why or f"the server closed a connection: {goodbye}"

    def ended(self) -> None:
        if self.retry_ms is None:
            self._hub.why = self._hub.why or f"a connection was lost, with close code {self.closed_with}"
