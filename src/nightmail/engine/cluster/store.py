"""What the cluster's rows need of a wide-row store, and no more.

Knows:   what a store holds: row versions, entries, forwards, blocks of the delivery log, one pointer per shard.
Never:   asks for a transaction, an order between two writes, or a read of more than one partition.

The manner is that of the other ports: a call never blocks; what takes time is answered by calling
`done`, exactly once, on the loop's thread, possibly before the call returns.

A write that is answered None is seen by every read that is begun afterwards (QUORUM and QUORUM).
A write that is answered Failed may have been applied, may be applied later, or never; a read may see
it and the next one not. Any write may be applied a second time, long after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from nightmail.engine.ports import Failed
from nightmail.model.rows import EntryRange, RowKey

Done: TypeAlias = Callable[[Failed | None], None]


class NotesBlock(NamedTuple):
    """The delivery log's lines of one checkpoint: of all records above `after`, up to `upto`.

    One cell, with all its pieces: another owner may write a block with the same `upto` that is cut in other places.
    """

    upto: int
    after: int
    at: int
    notes: tuple[bytes, ...]
    noted: frozenset[int]


class WideStore(Protocol):
    @property
    def at_once(self) -> int:
        """Writes of one checkpoint that may be under way together."""
        ...

    # --- rows: (shard, key) → version, newest first → value ---

    def read_row(self, shard: int, key: RowKey, upto: int, done: Callable[[bytes | None | Failed], None]) -> None:
        """The value of the newest version that is not above `upto`. None: there is none, or it is a tombstone."""
        ...

    def write_row(self, shard: int, key: RowKey, version: int, value: bytes | None, done: Done) -> None:
        """Store a version. None as the value is a tombstone: a version like any other, and it must stay one."""
        ...

    def trim_row(self, shard: int, key: RowKey, below: int, done: Done) -> None:
        """Remove every version smaller than `below`."""
        ...

    # --- entries: (shard, queue) → seq → entry ---

    def read_entries(
        self, shard: int, wanted: EntryRange, done: Callable[[Sequence[tuple[int, bytes]] | Failed], None]
    ) -> None:
        """What is stored in a range, by seq."""
        ...

    def write_entry(self, shard: int, queue: int, seq: int, entry: bytes, done: Done) -> None: ...

    def trim_entries(self, shard: int, gone: EntryRange, done: Done) -> None: ...

    # --- forwards: (shard, destination) → k → record ---

    def read_forwards(
        self, shard: int, to: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        """What is stored with after < k <= upto, by k, the first `limit` of it."""
        ...

    def write_forward(self, shard: int, to: int, k: int, record: bytes, done: Done) -> None: ...

    def trim_forwards(self, shard: int, to: int, upto: int, done: Done) -> None:
        """Remove every one with k <= upto."""
        ...

    # --- the delivery log: shard → upto → block ---

    def write_block(self, shard: int, block: NotesBlock, done: Done) -> None: ...

    def blocks(self, shard: int, upto: int, since: int) -> Iterator[NotesBlock]:
        """Blocks saved at `since` or later, not above `upto`, newest first. Blocks; raises EngineError."""
        ...

    def forget(self, shard: int, before: int) -> None:
        """Remove blocks saved before this time, sooner or later. Blocks if it must."""
        ...

    # --- the pointer ---

    def read_pointer(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        """Where the pointer stands; 0 if it was never set. Sees every `advance` that was answered before."""
        ...

    def advance(self, shard: int, upto: int, done: Callable[[int | Failed], None]) -> None:
        """Move the pointer to `upto` if it is smaller; answer where it stands afterwards. Linearizable."""
        ...
