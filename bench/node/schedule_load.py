"""A load process for messages for later: authors who schedule, and recipients who see when they come.

One order on standard input, one finding on standard output. A message's content says when it is due, so a recipient
can tell how late it is; authors and recipients share this machine's clock with the server.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec
import uvloop
from msgspec import Struct

from nightmail.model.answers import ScheduleTaken
from nightmail.model.records import Acked, Envelope, ReceiptsAcked, Scheduled
from nightmail.model.rows import Entry
from nightmail.model.schedule_rows import PairContent, PairTarget
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import REF_MAX, VERSION, Answered, Ask, Drained, Entries, FromServer, Gone, Hello, Receipts

from . import people
from .checks import BODY, TAG, histogram
from .link import Link
from .machine import raise_open_files, usage
from .pipes import CONNECT_S, connect, until

IN_FLIGHT = 8
DAY_MS = 86_400_000
SETTLE_S = 60.0
SEQUENCE_NS = 10_000_000
"""A device's sequence only grows, also from one load to the next: it begins with the time, in hundredths of a
second."""


class ScheduleOrder(Struct, kw_only=True):
    job: Literal["pending", "punctual", "cost"]
    """pending: for another day. punctual: due now, recipients are there. cost: due now, recipients are away."""
    port: int
    server: int
    authors: int
    messages: int
    seconds: float = 0.0
    """How long something is due."""
    lead_s: float = 0.0
    """The first is due after this time: the last must have been scheduled by then."""


class ScheduleSeen(Struct, kw_only=True):
    messages: int
    came: int = 0
    doubled: int = 0
    early: int = 0
    seconds: float = 0.0
    """From the first to the last that came."""
    request_s: float = 0.0
    server_ns: int = 0
    late: dict[int, int] = {}
    why: str = ""


class Author(Link):
    __slots__ = (
        "_answered",
        "_changes",
        "_count",
        "_device",
        "_due",
        "_head",
        "_number",
        "_peer",
        "_sequence",
        "is_ready",
        "why",
    )

    def __init__(self, number: int, peer: int) -> None:
        super().__init__()
        self._number, self._peer = number, peer
        self._device = people.device(number)
        self._head = f"{self._device:x}:{time.time_ns() // 1_000_000}:"
        self._sequence = time.time_ns() // SEQUENCE_NS
        self._due: Iterator[int] = iter(())
        self._count = self._answered = self._changes = 0
        self.is_ready, self.why = False, ""

    def opened(self) -> None:
        self.send([Hello(VERSION, self._device, people.token(self._number), 0, 0, self._changes, "bench")])

    def schedule(self, due: Sequence[int]) -> None:
        """Messages due at these times; some are on their way at a time."""
        self._due = iter(due)
        self._more(IN_FLIGHT)

    def _more(self, most: int) -> None:
        asks = [Ask(self._count % REF_MAX + 1, self._scheduled(at)) for at in islice(self._due, most)]
        if asks:
            self.send(asks)

    def _scheduled(self, at: int) -> Scheduled:
        self._count += 1
        body = at.to_bytes(8, "big") + BODY[8:]
        envelope = Envelope(people.device(self._peer), people.REGISTRATION, body)
        return Scheduled(
            f"{self._head}{self._sequence + self._count:05d}:x9k2", TAG, Kind.TEXT, 0, at,
            PairTarget(people.account(self._peer)), PairContent(1, (envelope,), ()),
        )  # fmt: skip

    @property
    def is_settled(self) -> bool:
        return self._answered == self._count

    def heard(self, items: list[FromServer]) -> None:
        answered = 0
        for item in items:
            if isinstance(item, Answered):
                answered += 1
                if not isinstance(item.said, ScheduleTaken):
                    self.why = self.why or f"a message was answered {item.said}"
            elif isinstance(item, Drained):
                self.is_ready = True
            elif isinstance(item, Receipts):
                self._changes = item.receipts[-1].seq
                self.send([Ask(0, ReceiptsAcked(self._changes))])
        self._answered += answered
        self._more(answered)


class Recipient(Link):
    __slots__ = ("_cursor", "_hub", "_number", "is_ready")

    def __init__(self, number: int, hub: Hub, cursor: int) -> None:
        super().__init__()
        self._number, self._hub, self._cursor = number, hub, cursor
        self.is_ready = False

    def opened(self) -> None:
        device = people.device(self._number)
        self.send([Hello(VERSION, device, people.token(self._number), self._cursor, 0, 0, "bench")])

    def heard(self, items: list[FromServer]) -> None:
        came = False
        for item in items:
            if isinstance(item, Entries):
                # What is offered again, because its acknowledgement was late, is no second message.
                self._hub.take(item.entries[max(0, self._cursor + 1 - item.first) :])
                self._cursor = max(self._cursor, item.first + len(item.entries) - 1)
                came = True
            elif isinstance(item, Gone):
                self._cursor = item.high
            elif isinstance(item, Drained):
                self.is_ready = True
        if came:
            self.send([Ask(0, Acked(Lane.NORMAL, self._cursor))])


class Hub:
    """What has come, and how late."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.ids: set[str] = set()
        self.doubled = self.early = 0
        self.first = self.last = 0.0
        self.since = 0
        """When the first is due."""

    def take(self, entries: Sequence[Entry]) -> None:
        now = time.time()
        self.first, self.last = self.first or now, now
        for entry in entries:
            due = int.from_bytes(entry.ciphertext[:8], "big")
            if due < self.since:
                continue  # of an earlier load, which did not wait for it
            # The stamp is the moment of firing; what comes before its time has a stamp before it, too.
            self.early += entry.at < due
            self.doubled += entry.id in self.ids
            self.ids.add(entry.id)
            self.late.append(now - due / 1_000)


async def work(order: ScheduleOrder) -> ScheduleSeen:
    hub = Hub()
    authors = [Author(n, order.authors + n) for n in range(order.authors)]
    recipients = [Recipient(order.authors + n, hub, 0) for n in range(order.authors)]
    links = [*authors, *recipients] if order.job == "punctual" else authors
    await connect(links, order.port, 256)
    if not await until(lambda: all(link.is_ready for link in links), CONNECT_S):
        return ScheduleSeen(messages=0, why="not all could connect")
    before, began = usage(order.server), time.time()
    if order.job == "pending":
        due = [int(began * 1_000) + DAY_MS + n * 12 * DAY_MS // order.messages for n in range(order.messages)]
    else:
        start = int((began + order.lead_s) * 1_000)
        due = [start + int(n * order.seconds * 1_000 / order.messages) for n in range(order.messages)]
    hub.since = due[0]
    for n, author in enumerate(authors):
        author.schedule(due[n :: order.authors])
    most_s = SETTLE_S + order.messages / 1_000
    if not await until(lambda: any(a.why for a in authors) or all(a.is_settled for a in authors), most_s):
        return ScheduleSeen(messages=order.messages, why="not all were answered")
    seen = ScheduleSeen(messages=order.messages, request_s=time.time() - began)
    seen.why = next((author.why for author in authors if author.why), "")
    if order.job != "pending" and not seen.why:
        if time.time() * 1_000 > due[0]:
            seen.why = "the first was due before the last was scheduled"
        await asyncio.sleep(max(0.0, due[-1] / 1_000 - time.time() + 0.5))
        if order.job == "cost":
            await asyncio.sleep(1.5)
            seen.server_ns = usage(order.server).since(before).cpu
            await connect(recipients, order.port, 256)
        await until(lambda: len(hub.ids) >= order.messages, SETTLE_S)
    seen.server_ns = seen.server_ns or usage(order.server).since(before).cpu
    seen.came, seen.doubled, seen.early = len(hub.ids), hub.doubled, hub.early
    seen.seconds, seen.late = hub.last - hub.first, histogram([max(0.0, late) for late in hub.late])
    # What was acknowledged last is on its way.
    await asyncio.sleep(0.5)
    return seen


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=ScheduleOrder)
    raise_open_files()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    sys.stdout.write(msgspec.json.encode(uvloop.run(work(order))).decode())


if __name__ == "__main__":
    main()
