"""Durable batches go in, in order; the state and what it asks for come out.

Knows:   which batch is next, which rows it still waits for, which records cannot be applied.
Touches: the state, through the fold; the rows, to read.
Never:   starts a step before every row it needs is in memory, or folds past a version it does not know.

A record that raises is a mistake of ours, unless the machine is to blame: that stops us (machine_errors.py).
The state may be half changed, so it is thrown away, rebuilt from the checkpoint, and that one record
is folded as dead: the same on every replay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import cast

from msgspec import Struct

from nightmail.core.letters.burying import bury, needs_bury
from nightmail.core.shard import FoldTooNew
from nightmail.core.state import SHARD, ShardState
from nightmail.core.step import FOLDS, OPTIMISTIC
from nightmail.model.effects import Effect, Forward
from nightmail.model.ids import SERVER
from nightmail.model.records import AnyBody, BadRecord, Record, decode_record
from nightmail.model.rows import EntryRange, Need

from .machine_errors import MACHINE_ERRORS, as_engine_error
from .ports import EngineError, Failed, Found, Log, Overtaken, Rows, Stored, TrimmedAway, last_of

ROUNDS_MAX = 5
"""Loads that one record may need: accounts, their mailboxes, then the way to a place in time, which is an hour, its
last slot and the one behind it. More is a `needs` that never ends."""

FAILURES_TOLD = 5
"""Loads that fail in a row before the operator is told. They are repeated all the same."""


class Durable(Struct):
    """A batch that the log has. `records` is None where only its bytes are at hand."""

    first: int
    at: int
    data: Sequence[bytes]
    records: Sequence[Record] | None = None
    span: int = 1

    @property
    def last(self) -> int:
        """As `Stored.last`."""
        if self.span == 1:
            return self.first + len(self.data) - 1
        return last_of(self.first, len(self.data), self.span)


class Folded(Struct, frozen=True):
    """What one batch asks for."""

    upto: int
    effects: list[Effect]
    forwards: list[tuple[int, Forward]]
    """With the offset of the record that each follows from."""


class Folding:
    def __init__(
        self,
        log: Log,
        rows: Rows,
        new_state: Callable[[], ShardState],
        on_folded: Callable[[Folded], None],
        on_poison: Callable[[int, Exception], None],
        on_trouble: Callable[[str], None],
        on_begin: Callable[[ShardState], None] = lambda _: None,
    ) -> None:
        """`on_begin` is shown the state as of the checkpoint, before anything behind it is folded."""
        self._log, self._rows, self._new_state = log, rows, new_state
        self._on_begin = on_begin
        self._on_folded, self._on_poison, self._on_trouble = on_folded, on_poison, on_trouble
        self.state = new_state()
        self.ready = False
        """Everything that was durable when we started is folded."""
        self.stopped: EngineError | None = None
        """Why nothing can be folded any more, by this process."""
        self._batches: deque[Durable] = deque()
        self._early: list[Durable] = []
        self._replay: Iterator[Stored] | None = None
        self._index = 0
        """How far the oldest batch is folded."""
        self._nth = 0
        """How many have been folded under this offset: the record itself, and what follows from it."""
        self._inside: tuple[int, int, AnyBody] | None = None
        """What waits for rows, if it follows from the record at `_index`: (author, answer address, body)."""
        self._forwards: list[tuple[int, Forward]] = []
        self._rounds = 0
        self._careful = False
        """The next record has waited, or may be poisoned."""
        self._loading = False
        self._running = False
        self._life = 0
        """Counts rebuilds: an answer that was asked for in an earlier life is not ours any more."""
        self.wants_rebuild = False
        """The state is of no use: rebuild it as soon as no save is under way."""
        self._failed_load: Callable[[], None] | None = None
        self._failures = 0
        """Loads that failed, one after the other."""
        self._poisoned: dict[tuple[int, int], list[str]] = {}
        """(offset, n): what the n-th record under that offset raised, and what burying it with care raised."""

    @property
    def between_records(self) -> bool:
        return self._nth == 0 and not self._loading and not self.wants_rebuild

    @property
    def folded_upto(self) -> int:
        """The newest record that is folded with all that follows from it."""
        return self.state.offset - 1 if self._nth else self.state.offset

    @property
    def next_offset(self) -> int:
        """Where the next batch must begin."""
        return 1 + (self._batches[-1].last if self._batches else self.state.offset)

    @property
    def caught_up(self) -> bool:
        """Nothing durable waits to be folded."""
        return self.ready and not self._batches

    # --- starting -----------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Start from the checkpoint, and fold everything that the log has behind it."""
        self._life += 1
        self.state = self._new_state()
        self.state.offset = self._rows.pointer
        self._batches.clear()
        self._forwards.clear()
        self._index, self._nth, self._rounds = 0, 0, 0
        self._loading, self.wants_rebuild, self.ready = False, False, False
        self._inside, self._replay, self._failed_load = None, None, None
        self._careful = bool(self._poisoned)
        self._load([SHARD], self._begin_replay)

    def _begin_replay(self) -> None:
        state = self.state
        if state.shard.fold > state.newest_fold:
            self._stop(FoldTooNew(state.shard.fold, state.newest_fold))
            return
        # Where the rows that were just read belong: a save of unknown outcome may have been settled meanwhile.
        state.offset = self._rows.pointer
        self._on_begin(state)
        self._replay = self._log.replay(state.offset)
        self.run()

    # --- folding ------------------------------------------------------------------------------

    def feed(self, batch: Durable) -> None:
        """Take the next batch and fold it. One that is not next is ignored: its turn comes again."""
        self.take(batch)
        self.run()

    def take(self, batch: Durable) -> None:
        """Put the next batch behind the others, to be folded by `run`."""
        if not self.ready:
            self._early.append(batch)  # It may be behind what is being replayed.
        elif batch.first <= self.next_offset <= batch.last:
            self._batches.append(batch)

    def run(self) -> None:
        """Fold until there is nothing left, or a row must be waited for."""
        if self._running:
            return
        self._running = True
        try:
            while not (self._loading or self.wants_rebuild or self.stopped) and (batch := self._next_batch()):
                if self._fold(batch):
                    if batch.span > 1:
                        self.state.offset = batch.last  # A checkpoint ends where the next batch begins.
                    self._batches.popleft()
                    self._index = 0
                    self._hand_out()
        finally:
            self._running = False

    def _next_batch(self) -> Durable | None:
        if not self._batches and self._replay is not None:
            try:
                stored = next(self._replay, None)
            except TrimmedAway:
                # Another owner has saved more than we knew of: start again from there.
                self.wants_rebuild = True
                return None
            if stored:
                self._batches.append(Durable(stored.first, stored.at, stored.records, None, stored.span))
            else:
                self._replay = None
                self.ready = True
                early, self._early = self._early, []
                for batch in early:
                    self.take(batch)
        return self._batches[0] if self._batches else None

    def _fold(self, batch: Durable) -> bool:
        """Fold what is left of a batch. False: waiting for rows, or the state must be rebuilt."""
        state, shard, first = self.state, self.state.shard, batch.first
        records = batch.records if batch.records is not None else repeat(None, len(batch.data))
        if batch.at > shard.now and first > shard.set_back_by:
            shard.now = batch.at
        # The checkpoint may have the first of them already.
        start = max(self._index, 0 if self._nth else state.offset - first + 1)
        fold = FOLDS[shard.fold]
        for offset, record in enumerate(islice(records, start, None), first + start):
            try:
                if record is None:
                    record = decode_record(batch.data[offset - first])
                body = record.body
                kind = type(body)
                if kind not in OPTIMISTIC or self._careful:
                    done = self._fold_one(offset, record, batch.data[offset - first])
                else:
                    needs, step = fold[kind]
                    state.offset = offset
                    try:
                        step(state, record.by, record.via, body)
                    except KeyError:
                        state.offset = offset - 1
                        if not needs(state, record.by, body):
                            raise
                        done = self._fold_one(offset, record, batch.data[offset - first])
                    else:
                        if not state.derived and not state.forwards:
                            continue
                        done = self._follow(offset, batch.data[offset - first])
            except MACHINE_ERRORS as error:
                self._stop(error)
                return False
            except BadRecord as error:
                if not self._bury_unreadable(offset, batch.data[offset - first], error):
                    self._index, self._careful = offset - first, True
                    return False
            except Exception as error:  # noqa: BLE001  # whatever a mistake of ours may raise
                self._poisoned.setdefault((offset, self._nth), []).append(type(error).__name__)
                self._careful = self.wants_rebuild = True
                self._on_poison(offset, error)
                return False
            else:
                if not done:
                    self._index, self._careful = offset - first, True
                    return False
                fold = FOLDS[shard.fold]  # It may just have been raised.
        return True

    def _fold_one(self, offset: int, record: Record, data: bytes) -> bool:
        """Fold a record that waits for rows, has waited, or may be poisoned. False: it waits (again)."""
        by, via, body = self._inside or (record.by, record.via, record.body)
        if not self._step(offset, data, by, via, body):
            return False
        self._inside = None
        self._careful = bool(self._poisoned)
        return self._follow(offset, data)

    def _follow(self, offset: int, data: bytes) -> bool:
        """Fold all that follows from a record, under its offset. False: waiting for rows."""
        state = self.state
        while state.derived:
            self._nth += 1
            body = state.derived.popleft()
            if type(body) in OPTIMISTIC and not self._poisoned and self._try(body):
                continue
            if not self._step(offset, data, SERVER, 0, body):
                return False
        self._nth = 0
        if state.forwards:
            self._forwards.extend((offset, forward) for forward in state.forwards)
            state.forwards.clear()
        return True

    def _try(self, body: AnyBody) -> bool:
        """Fold what follows without asking what it needs. False: a row is missing, and nothing has happened."""
        needs, step = FOLDS[self.state.shard.fold][type(body)]
        try:
            step(self.state, SERVER, 0, body)
        except KeyError:
            if not needs(self.state, SERVER, body):
                raise
            return False
        return True

    def _step(self, offset: int, data: bytes, by: int, via: int, body: AnyBody) -> bool:
        state = self.state
        if self._poisoned and (offset, self._nth) in self._poisoned:
            needs, step = partial(self._needs_bury, offset), partial(self._bury, offset, data)
        else:
            needs, step = FOLDS[state.shard.fold][type(body)]
        while missing := needs(state, by, body):
            if not self._has(missing, body):
                self._inside = (by, via, body) if self._nth else None
                return False
        self._rounds = 0
        state.offset = offset
        step(state, by, via, body)
        return True

    def _has(self, missing: Sequence[Need], body: AnyBody | BadRecord) -> bool:
        """Ask for rows. False if they are not here yet: the record waits, and `run` comes back to it."""
        self._rounds += 1
        assert self._rounds <= ROUNDS_MAX, f"the needs of {type(body).__name__} never end"
        self._load(missing, self.run)
        return not (self._loading or self.wants_rebuild or self.stopped)

    def _bury_unreadable(self, offset: int, data: bytes, error: BadRecord) -> bool:
        """Set aside bytes that are no record. False: waiting for rows."""
        state = self.state
        while missing := needs_bury(state, offset, str(error), SERVER, None):
            if not self._has(missing, error):
                return False
        self._rounds = 0
        self._careful = bool(self._poisoned)
        state.offset = offset
        bury(state, offset, data, str(error), SERVER, 0, None)
        self._on_poison(offset, error)
        return True

    def _needs_bury(self, offset: int, state: ShardState, by: int, body: AnyBody) -> Sequence[Need]:
        careful = body if self._is_buried_with_care(offset) else None
        return needs_bury(state, offset, self._error(offset, body), by, careful)

    def _bury(self, offset: int, data: bytes, state: ShardState, by: int, via: int, body: AnyBody) -> None:
        """Set aside a record that raised before. What follows from others under its offset goes on."""
        careful = body if self._is_buried_with_care(offset) else None
        bury(state, offset, data, self._error(offset, body), by, via, careful)

    def _error(self, offset: int, body: AnyBody) -> str:
        """What a letter says about a record that raised before."""
        return f"{self._poisoned[offset, self._nth][0]} in {type(body).__name__}"

    def _is_buried_with_care(self, offset: int) -> bool:
        """The rows that a record would have changed are looked at once more, unless that, too, has raised."""
        return len(self._poisoned[offset, self._nth]) == 1

    def _stop(self, error: Exception) -> None:
        self.stopped = self.stopped or as_engine_error(error)

    def _hand_out(self) -> None:
        state, forwards = self.state, self._forwards
        effects, state.effects, self._forwards = state.effects, [], []
        self._on_folded(Folded(state.offset, effects, forwards))

    # --- rows that are not in memory ----------------------------------------------------------

    def _load(self, missing: Sequence[Need], then: Callable[[], None]) -> None:
        life = self._life
        self._loading = True

        def loaded(found: Found | Overtaken | Failed) -> None:
            if life != self._life:
                return
            self._loading = False
            if isinstance(found, Overtaken):
                self.wants_rebuild = True
                return
            if isinstance(found, Failed):
                self._loading = True
                self._failed_load = lambda: self._load(missing, then)
                self._failures += 1
                if self._failures == FAILURES_TOLD:
                    self._on_trouble(found.why)
                return
            self._failures = 0
            if self._install(missing, found):
                then()

        self._ask(missing, loaded)

    def _ask(self, missing: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        """Load rows, also on behalf of a session, which could not tell what it means that this fails."""
        at_once: list[Found | Overtaken | Failed] = []
        returned = False

        def answered(found: Found | Overtaken | Failed) -> None:
            if returned:
                done(found)
            else:
                at_once.append(found)

        try:
            self._rows.load(missing, answered)
        except MACHINE_ERRORS as error:
            self._stop(error)
            return
        # Only now: what a callback raises is not the rows' fault.
        returned = True
        for found in at_once:
            done(found)

    def _install(self, missing: Sequence[Need], found: Found) -> bool:
        """Put rows into the state. False: they are damaged, or too much, and this is the end."""
        try:
            for need, data in zip(missing, found, strict=True):
                if isinstance(need, EntryRange):
                    self.state.install_entries(need.queue, cast("Sequence[tuple[int, bytes]]", data))
                else:
                    self.state.install(need, cast("bytes | None", data))
        except MACHINE_ERRORS as error:
            self._stop(error)
            return False
        return True

    def read(self, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]) -> None:
        """Look at rows outside the fold: call `then` once nothing that `wanted` names is missing.

        Not called at all if the rows cannot be read, or the state is rebuilt meanwhile: ask again.
        Nor if a row turns out to be damaged: then all has `stopped`.
        """
        missing = wanted(self.state)
        if not missing:
            then(self.state)
            return
        life, pointer = self._life, self._rows.pointer

        def loaded(found: Found | Overtaken | Failed) -> None:
            if life != self._life or self.wants_rebuild or self.stopped or isinstance(found, Failed):
                return
            if isinstance(found, Overtaken):
                self.wants_rebuild = True
                return
            # If the pointer moved, a row may have been changed, saved and let go since we asked.
            if pointer != self._rows.pointer or self._install(missing, found):
                self.read(wanted, then)

        self._ask(missing, loaded)

    def retry_load(self) -> None:
        """Ask again for rows that could not be read."""
        if again := self._failed_load:
            self._failed_load = None
            again()

    def saved(self) -> None:
        """The pointer has moved. No replay comes back to what is poisoned below it, so nobody need look out for it."""
        pointer = self._rows.pointer
        self._poisoned = {place: why for place, why in self._poisoned.items() if place[0] > pointer}

    def abandon(self) -> None:
        """Somebody else's checkpoint is newer than ours: what we hold cannot be built upon."""
        self.wants_rebuild = True
