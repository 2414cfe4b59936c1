"""Telling other shards: every forward reaches its log, in its order, at least once.

Knows:   what was told and is not yet known to be durable over there.
Never:   lets a later forward overtake an earlier one: after a failure it starts again from there.

The other side takes the k-th only after the (k-1)-th, so repeating is harmless and skipping would
block everything behind it. A checkpoint waits here until all it told is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from nightmail.model.effects import Forward
from nightmail.model.ids import SERVER
from nightmail.model.records import Forwarded, Record, encode_record

Append: TypeAlias = Callable[[int, Sequence[bytes], Callable[[bool], None]], None]
"""Append records to a shard's log; answer whether they are known to be durable there."""

BATCH = 256
RETRY_MS = 100


class Forwarder:
    def __init__(self, source: int, append: Append) -> None:
        self._source, self._append = source, append
        self._told: dict[int, deque[tuple[int, bytes]]] = {}
        """Shard → (our offset, record), oldest first."""
        self._under_way: set[int] = set()
        self._retry_at: dict[int, int] = {}
        self._now = 0
        self._life = 0

    def add(self, offset: int, forward: Forward) -> None:
        """What the record at `offset` told another shard."""
        record = Record(SERVER, 0, Forwarded(self._source, forward.k, forward.body))
        self._told.setdefault(forward.shard, deque()).append((offset, encode_record(record)))

    def settled(self, upto: int) -> bool:
        """Whether everything told by records up to `upto` is durable where it was told."""
        return all(not told or told[0][0] > upto for told in self._told.values())

    def tick(self, now: int) -> None:
        self._now = now
        for shard in [shard for shard, told in self._told.items() if told]:
            if shard not in self._under_way and self._retry_at.get(shard, 0) <= now:
                self._send(shard)

    def restart(self) -> None:
        """The shard is folded anew from its checkpoint, and will tell everything since then again."""
        self._told.clear()
        self._under_way.clear()
        self._retry_at.clear()
        self._life += 1

    def _send(self, shard: int) -> None:
        told = self._told[shard]
        batch = [record for _, record in list(told)[:BATCH]]
        life = self._life
        self._under_way.add(shard)

        def done(durable: bool) -> None:
            if life != self._life:
                return
            self._under_way.discard(shard)
            if not durable:
                self._retry_at[shard] = self._now + RETRY_MS
                return
            for _ in batch:
                told.popleft()
            if told:
                self._send(shard)

        self._append(shard, batch, done)
