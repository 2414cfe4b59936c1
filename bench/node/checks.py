"""Compares what was promised with what arrived: lost, doubled, reordered, changed messages; and latencies.

Knows:   what each mailbox has shown so far, as an honest client does.
Never:   tolerates a deviation: each is counted, and the run fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from nightmail.model.rows import Entry

BODY_BYTES = 500
BODY = bytes(range(256)) + bytes(reversed(range(BODY_BYTES - 256)))
TAG = bytes(range(16))
BUCKETS_PER_E = 100
"""Latencies are kept within 1 %."""


class Tally(Struct):
    """Counted by a load process. The first four say that a promise broke."""

    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    changed: int = 0
    """A body, a writer or a receipt that is not what was sent."""
    repeated: int = 0
    """Offered again under the same number, as an unacknowledged entry may be; a client shows it once."""
    refused: int = 0
    """Sends that the server asked to repeat later."""
    sent: int = 0
    answered: int = 0
    shown: int = 0
    delivered: int = 0

    @property
    def broken(self) -> int:
        return self.lost + self.doubled + self.reordered + self.changed


class Inbox:
    """One mailbox's normal lane, written to by one device."""

    __slots__ = ("_at", "_missing", "_plant", "by", "cursor", "n", "tally")

    def __init__(self, by: int, tally: Tally, *, plant: bool = False) -> None:
        self.by, self.tally = by, tally
        self.cursor = 0
        self.n = 0
        self._at = 0
        self._missing: set[int] = set()
        self._plant = plant
        """Ignore one message, to check that the loss is noticed."""

    def take(self, first: int, entries: tuple[Entry, ...]) -> bool:
        """Entries `first`, `first + 1`, …; whether any of them was new."""
        cursor, tally = self.cursor, self.tally
        if first != cursor + 1:
            if first > cursor + 1:
                # What they were is seen by the next message's own number.
                self.cursor = cursor = first - 1
            known = cursor + 1 - first
            tally.repeated += min(known, len(entries))
            entries = entries[known:]
            if not entries:
                return False
        self.cursor = cursor + len(entries)
        tally.shown += len(entries)
        if self._plant:
            self._plant, entries = False, entries[1:]
        n, at, by = self.n, self._at, self.by
        for entry in entries:
            n += 1
            if entry.n != n:
                n = self._jumped(n, entry.n)
            if entry.at <= at:
                tally.reordered += 1
            at = entry.at
            if entry.ciphertext != BODY or entry.by != by:
                tally.changed += 1
        self.n, self._at = n, at
        return True

    def _jumped(self, expected: int, n: int) -> int:
        """Another number than the next one; what to count from."""
        if n > expected:
            self._missing.update(range(expected, n))
            self.tally.lost += n - expected
            return n
        if n in self._missing:
            self._missing.remove(n)
            self.tally.lost -= 1
            self.tally.reordered += 1
        else:
            self.tally.doubled += 1
        return expected - 1

    def finish(self, n: int) -> None:
        """No more will come: everything up to `n` must be here."""
        if n > self.n:
            self.tally.lost += n - self.n
            self.n = n


def histogram(seconds: Iterable[float]) -> dict[int, int]:
    """Logarithmic buckets → how many. Small enough to travel, and those of several processes can be added."""
    counts: dict[int, int] = {}
    for value in seconds:
        bucket = round(math.log(max(value, 1e-6)) * BUCKETS_PER_E)
        counts[bucket] = counts.get(bucket, 0) + 1
    return counts


def quantile_ms(counts: Mapping[int, int], share: float) -> float | None:
    """None if nothing was counted."""
    left = sum(counts.values()) * share
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return round(math.exp(bucket / BUCKETS_PER_E) * 1_000, 3)
    return None


def add_up(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for part in parts:
        for bucket, count in part.items():
            counts[bucket] = counts.get(bucket, 0) + count
    return counts
