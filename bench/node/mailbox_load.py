"""Load on mailboxes of offline devices: filling them, and emptying them.

Filling counts what was answered *accepted*; emptying counts what was shown, checked, and whose
acknowledgement was answered: both are durable then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Iterator
from random import Random

from nightmail.model.answers import Accepted, Done
from nightmail.model.records import Acked, Envelope, Sent
from nightmail.model.refusals import Refusal
from nightmail.model.words import Kind, Lane
from nightmail.wire.closing import FINAL
from nightmail.wire.items import VERSION, Answered, Ask, Drained, Entries, FromDevice, FromServer, Gone, Goodbye, Hello

from . import people
from .checks import BODY, TAG, Inbox, histogram
from .link import Link
from .load_messages import Order, Seen
from .machine import cpu_ns
from .phone import Hub
from .pipes import Pipes, connect, connect_one, until

FRAME = 32
"""Messages that a writer puts into one frame."""
RETRY_S = 0.1
WORK_S = 900.0
BACKOFF_MS, BACKOFF_MS_MAX = 250, 60_000
NORMAL, TEXT = Lane.NORMAL, Kind.TEXT


class Writer(Link):
    """Writes `each` messages to one person after the other; `window` wait for their answer at a time."""

    __slots__ = ("_asked", "_device", "_failed", "_head", "_hub", "_left", "_number", "_ref", "_window", "done")

    def __init__(self, hub: Hub, number: int, recipients: list[int], each: int, window: int) -> None:
        super().__init__()
        self._hub, self._number, self._window = hub, number, window
        self._device = people.device(number)
        self._head = f"{self._device:x}:{time.time_ns() // 1_000_000}:"
        self._left = self._messages(recipients, each)
        self._ref = 0
        self._asked: deque[tuple[int, Sent, float]] = deque()
        self._failed: list[Sent] = []
        self.done = False

    def _messages(self, recipients: list[int], each: int) -> Iterator[Sent]:
        count = 0
        for recipient in recipients:
            to = people.account(recipient)
            envelopes = (Envelope(people.device(recipient), people.REGISTRATION, BODY),)
            for n in range(1, each + 1):
                count += 1
                identity = f"{self._head}{count:05d}:x9k2"
                yield Sent(to, NORMAL, n, max(1, n - 255), 0, identity, TAG, TEXT, None, 0, 1, envelopes, ())

    def opened(self) -> None:
        self.send([Hello(VERSION, self._device, people.token(self._number), 0, 0, 0, "bench")])

    def go(self) -> None:
        now, out = time.monotonic(), list[FromDevice]()
        while not self._failed and len(self._asked) < self._window:
            if (sent := next(self._left, None)) is None:
                self.done = not self._asked
                break
            self._ask(sent, now, out)
        if out:
            self.send(out)

    def _ask(self, sent: Sent, now: float, out: list[FromDevice]) -> None:
        self._ref += 1
        self._asked.append((self._ref, sent, now))
        out.append(Ask(self._ref, sent))
        self._hub.tally.sent += 1
        if len(out) == FRAME:
            self.send(out)
            out.clear()

    def heard(self, items: list[FromServer]) -> None:
        hub, now = self._hub, time.monotonic()
        for item in items:
            if isinstance(item, Answered):
                ref, sent, began = self._asked.popleft()
                if item.ref != ref:
                    hub.tally.changed += 1
                    hub.why = hub.why or f"answer {item} instead of {ref}"
                elif isinstance(item.said, Accepted):
                    hub.tally.answered += 1
                    hub.answers.append(now - began)
                else:
                    self._again(sent, item)
            elif isinstance(item, Drained):
                hub.ready += 1
        if not self.done and hub.tally.sent:
            if self._failed and not self._asked:
                asyncio.get_running_loop().call_later(RETRY_S, self._try_again)
            elif len(self._asked) <= self._window - FRAME or not self._asked:
                self.go()

    def _again(self, sent: Sent, answer: Answered) -> None:
        """The server refused for overload, or a message came too early: send all of them again, in order."""
        self._failed.append(sent)
        self._hub.tally.refused += 1
        if not isinstance(answer.said, Refusal):
            self._hub.why = self._hub.why or f"{sent.id} was answered {answer.said}"

    def _try_again(self) -> None:
        failed, self._failed = self._failed, []
        now, out = time.monotonic(), list[FromDevice]()
        for sent in failed:
            self._ask(sent, now, out)
        self.send(out)


async def fill(order: Order, pipes: Pipes) -> None:
    """Ready when all writers are connected; begins at the next line."""
    hub = Hub()
    shares: dict[int, list[int]] = {}
    for recipient in range(order.first, order.first + order.count):
        shares.setdefault(_writer_of(order, recipient), []).append(recipient)
    writers = [Writer(hub, number, share, order.each, order.window) for number, share in shares.items()]
    await connect(writers, order.port, order.at_once)
    await until(lambda: hub.ready == len(writers), WORK_S)
    pipes.say(Seen(tally=hub.tally, connected=hub.ready))
    await pipes.line()
    began, server_ns, load_ns = time.monotonic(), cpu_ns(order.server), time.process_time_ns()
    for writer in writers:
        writer.go()
    wanted = order.count * order.each
    await until(lambda: bool(hub.why) or hub.tally.answered >= wanted, WORK_S)
    seconds, load_ns = time.monotonic() - began, time.process_time_ns() - load_ns
    server_ns = cpu_ns(order.server) - server_ns
    if order.kill:
        os.kill(order.server, signal.SIGKILL)
    hub.tally.lost += max(0, wanted - hub.tally.answered)
    pipes.say(
        Seen(
            messages=hub.tally.answered, seconds=seconds, server_ns=server_ns, load_ns=load_ns, tally=hub.tally,
            answer=histogram(hub.answers), connected=hub.ready, why=hub.why,
        )
    )  # fmt: skip


def _writer_of(order: Order, recipient: int) -> int:
    """Everybody hears from one person only."""
    return order.writer + recipient % order.writers


class Reader(Link):
    """Comes back, takes everything that waits, acknowledges it, and waits until that is durable."""

    __slots__ = ("_chance", "_hub", "_number", "began", "cut", "done", "inbox", "port", "turned_away")

    def __init__(self, hub: Hub, number: int, writer: int, port: int, chance: Random, *, plant: bool = False) -> None:
        super().__init__()
        self._hub, self._number, self.port, self._chance = hub, number, port, chance
        self.inbox = Inbox(people.device(writer), hub.tally, plant=plant)
        self.began = 0.0
        self.done = False
        self.turned_away = 0
        """How often it was told to come back later."""
        self.cut = 0
        """How often the connection ended otherwise; it then reconnects as the client library does."""

    def opened(self) -> None:
        hello = Hello(VERSION, people.device(self._number), people.token(self._number), self.inbox.cursor, 0, 0)
        self.send([hello])

    def heard(self, items: list[FromServer]) -> None:
        is_drained = has_entries = False
        for item in items:
            match item:
                case Entries():
                    has_entries |= self.inbox.take(item.first, item.entries)
                case Drained():
                    is_drained = True
                case Gone():
                    self._hub.tally.lost += item.high - item.low + 1
                case Answered():
                    self._finish(isinstance(item.said, Done), str(item))
                case Goodbye():
                    self.retry_ms = item.retry_ms or None
                case _:
                    pass
        if has_entries or is_drained:
            # The last one is asked for an answer: until then it might not be durable.
            self.send([Ask(1 if is_drained else 0, Acked(NORMAL, self.inbox.cursor))])

    def _finish(self, is_right: bool, what: str) -> None:
        if not is_right:
            self._hub.why = self._hub.why or f"an acknowledgement was answered {what}"
        if not self.done:
            self.done = True
            self._hub.ready += 1
            self._hub.latencies.append(time.monotonic() - self.began)

    def ended(self) -> None:
        if self.done:
            return
        if self.closed_with in FINAL:
            self._hub.why = self._hub.why or f"the server closed a connection with {self.closed_with}"
        elif self.retry_ms is not None:
            # Spread the retries.
            self.turned_away += 1
            self._come_back_after(self.retry_ms * (1 + self._chance.random() / 2))
        else:
            self.cut += 1
            self._hub.codes[self.closed_with] = self._hub.codes.get(self.closed_with, 0) + 1
            self._come_back_after(self._chance.random() * min(BACKOFF_MS << self.cut, BACKOFF_MS_MAX))

    def _come_back_after(self, wait_ms: float) -> None:
        asyncio.get_running_loop().call_later(wait_ms / 1_000, self._come_back)

    def _come_back(self) -> None:
        task = asyncio.ensure_future(connect_one(self, self.port))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)


_tasks: set[asyncio.Future[None]] = set()


async def drain(order: Order, pipes: Pipes) -> None:
    """Ready at once; begins at the next line."""
    hub, chance = Hub(), Random(order.first)
    readers = [
        Reader(hub, number, _writer_of(order, number), order.port, chance, plant=order.plant and number == order.first)
        for number in range(order.first, order.first + order.count)
    ]
    pipes.say(Seen(tally=hub.tally))
    await pipes.line()
    began, server_ns, load_ns = time.monotonic(), cpu_ns(order.server), time.process_time_ns()
    for reader in readers:
        reader.began = began
        reader.inbox.cursor = order.cursor
    await connect(readers, order.port, order.at_once)
    await until(lambda: bool(hub.why) or hub.ready >= order.count, WORK_S)
    seconds, load_ns = time.monotonic() - began, time.process_time_ns() - load_ns
    server_ns = cpu_ns(order.server) - server_ns
    for reader in readers:
        reader.inbox.finish(order.each)
    if not order.each:
        # Whatever is shown the second time was shown before.
        hub.tally.doubled += hub.tally.shown
    pipes.say(
        Seen(
            messages=hub.tally.shown, seconds=seconds, server_ns=server_ns, load_ns=load_ns, tally=hub.tally,
            latency=histogram(hub.latencies), connected=hub.ready, why=hub.why,
            turned_away=sum(reader.turned_away for reader in readers), cut=hub.codes,
        )
    )  # fmt: skip
    if order.stay:
        await pipes.line()
