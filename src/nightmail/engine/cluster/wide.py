"""Rows in a store without transactions that several owners may write at once: versions, and one pointer.

Knows:   one shard's pointer, the order in which a checkpoint is written, what may be removed afterwards.
Touches: the store, through `WideStore`. Any answer may be lost, any write may come late or twice.
Never:   reads a version above its pointer; moves the pointer before all it covers is acknowledged; removes
         what somebody at the pointer could read; builds upon what it read while the pointer moved away.

Two owners of one shard are never wanted, but cannot be excluded: one that was replaced may not know it yet.
Both fold the same log, so they compute the same bytes for the same (key, version) and (queue, seq).

    R1  A row is read as "its newest version that is not above our pointer"; a tombstone is a version.
        So nothing of a checkpoint is seen before its pointer stands, and an owner that folds on from the pointer starts
        from exactly that offset, whatever anybody has written above it.
    R2  save: all row versions, entries and notes, in any order. When all are acknowledged, the pointer.
        When the pointer stands, trim. So wherever the pointer stands, everything up to it is readable. This holds
        across owners: what changed between *our* last checkpoint and this one is in this one, what did not is
        still as we found it, no matter who moved the pointer in between. And it holds for a pointer that is
        moved long after we gave up waiting for the answer.
        Each write may be repeated or come late: it stores the same bytes in the same place.
    R3  The pointer only grows. After `advance` it stands at our upto (we moved it, now or in an attempt whose answer
        was lost, or another owner saved the same checkpoint: all the same), or beyond: then we are overtaken, and
        go on from where it stands.
    R4  trim: of a row written with version v, the versions below v; entries up to `cleared`; dropped entries.
        v is not above the pointer, and the pointer only grows: no later reader wants anything below v. The same
        is true of what was acknowledged. So a trim may fail, come late, come twice, or be undone by a write
        that comes even later: such a version has a newer one above it, which stays, and such an entry
        is not above `acked` and so not looked at. A tombstone is never trimmed before there is a newer version:
        else an older one that comes back would be read.
    R5  load: rows and entries first, then the pointer. If it still stands where we think, nobody had begun to trim
        anything above it when we read (R2: pointer first, then trim). If not, what we read as absent may
        have been trimmed: overtaken.
    R6  An entry never changes, and whether it is visible (acked < seq <= head, no gap) is said by the mailbox row,
        which is read as of the pointer. So entries need no versions, and those that an owner wrote above the
        pointer do no harm. The caller looks at the row; here a range is what is stored in it.
    R7  Each block of the delivery log says after which offset it begins. From the pointer backwards they form one
        chain, in which every record is told once, although owners have cut the log in different places.
    R8  A forward never changes: every owner of the log tells the same k-th thing to the same shard. Those that a
        checkpoint has are written before its pointer (R2), and visible are those up to `told` of the shard's row,
        which is read as of the pointer; what lies above, the next owner tells again. One is removed
        only when it is durable in the other shard's log, with all before it: that does not depend on any pointer, so
        reading forwards needs no second look (R5). One that a late write brings back is told once more, and
        dropped over there by its k.

A save is under way while loads are: a load that finds its pointer moved by our own save begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias

from nightmail.engine.ports import Checkpoint, Failed, Found, Overtaken, is_nowhere
from nightmail.model.rows import EntryRange, Need, RowKey

from .store import Done, NotesBlock, WideStore

Answer: TypeAlias = bytes | None | Sequence[tuple[int, bytes]]
Outcome: TypeAlias = Overtaken | Failed | None
Job: TypeAlias = Callable[[Done], None]


class WideRows:
    def __init__(self, store: WideStore, shard: int, pointer: int) -> None:
        """`pointer` was read from this store: see `open`."""
        self._store, self._shard, self._pointer = store, shard, pointer
        self._life = 0
        """Counts how often we were overtaken: what was asked before belongs to a state that is thrown away."""
        self._saving = 0
        """The upto of the save under way."""
        self._parked: list[Callable[[], None]] = []
        """Loads that saw our own checkpoint stand before its save was answered."""
        self._old: dict[RowKey, int] = {}
        """Trims that are owed: row → remove the versions below this one."""
        self._gone: dict[tuple[int, int], int] = {}
        """Trims that are owed: (queue, from seq) → to seq."""
        self._trimming = False

    @classmethod
    def open(cls, store: WideStore, shard: int, done: Callable[[WideRows | Failed], None]) -> None:
        """Read where the pointer stands. Another owner may move it from there: the first load will say so."""

        def read(pointer: int | Failed) -> None:
            done(pointer if isinstance(pointer, Failed) else cls(store, shard, pointer))

        store.read_pointer(shard, read)

    @property
    def pointer(self) -> int:
        return self._pointer

    @property
    def owing(self) -> int:
        """How many trims are still to be done."""
        return len(self._old) + len(self._gone)

    # --- reading ------------------------------------------------------------------------------

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        asked, life = self._pointer, self._life
        found: list[Answer] = [None] * len(needs)

        def read(failed: Failed | None) -> None:
            if failed:
                done(failed)
            else:
                self._recheck(asked, checked)

        def checked(stored: int | Failed) -> None:
            if isinstance(stored, Failed):
                done(stored)
            elif stored < asked:
                done(Failed(f"the pointer of shard {self._shard} stood at {asked}, and is read as {stored}"))
            elif life != self._life:
                done(Overtaken(self._pointer))
            elif stored == asked == self._pointer:
                done(found)
            elif stored <= self._pointer:
                # Our own save has moved it, and may have trimmed what we were about to read.
                again()
            elif stored == self._saving:
                # Our own checkpoint stands, and we are about to be told.
                self._parked.append(again)
            else:
                self._adopt(stored)
                done(Overtaken(stored))

        def again() -> None:
            if life != self._life:
                done(Overtaken(self._pointer))
            else:
                self.load(needs, done)

        reads = (partial(self._read, need, asked, found, nth) for nth, need in enumerate(needs))
        do_all(reads, self._store.at_once, read)

    def _read(self, need: Need, asked: int, found: list[Answer], nth: int, done: Done) -> None:
        def answered(answer: Answer | Failed) -> None:
            if isinstance(answer, Failed):
                done(answer)
            else:
                found[nth] = answer
                done(None)

        if is_nowhere(need):
            answered(None if isinstance(need, RowKey) else [])
        elif isinstance(need, RowKey):
            self._store.read_row(self._shard, need, self._as_of(asked), answered)
        else:
            self._store.read_entries(self._shard, need, answered)

    def _as_of(self, asked: int) -> int:
        """R1: the newest version that may be read."""
        return asked

    def _recheck(self, asked: int, then: Callable[[int | Failed], None]) -> None:
        """R5: does the pointer still stand where it stood when we began to read?"""
        self._store.read_pointer(self._shard, then)

    def _adopt(self, stored: int) -> None:
        """Another owner is further: a rebuild starts from there."""
        self._pointer = stored
        self._life += 1

    # --- saving -------------------------------------------------------------------------------

    def save(self, checkpoint: Checkpoint, done: Callable[[Outcome], None]) -> None:
        assert not self._saving, "one save at a time"

        def ended(outcome: Outcome) -> None:
            self._saving = 0
            parked, self._parked = self._parked, []
            done(outcome)
            if outcome is None:
                self._owe(checkpoint)
                self.trim()
            for load in parked:
                load()

        if checkpoint.upto <= self._pointer:
            # It stands already; or it is of no use, and writing it would only leave rubbish behind.
            ended(None if checkpoint.upto == self._pointer else Overtaken(self._pointer))
            return

        def written(outcome: Outcome) -> None:
            if outcome is None:
                self._advance(checkpoint, ended)
            else:
                ended(outcome)

        self._saving = checkpoint.upto
        self._write(checkpoint, written)

    def _write(self, checkpoint: Checkpoint, then: Callable[[Outcome], None]) -> None:
        """R2, first: everything that the pointer will cover."""
        do_all(self._writes(checkpoint, self._pointer), self._store.at_once, then)

    def _writes(self, checkpoint: Checkpoint, after: int) -> Iterator[Job]:
        # Also without notes: a chain has no missing link.
        block = NotesBlock(checkpoint.upto, after, checkpoint.at, tuple(checkpoint.notes), frozenset(checkpoint.noted))
        yield partial(self._store.write_block, self._shard, block)
        for kind, a, b, version, value in checkpoint.rows:
            assert version <= checkpoint.upto, (kind, a, b)
            yield partial(self._store.write_row, self._shard, RowKey(kind, a, b), version, value)
        for queue, seq, entry in checkpoint.entries:
            yield partial(self._store.write_entry, self._shard, queue, seq, entry)
        for to, k, record in checkpoint.forwards:
            yield partial(self._store.write_forward, self._shard, to, k, record)

    def _advance(self, checkpoint: Checkpoint, then: Callable[[Outcome], None]) -> None:
        """R2, second: the pointer. R3: where it stands decides what has become of us."""

        def stands(pointer: int | Failed) -> None:
            if isinstance(pointer, Failed):
                then(pointer)
            elif pointer > checkpoint.upto:
                self._adopt(pointer)
                then(Overtaken(pointer))
            else:
                assert pointer == checkpoint.upto, f"the pointer stands at {pointer}, below {checkpoint.upto}"
                self._pointer = pointer
                then(None)

        self._store.advance(self._shard, checkpoint.upto, stands)

    # --- removing what nobody can read any more -----------------------------------------------

    def _owe(self, checkpoint: Checkpoint) -> None:
        """R4: what may go now that the pointer stands at this checkpoint."""
        for kind, a, b, version, _ in checkpoint.rows:
            key = RowKey(kind, a, b)
            self._old[key] = max(version, self._old.get(key, 0))
        for queue, upto in checkpoint.cleared:
            self._gone[queue, 0] = max(upto, self._gone.get((queue, 0), 0))
        for queue, seq in checkpoint.dropped:
            self._gone[queue, seq] = seq

    def trim(self) -> None:
        """R2, third: do the trims that are owed. Nobody waits for it; what fails is done with the next checkpoint."""
        if self._trimming or not self.owing:
            return
        self._trimming = True

        def ended(failed: Failed | None) -> None:
            self._trimming = False
            if not failed:
                self.trim()  # what became owed meanwhile

        rows = [partial(self._trim_row, key, below) for key, below in self._old.items()]
        entries = [partial(self._trim_entries, *start, high) for start, high in self._gone.items()]
        do_all([*rows, *entries], self._store.at_once, ended)

    def _trim_row(self, key: RowKey, below: int, done: Done) -> None:
        def trimmed(failed: Failed | None) -> None:
            if not failed and self._old.get(key) == below:
                del self._old[key]
            done(failed)

        self._store.trim_row(self._shard, key, below, trimmed)

    def _trim_entries(self, queue: int, low: int, high: int, done: Done) -> None:
        def trimmed(failed: Failed | None) -> None:
            if not failed and self._gone.get((queue, low)) == high:
                del self._gone[queue, low]
            done(failed)

        self._store.trim_entries(self._shard, EntryRange(queue, low, high), trimmed)

    # --- forwards -------------------------------------------------------------------------------

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        self._store.read_forwards(self._shard, shard, after, upto, limit, done)

    def drop_forwards(self, shard: int, upto: int, done: Done) -> None:
        self._store.trim_forwards(self._shard, shard, upto, done)

    # --- the delivery log ---------------------------------------------------------------------

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        """Waits for the store: an operator asks this, rarely, and the node asks on another thread than the loop's.

        An iterator over the network would have to wait in any case, and the fold never reads the delivery log.
        """
        told: list[tuple[bytes, ...]] = []
        link = self._pointer
        for block in self._store.blocks(self._shard, self._pointer, since):
            if block.upto == link:
                link = block.after
                if not block.noted.isdisjoint(devices):
                    told.append(block.notes)
        yield from chain.from_iterable(reversed(told))

    def forget(self, before: int) -> None:
        self._store.forget(self._shard, before)

    def close(self) -> None:
        """The node closes the store, which is shared. Nothing here is lost: the trims that are owed free only space."""


def do_all(jobs: Iterable[Job], at_once: int, done: Done) -> None:
    """Do jobs, so many at a time; answer once none is under way. After a failure no further one is begun."""
    waiting = iter(jobs)
    under_way = 0
    starting = False
    failure: Failed | None = None
    ended = False

    def one_done(failed: Failed | None) -> None:
        nonlocal under_way, failure
        under_way -= 1
        failure = failure or failed
        go_on()

    def go_on() -> None:
        nonlocal under_way, starting, ended
        if starting:
            return  # A job was answered before it returned: the loop below goes on.
        starting = True
        while not (ended or failure) and under_way < at_once:
            if job := next(waiting, None):
                under_way += 1
                job(one_done)
            else:
                ended = True
        starting = False
        if not under_way:
            done(failure)

    go_on()
