"""Load of a group: some members write, every member who is online is shown it and acknowledges it.

Knows:   what each author wrote, and how many devices have not been shown it yet.
Never:   takes a message for delivered before every online device has it.

A message is in flight until the last online device was shown it. Receipts in a group come a quarter of a second
later, for many messages together, so nobody waits for them; they are acknowledged like every other receipt.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from nightmail.model.answers import GroupAccepted
from nightmail.model.group_questions import LogGap, LogRun
from nightmail.model.records import Acked, GroupAcked, GroupSent, ReceiptsAcked
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
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
    GroupLog,
    Hello,
    LogFetch,
    Receipts,
)

from . import people
from .checks import BODY, TAG
from .link import Link
from .load_messages import Known, Order, Seen
from .pair_load import measure, sweep
from .phone import LAZY_S, Hub
from .pipes import CONNECT_S, Pipes, connect, until

NORMAL, TEXT = Lane.NORMAL, Kind.TEXT
FETCH = REF_MAX
"""What a device fetches under: one at a time, and no message has this number."""


class Conversation:
    """What all members of one load share: which messages have not reached everybody."""

    def __init__(self, hub: Hub, group: Known, online: int) -> None:
        self.hub, self.group, self.online = hub, group, online
        self.authors: dict[int, Author] = {}
        """By device."""
        self._ready: dict[Author, None] = {}

    def shown(self, by: int, n: int) -> None:
        """One more device was shown message `n` of that device."""
        author = self.authors[by]
        left = author.unseen[n] = author.unseen[n] - 1
        if not left:
            del author.unseen[n]
            author.completed(n)
            if not self._ready:
                asyncio.get_running_loop().call_soon(self._write_on)
            self._ready[author] = None

    def _write_on(self) -> None:
        """At the end of a turn, so that what an author may write then shares a frame."""
        ready, self._ready = self._ready, {}
        for author in ready:
            author.fill_window()


class GroupInbox:
    """What one device was shown of the group: every author's numbers in order, under stamps that grow."""

    __slots__ = ("_at", "_conversation", "_plant", "_tally", "numbers")

    def __init__(self, conversation: Conversation, *, plant: bool) -> None:
        self._conversation, self._tally, self._plant = conversation, conversation.hub.tally, plant
        self.numbers: dict[int, int] = {}
        """Author's device → the newest number."""
        self._at = 0

    def take(self, entry: Entry) -> None:
        """A notice says what happened to the group: nobody wrote it."""
        by, n, tally = entry.by, entry.n, self._tally
        if not by:
            return
        if self._plant:
            self._plant = False
            self._conversation.shown(by, n)
            return
        tally.shown += 1
        if entry.at <= self._at:
            tally.reordered += 1
        self._at = entry.at
        if entry.ciphertext != BODY or entry.to != self._conversation.group.number:
            tally.changed += 1
        before = self.numbers.get(by, 0)
        if n == before + 1:
            self.numbers[by] = n
        elif n <= before:
            tally.doubled += 1
            return
        else:
            tally.lost += n - before - 1
            self.numbers[by] = n
        self._conversation.shown(by, n)

    def finish(self, by: int, written: int) -> None:
        self._tally.lost += written - self.numbers.get(by, 0)
        self.numbers[by] = written


class Member(Link):
    """A device that is online in the group. Acknowledges once per frame, receipts with the next frame."""

    __slots__ = ("_conversation", "_cursor", "_device", "_hub", "_log", "_owes", "_receipts", "inbox", "number")

    def __init__(self, conversation: Conversation, number: int, *, plant: bool = False) -> None:
        super().__init__()
        self._conversation, self._hub, self.number = conversation, conversation.hub, number
        self._device = people.device(number)
        self.inbox = GroupInbox(conversation, plant=plant)
        self._log = LogReader(self.inbox, conversation) if conversation.group.has_log else None
        self._cursor = self._receipts = 0
        self._owes = False

    def opened(self) -> None:
        self.send([Hello(VERSION, self._device, people.token(self.number), self._cursor, 0, self._receipts, "bench")])

    def pay(self) -> None:
        if self._owes:
            self._owes = False
            self.send([Ask(0, ReceiptsAcked(self._receipts))])

    def heard(self, items: list[FromServer]) -> None:
        hub, now = self._hub, time.monotonic()
        out: list[FromDevice] = []
        has_receipts = False
        before = self._cursor
        for item in items:
            match item:
                case Entries():
                    self._take_entries(item.first, item.entries)
                case GroupLog():
                    assert self._log is not None
                    self._log.take(item)
                case Answered():
                    self._take_answer(item, now)
                case Receipts():
                    self._receipts, has_receipts = item.receipts[-1].seq, True
                case Drained():
                    self._drained()
                case Gone():
                    hub.tally.lost += item.high - item.low + 1
                case Goodbye():
                    self.retry_ms = item.retry_ms or None
                case _:
                    pass
        if self._cursor > before:
            out.append(Ask(0, Acked(NORMAL, self._cursor)))
        if self._log is not None:
            self._log.say(out)
        if has_receipts and not self._owes:
            self._owes = True
            if not out:
                hub.owing.append((now + LAZY_S, self))
        if out:
            if self._owes:
                self._owes = False
                out.append(Ask(0, ReceiptsAcked(self._receipts)))
            self.send(out)

    def _drained(self) -> None:
        if self._log is not None:
            self._log.begin()
        else:
            self._hub.ready += 1

    def _take_entries(self, first: int, entries: tuple[Entry, ...]) -> None:
        known = max(0, self._cursor + 1 - first)
        self._hub.tally.repeated += min(known, len(entries))
        for entry in entries[known:]:
            self.inbox.take(entry)
        self._cursor = max(self._cursor, first + len(entries) - 1)

    def _take_answer(self, answer: Answered, now: float) -> None:
        self._hub.why = self._hub.why or f"a member who wrote nothing was answered {answer}"

    def ended(self) -> None:
        self._hub.why = self._hub.why or f"a connection was lost, with close code {self.closed_with}"


class LogReader:
    """A large group's log, as a device reads it: what is pushed, and what it fetches because it was not."""

    __slots__ = ("_acked", "_conversation", "_cursor", "_fetches", "_head", "_inbox", "_is_behind")

    def __init__(self, inbox: GroupInbox, conversation: Conversation) -> None:
        self._inbox, self._conversation = inbox, conversation
        self._cursor = self._acked = self._head = 0
        self._fetches = self._is_behind = False

    def begin(self) -> None:
        """Fetch everything; from then on it is told what comes."""
        self._is_behind = True

    def take(self, log: GroupLog) -> None:
        if log.ref:
            self._fetches = False
        self._head = max(self._head, log.head)
        if log.after <= self._cursor:
            for item in log.items:
                self._take(item)
        if self._cursor < self._head:
            self._is_behind = True
        elif not self._acked:
            self._conversation.hub.ready += 1

    def _take(self, item: LogRun | LogGap) -> None:
        if isinstance(item, LogGap):
            self._cursor = max(self._cursor, item.high)
            return
        for seq, entry in enumerate(item.entries, item.first):
            if seq == self._cursor + 1:
                self._cursor = seq
                self._inbox.take(entry)
            else:
                self._conversation.hub.tally.repeated += 1

    def say(self, out: list[FromDevice]) -> None:
        """Acknowledge what came, and fetch what did not."""
        group = self._conversation.group.number
        if self._cursor > self._acked:
            self._acked = self._cursor
            out.append(Ask(0, GroupAcked(group, self._cursor)))
        if self._is_behind and not self._fetches:
            self._fetches, self._is_behind = True, False
            out.append(LogFetch(FETCH, group, self._cursor, attend=True))


class Author(Member):
    """A member who also writes: `window` messages are in flight."""

    __slots__ = ("_answered", "_asked", "_began", "_head", "_window", "going", "n", "unseen")

    def __init__(self, conversation: Conversation, number: int, window: int, *, plant: bool = False) -> None:
        super().__init__(conversation, number, plant=plant)
        conversation.authors[self._device] = self
        self._window, self.n, self._answered = window, 0, 0
        self._head = f"{self._device:x}:{time.time_ns() // 1_000_000}:"
        self._asked: deque[float] = deque()
        self._began: dict[int, float] = {}
        self.unseen: dict[int, int] = {}
        """Number → how many devices have yet to be shown it."""
        self.going = False

    def go(self) -> None:
        self.going = True
        self.fill_window()

    def fill_window(self) -> None:
        out: list[FromDevice] = []
        now = time.monotonic()
        while self.going and len(self.unseen) < self._window:
            self._write(now, out)
        if out:
            self.send(out)

    def _write(self, now: float, out: list[FromDevice]) -> None:
        self.n = n = self.n + 1
        self._asked.append(now)
        self._began[n] = now
        self.unseen[n] = self._conversation.online - 1
        self._hub.tally.sent += 1
        group, identity = self._conversation.group, f"{self._head}{n:05d}:x9k2"
        sent = GroupSent(
            group.number, NORMAL, n, self._answered + 1, 0, identity, TAG, TEXT, group.epoch, group.head, 0, BODY
        )
        out.append(Ask(n % (REF_MAX - 1) + 1, sent))

    def completed(self, n: int) -> None:
        """Everybody who is online was shown it."""
        self._hub.tally.delivered += 1
        self._hub.latencies.append(time.monotonic() - self._began.pop(n))

    def _take_answer(self, answer: Answered, now: float) -> None:
        hub, n = self._hub, self._answered + 1
        if type(answer.said) is not GroupAccepted or answer.ref != n % (REF_MAX - 1) + 1:
            hub.tally.changed += 1
            hub.why = hub.why or f"message {n} was answered {answer}"
            return
        self._answered = n
        hub.tally.answered += 1
        hub.answers.append(now - self._asked.popleft())

    @property
    def settled(self) -> bool:
        return self._answered == self.n and not self.unseen

    def finish(self) -> None:
        if missing := self.n - self._answered:
            self._hub.tally.lost += missing
            self._hub.why = self._hub.why or f"of {self.n} sent, {self._answered} answered"


async def talk_in_group(order: Order, pipes: Pipes) -> None:
    """Connect everybody who is online, say so, then work in every window that is named."""
    assert order.group is not None
    hub = Hub()
    conversation = Conversation(hub, order.group, order.count)
    authors = [Author(conversation, number, order.window) for number in range(order.writers)]
    listeners = [
        Member(conversation, number, plant=order.plant and number == order.writers)
        for number in range(order.writers, order.count)
    ]
    members = [*authors, *listeners]
    await connect(members, order.port, order.at_once)
    if not await until(lambda: hub.ready >= order.count, CONNECT_S):
        hub.why = hub.why or f"only {hub.ready} of {order.count} could connect"
    sweeping = asyncio.ensure_future(sweep(hub))
    pipes.say(Seen(tally=hub.tally, connected=hub.ready, why=hub.why))
    while window := await pipes.window():
        pipes.say(await measure(window, hub, authors, order.server, pipes, lambda: _compare(members, authors)))
    sweeping.cancel()


def _compare(members: list[Member], authors: list[Author]) -> None:
    """What the authors wrote, everybody else must have been shown."""
    for author in authors:
        for member in members:
            if member is not author:
                member.inbox.finish(people.device(author.number), author.n)
