"""Telling other shards: every forward reaches its log, in its order, at least once.

Knows:   what was told and is not yet known to be durable over there, and which of it the rows have.
Touches: other shards' logs, by appending; the rows, to read saved forwards back and to remove delivered ones.
Never:   lets a later forward overtake an earlier one: after a failure it starts again from there.

The other side takes the k-th only after the (k-1)-th, so repeating is harmless and skipping would
block everything behind it. A checkpoint does not wait for other logs: it saves what is not yet there.
Saved forwards of a shard whose log is down wait in the rows, and only the first of them in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from msgspec import Struct

from nightmail.model.effects import Forward
from nightmail.model.ids import SERVER
from nightmail.model.records import Forwarded, Record, encode_record

from .ports import Failed, Rows

Append: TypeAlias = Callable[[int, Sequence[bytes], Callable[[bool], None]], None]
"""Append records to a shard's log; answer whether they are known to be durable there."""

RETRY_MS = 100

Numbered: TypeAlias = tuple[int, bytes]
"""The k of a forward, and its record."""


class ForwarderLimits(Struct, frozen=True):
    batch: int = 256
    """Forwards in one append; and for each shard, those that stay in memory although the rows have them."""
    batch_bytes: int = 256 * 1024
    """Likewise, in bytes; one forward may be larger."""
    page: int = 64
    """Saved forwards that are read back together. One may be as large as a message to every own device."""


class _Chain:
    """What one shard was told and is not known to have, oldest first: `ready`, then what only the rows have (above
    `read`, up to `saved`), then `unsaved`."""

    __slots__ = (
        "_limits", "delivered", "read", "ready", "removed", "removing", "retry_at", "saved", "under_way", "unsaved",
    )  # fmt: skip

    def __init__(self, limits: ForwarderLimits, saved: int = 0) -> None:
        self._limits = limits
        self.ready: deque[Numbered] = deque()
        """In memory, and in the rows, too."""
        self.unsaved: deque[Numbered] = deque()
        self.delivered = 0
        """Everything up to here stands in the other log."""
        self.read = 0
        """What the rows have up to here is in `ready`, or delivered."""
        self.saved = saved
        """The rows have everything up to here that is not delivered."""
        self.removed = 0
        """The rows have nothing up to here."""
        self.under_way = self.removing = False
        self.retry_at = 0

    def next_batch(self) -> list[Numbered]:
        """What is sent next; empty if that must be read back first, or there is nothing."""
        waiting = self.ready or (self.unsaved if self.read == self.saved else ())
        return list(takewhile(_Room(self._limits), waiting))

    def note_delivered(self, upto: int) -> list[Numbered]:
        """Returns what need not be saved any more."""
        self.delivered = upto
        self.read = max(self.read, min(upto, self.saved))
        _take(self.ready, upto)
        return _take(self.unsaved, upto)

    def note_read(self, page: Sequence[Numbered], upto: int) -> None:
        """The rows have `page` above `read`, and nothing else up to `upto` unless the page is full."""
        self.ready.extend(page)
        self.read = page[-1][0] if len(page) == self._limits.page else upto
        if not page and not self.delivered:
            self.removed = upto

    def note_saved(self, upto: int) -> list[Numbered]:
        """A checkpoint has everything up to here. Returns what is no longer unsaved."""
        taken = _take(self.unsaved, upto)
        if self.read == self.saved:
            kept = list(takewhile(_Room(self._limits, self.ready), taken))
            self.ready.extend(kept)
            self.read = upto if len(kept) == len(taken) else kept[-1][0] if kept else self.read
        self.saved = upto
        return taken

    @property
    def removable(self) -> int:
        """What the rows have up to here is delivered."""
        return min(self.delivered, self.saved)


class _Room:
    """Whether one more forward fits into a batch. The first one does in any case."""

    def __init__(self, limits: ForwarderLimits, present: Sequence[Numbered] = ()) -> None:
        self._limits = limits
        self._count = len(present)
        self._bytes = sum(len(record) for _, record in present)

    def __call__(self, forward: Numbered) -> bool:
        self._count += 1
        self._bytes += len(forward[1])
        return self._count == 1 or (self._count <= self._limits.batch and self._bytes <= self._limits.batch_bytes)


class Forwarder:
    def __init__(self, source: int, append: Append, rows: Rows, limits: ForwarderLimits | None = None) -> None:
        """`rows` are those that the checkpoints of this shard go to."""
        self._source, self._append, self._rows = source, append, rows
        self._limits = limits or ForwarderLimits()
        self._chains: dict[int, _Chain] = {}
        """Shard → what it is told."""
        self.unsaved = 0
        """Forwards that no checkpoint has and no other log for certain."""
        self.unsaved_bytes = 0
        self._now = 0

    def begin(self, told: Mapping[int, int]) -> None:
        """The shard is folded from a checkpoint that counts what it `told` each shard, and tells what follows again.

        What was saved goes out before that.
        """
        self._chains = {shard: _Chain(self._limits, count) for shard, count in told.items()}
        self.unsaved = self.unsaved_bytes = 0

    def add(self, forward: Forward) -> None:
        """What was just told another shard."""
        record = encode_record(Record(SERVER, 0, Forwarded(self._source, forward.k, forward.body)))
        chain = self._chains.get(forward.shard)
        if chain is None:
            chain = self._chains[forward.shard] = _Chain(self._limits)
        chain.unsaved.append((forward.k, record))
        self.unsaved += 1
        self.unsaved_bytes += len(record)

    def take_unsaved(self) -> list[tuple[int, int, bytes]]:
        """What a checkpoint that is taken now must have. It stays unsaved until `saved`."""
        return [(shard, k, record) for shard, chain in self._chains.items() for k, record in chain.unsaved]

    def saved(self, forwards: Sequence[tuple[int, int, bytes]]) -> None:
        """A checkpoint with these is durable. Those that have no room in memory are read back when it is their turn."""
        newest = {shard: k for shard, k, _ in forwards}
        for shard, k in newest.items():
            self._uncount(self._chains[shard].note_saved(k))

    def tick(self, now: int) -> None:
        self._now = now
        for shard, chain in list(self._chains.items()):
            if not chain.under_way and chain.retry_at <= now:
                self._go_on(shard, chain)
            if chain.removable > chain.removed and not chain.removing:
                self._remove(shard, chain)

    def _go_on(self, shard: int, chain: _Chain) -> None:
        if batch := chain.next_batch():
            self._send(shard, chain, batch)
        elif chain.read < chain.saved:
            self._read(shard, chain)

    def _send(self, shard: int, chain: _Chain, batch: Sequence[Numbered]) -> None:
        chain.under_way = True

        def done(durable: bool) -> None:
            if self._chains.get(shard) is not chain:
                return  # An answer to what was told before `begin`.
            chain.under_way = False
            if not durable:
                chain.retry_at = self._now + RETRY_MS
                return
            self._uncount(chain.note_delivered(batch[-1][0]))
            self._go_on(shard, chain)

        self._append(shard, [record for _, record in batch], done)

    def _read(self, shard: int, chain: _Chain) -> None:
        chain.under_way, upto = True, chain.saved

        def done(page: Sequence[Numbered] | Failed) -> None:
            if self._chains.get(shard) is not chain:
                return
            chain.under_way = False
            if isinstance(page, Failed):
                chain.retry_at = self._now + RETRY_MS
                return
            chain.note_read(page, upto)
            self._go_on(shard, chain)

        self._rows.load_forwards(shard, chain.read, upto, self._limits.page, done)

    def _remove(self, shard: int, chain: _Chain) -> None:
        chain.removing, upto = True, chain.removable

        def done(failed: Failed | None) -> None:
            chain.removing = False
            if not failed:
                chain.removed = upto

        self._rows.drop_forwards(shard, upto, done)

    def _uncount(self, taken: Sequence[Numbered]) -> None:
        self.unsaved -= len(taken)
        self.unsaved_bytes -= sum(len(record) for _, record in taken)


def _take(forwards: deque[Numbered], upto: int) -> list[Numbered]:
    """Take out those up to a number."""
    taken: list[Numbered] = []
    while forwards and forwards[0][0] <= upto:
        taken.append(forwards.popleft())
    return taken
