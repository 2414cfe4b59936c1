"""How long a fault was felt: takeovers, by what nodes wrote down; silences, by what clients waited for.

Knows:   when each shard was without an owner, when each message was written and answered, when an engine was away.
Never:   counts the time in which the only engine of its kind did not serve: no cluster could have answered then.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from nightmail.verify.ledger import Ledger


class Outages:
    """When an engine was away."""

    def __init__(self) -> None:
        self._over: list[tuple[float, float]] = []
        self._since: dict[str, float] = {}

    def begin(self, engine: str) -> None:
        self._since.setdefault(engine, time.time())

    def end(self, engine: str) -> None:
        self._over.append((self._since.pop(engine), time.time()))

    def served(self, begin: float, end: float) -> float:
        """How much of this time every engine served."""
        away, upto = 0.0, begin
        for left, back in sorted([*self._over, *((since, end) for since in self._since.values())]):
            if back > upto and left < end:
                away += min(back, end) - max(left, upto)
                upto = min(back, end)
        return end - begin - away


class LogLine(Struct, frozen=True):
    at: datetime
    message: str
    shard: int = -1
    lost: list[int] = []


_line = msgspec.json.Decoder(LogLine)


class NodeLog:
    """What one node writes down, line by line, as it is written."""

    def __init__(self, file: Path) -> None:
        self._file, self._at = file, 0

    def lines(self) -> Iterator[LogLine]:
        if not self._file.exists():
            return
        with self._file.open("rb") as opened:
            opened.seek(self._at)
            for line in opened:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                if line.startswith(b"{"):
                    yield _line.decode(line)


class Takeovers:
    """From the instant at which an owner died or was paused until its shard is served again, wherever."""

    def __init__(self, outages: Outages) -> None:
        self._outages = outages
        self._orphaned: dict[int, float] = {}
        self._owned: dict[str, set[int]] = {}
        self._may_be_kept: set[int] = set()
        self.took_s: list[float] = []

    def said(self, node: str, line: LogLine) -> None:
        owned = self._owned.setdefault(node, set())
        if line.message == "shards lost":
            owned.difference_update(line.lost)
        elif line.message == "a shard is served":
            owned.add(line.shard)
            since, at = self._orphaned.get(line.shard), line.at.timestamp()
            if since is not None and at > since:
                del self._orphaned[line.shard]
                self._may_be_kept.discard(line.shard)
                self.took_s.append(self._outages.served(since, at))

    def gone(self, node: str, *, is_dead: bool) -> None:
        """Now, and without a word. One that is not dead may be back before anybody notices."""
        for shard in self._owned.pop(node, set()):
            self._orphaned.setdefault(shard, time.time())
            if not is_dead:
                self._may_be_kept.add(shard)

    def forget(self, node: str) -> None:
        """It hands its shards over."""
        self._owned.pop(node, None)

    def forget_kept(self) -> None:
        for shard in self._may_be_kept:
            self._orphaned.pop(shard, None)
        self._may_be_kept.clear()

    @property
    def waiting(self) -> Collection[int]:
        return self._orphaned.keys()


class Silences:
    """How long nothing that was written to somebody was answered *sent*, while something waited."""

    def __init__(self, ledger: Ledger, outages: Outages) -> None:
        self._ledger, self._outages = ledger, outages
        self._seen = 0
        self._pending: dict[str, tuple[int, float]] = {}
        """Message → to whom, and since when."""
        self._answered: dict[int, float] = {}
        """To whom → when something to them was last answered."""
        self.longest_s = 0.0
        self.slowest_s = 0.0
        """The longest time from writing a message to *sent*."""

    def look(self) -> None:
        """Often."""
        ledger, now = self._ledger, time.time()
        for ident, label in islice(ledger.written.items(), self._seen, None):
            self._pending[ident] = (label.to, now)
        self._seen = len(ledger.written)
        silent: dict[int, float] = {}
        for ident, (to, since) in list(self._pending.items()):
            if ident in ledger.acked or ident in ledger.failed:
                del self._pending[ident]
                self.slowest_s = max(self.slowest_s, self._outages.served(since, now))
                silent[to] = min(silent.get(to, now), max(since, self._answered.get(to, 0)))
        for to, since in silent.items():
            self.longest_s = max(self.longest_s, self._outages.served(since, now))
            self._answered[to] = now
