"""Owners of one shard that do not know of each other, over one store in bad weather.

    python -m sim.runs.owners --runs 5000 --seed 1

One run is one history, folded at different paces: A from its birth, B from wherever the pointer stands when it
starts, while A goes on as if nothing had happened; now and then one dies and another takes over. Each saves
checkpoints where it happens to stand, and reads rows as it goes. Then: whatever a load finds is exactly what the
history says as of the loader's pointer, or the loader is told that it was overtaken; what was saved stays saved; and
when the weather clears, everything is there, and the delivery log tells every record once. What another shard was
told is in its log, or read from the rows, no matter which owner looks or removes what that log has.

Knows:   the history, and so the one right answer to every read.
Touches: a simulated store.
Never:   depends on anything but its seed.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, cast

from msgspec import Struct

from nightmail.engine.cluster.store import WideStore
from nightmail.engine.cluster.wide import Outcome, WideRows
from nightmail.engine.ports import Checkpoint, EntryRange, Failed, Found, Need, Overtaken, RowKey, saving
from nightmail.model.rows import Kept
from sim.faults.wide_store import FAR, Faults, SimWideStore
from sim.world.world import PYTHON

SHARD = 7
DEVICE = 1
LENGTH = 40
"""Offsets in a history."""
KEYS = [RowKey(Kept.SHARD, 0), *(RowKey(Kept.MAILBOX, a) for a in range(5))]
QUEUES = range(2)
OTHER = 3
"""A shard that is told things."""
EVERYTHING: list[Need] = [*KEYS, *(EntryRange(queue, 0, FAR) for queue in QUEUES)]
WEATHER = [
    Faults(slow_ms=20),
    Faults(refuses=0.05, slow_ms=20),
    Faults(times_out=0.05, repeats=0.1, slow_ms=10, late_ms=300),
    Faults(refuses=0.02, times_out=0.03, repeats=0.2, slow_ms=30, late_ms=1_000, skew=20),
]


class Broken(AssertionError):
    """A promise was not kept."""


class Schedule:
    """Time that passes only when it is told to, and what is to happen in it."""

    def __init__(self) -> None:
        self.now = 0
        self._count = 0
        self._jobs: list[tuple[int, int, Callable[[], None]]] = []

    def later(self, delay_ms: int, job: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._jobs, (self.now + delay_ms, self._count, job))

    def step(self) -> bool:
        """Do what is next. False: there is nothing."""
        if self._jobs:
            self.now, _, job = heapq.heappop(self._jobs)
            job()
            return True
        return False

    def run(self) -> None:
        while self.step():
            pass


# --- what is right ----------------------------------------------------------------------------


class Queued(Struct):
    head: int = 0
    acked: int = 0
    dropped: frozenset[int] = frozenset()

    def waiting(self) -> list[int]:
        return [seq for seq in range(self.acked + 1, self.head + 1) if seq not in self.dropped]


class Moment(Struct):
    """Everything as of one offset. Shares what did not change."""

    rows: dict[RowKey, tuple[int, bytes | None]]
    """Key → (version, value)."""
    queues: list[Queued]
    told: int = 0
    """How many things the other shard was told."""


def entry(queue: int, seq: int) -> bytes:
    return b"entry %d/%d" % (queue, seq)


def forward(k: int) -> bytes:
    return b"forward %d" % k


class History:
    def __init__(self, chance: Random) -> None:
        self.moments = [Moment({}, [Queued() for _ in QUEUES])]
        for offset in range(1, LENGTH + 1):
            before = self.moments[-1]
            rows, queues = dict(before.rows), list(before.queues)
            rows[KEYS[0]] = offset, b"shard at %d" % offset
            for key in chance.sample(KEYS[1:], chance.randint(0, 2)):
                value = None if chance.random() < 0.3 else b"%d at %d" % (key.a, offset)
                rows[key] = offset, value
            queue = chance.choice(QUEUES)
            queues[queue] = _changed(queues[queue], chance)
            self.moments.append(Moment(rows, queues, before.told + chance.randint(0, 2)))

    def checkpoint(self, base: int, upto: int, delivered: int) -> Checkpoint:
        """What one owner saves at `upto`, whose last checkpoint was at `base`; it knows of what is `delivered`."""
        old, new = self.moments[base], self.moments[upto]
        pairs = list(enumerate(zip(old.queues, new.queues, strict=True)))
        return Checkpoint(
            upto=upto,
            at=upto,
            rows=[saving(key, version, value) for key, (version, value) in new.rows.items() if version > base],
            entries=[(q, seq, entry(q, seq)) for q, (then, now) in pairs for seq in now.waiting() if seq > then.head],
            cleared=[(q, now.acked) for q, (then, now) in pairs if now.acked > then.acked],
            dropped=[(q, seq) for q, (then, now) in pairs for seq in sorted(now.dropped - then.dropped)],
            notes=[bytes((offset,)) for offset in range(base + 1, upto + 1)],
            noted=frozenset((DEVICE,)),
            forwards=[(OTHER, k, forward(k)) for k in range(max(old.told, delivered) + 1, new.told + 1)],
        )

    def check_forwards(self, pointer: int, delivered: int, found: Sequence[tuple[int, bytes]]) -> None:
        """What is not found up to there is delivered."""
        wanted = [(k, forward(k)) for k in range(delivered + 1, self.moments[pointer].told + 1)]
        if [pair for pair in found if pair[0] > delivered] != wanted:
            raise Broken(f"as of {pointer}, {wanted} is not delivered, but {found} was read")

    def check(self, pointer: int, needs: list[Need], found: Found) -> None:
        right = self.moments[pointer]
        for need, answer in zip(needs, found, strict=True):
            if isinstance(need, RowKey):
                wanted = right.rows.get(need, (0, None))[1]
            else:
                # The mailbox row says what is visible; what else lies there is nobody's business.
                waiting = right.queues[need.queue].waiting()
                wanted = [(seq, entry(need.queue, seq)) for seq in waiting]
                answer = [pair for pair in cast("list[tuple[int, bytes]]", answer) if pair[0] in waiting]
            if answer != wanted:
                raise Broken(f"as of {pointer}, {need} is {wanted!r}, but {answer!r} was read")


def _changed(queue: Queued, chance: Random) -> Queued:
    waiting = queue.waiting()
    match chance.randrange(5):
        case 0 if queue.head > queue.acked:
            acked = chance.randint(queue.acked + 1, queue.head)
            return Queued(queue.head, acked, queue.dropped)
        case 1 if waiting:
            return Queued(queue.head, queue.acked, queue.dropped | {chance.choice(waiting)})
        case _:
            return Queued(queue.head + chance.randint(1, 3), queue.acked, queue.dropped)


# --- who folds --------------------------------------------------------------------------------


class Tally(Struct):
    """What happened, so that a test can see that something did."""

    loads: int = 0
    saves: int = 0
    overtaken: int = 0
    failed: int = 0
    forwards: int = 0
    """Saved ones that were read."""


class Line:
    """An owner's connection to the store. When it dies in the middle of something, nothing more comes through."""

    def __init__(self, store: SimWideStore) -> None:
        self._store = store
        self.alive = True

    @property
    def at_once(self) -> int:
        return self._store.at_once

    def __getattr__(self, name: str) -> Callable[..., None]:
        return getattr(self._store, name) if self.alive else _silence


def _silence(*_arguments: object) -> None:
    pass


class Owner:
    """The loop's manner towards its rows, without a fold: the history says what the fold would."""

    def __init__(self, run: Run, line: Line, rows: WideRows) -> None:
        self._run, self._line, self._rows = run, line, rows
        self._chance = run.chance
        self._pace_ms = run.chance.choice((2, 10, 40))
        self._offset = self._base = rows.pointer
        self._taken: Checkpoint | None = None
        self._saving = False
        self._overtaken = False
        self._life = 0
        """Counts how often we were told that we are overtaken."""
        self._loads = 0
        self._delivered = 0
        """Of what the other shard was told, so many things are in its log, as far as is known here."""
        self.act()

    def die(self) -> None:
        self._line.alive = False

    def act(self) -> None:
        """One turn of the loop; then another, until everything is saved."""
        if not self._line.alive:
            return
        if self._overtaken and not self._saving:
            self._offset = self._base = self._rows.pointer
            self._taken, self._overtaken = None, False
        if not self._overtaken:
            self._offset = min(LENGTH, self._offset + self._chance.randint(0, 3))
            if self._taken is None and self._offset > self._base and self._chance.random() < 0.4:
                self._taken = self._run.history.checkpoint(self._base, self._offset, self._delivered)
        if self._taken and not self._saving:
            self._save(self._taken)
        if self._loads < 2 and not self._overtaken and self._chance.random() < 0.5:
            self._load(self._chance.sample(EVERYTHING, self._chance.randint(1, 4)))
        self._forward()
        if self._rows.pointer < LENGTH or self._saving:
            self._run.schedule.later(self._chance.randint(1, self._pace_ms), self.act)
        elif self._chance.random() < 0.5:
            self._rows.trim()

    def _forward(self) -> None:
        """Now and then: tell the other shard the next thing, remove what it has, look at what was saved."""
        run, chance = self._run, self._chance
        if chance.random() < 0.2 and run.delivered < run.history.moments[self._offset].told:
            run.delivered += 1
            self._delivered = run.delivered
        if chance.random() < 0.2 and self._delivered:
            self._rows.drop_forwards(OTHER, self._delivered, lambda _: None)
        if chance.random() < 0.2:
            pointer = self._rows.pointer
            self._rows.load_forwards(OTHER, 0, run.history.moments[pointer].told, FAR, partial(self._check, pointer))

    def _check(self, pointer: int, found: Sequence[tuple[int, bytes]] | Failed) -> None:
        if isinstance(found, Failed):
            self._run.tally.failed += 1
        else:
            self._run.history.check_forwards(pointer, self._run.delivered, found)
            self._run.tally.forwards += len(found)

    def _load(self, needs: list[Need]) -> None:
        answered, life = False, self._life
        self._loads += 1

        def done(found: Found | Overtaken | Failed) -> None:
            nonlocal answered
            if answered:
                raise Broken("a load was answered twice")
            answered = True
            self._loads -= 1
            match found:
                case Overtaken(pointer):
                    if pointer > self._rows.pointer:
                        raise Broken(f"overtaken by {pointer}, but the pointer is {self._rows.pointer}")
                    if life == self._life:
                        self._be_overtaken()
                case Failed():
                    self._run.tally.failed += 1
                case _ if life != self._life:
                    raise Broken("rows as of the new pointer were given to the state that was overtaken")
                case _:
                    self._run.history.check(self._rows.pointer, needs, found)
                    self._run.tally.loads += 1

        self._rows.load(needs, done)

    def _be_overtaken(self) -> None:
        self._overtaken = True
        self._life += 1
        self._run.tally.overtaken += 1

    def _save(self, checkpoint: Checkpoint) -> None:
        self._saving = True

        def done(outcome: Outcome) -> None:
            if not self._saving:
                raise Broken("a save was answered twice")
            self._saving = False
            match outcome:
                case None:
                    if self._rows.pointer != checkpoint.upto:
                        raise Broken(f"saved up to {checkpoint.upto}, but the pointer is {self._rows.pointer}")
                    self._base, self._taken = checkpoint.upto, None
                    self._run.confirmed = max(self._run.confirmed, checkpoint.upto)
                    self._run.tally.saves += 1
                case Overtaken():
                    self._be_overtaken()
                case Failed():
                    self._run.tally.failed += 1

        self._rows.save(checkpoint, done)


class Run:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.schedule = Schedule()
        self.history = History(self.chance)
        self.tally = Tally()
        self.confirmed = 0
        """The highest checkpoint that somebody was told is saved."""
        self.delivered = 0
        """How many things stand in the other shard's log."""
        self._owners: list[Owner] = []
        self._store = SimWideStore(
            self.chance, self.schedule.later, self.chance.choice(WEATHER), resurrects=self.chance.random() < 0.5
        )

    def go(self) -> Tally:
        self._begin()
        for _ in range(self.chance.randint(1, 3)):
            self.schedule.later(self.chance.randint(1, 600), self._begin)
        self.schedule.run()
        self._store.faults = Faults()
        WideRows.open(self._store, SHARD, self._finish)
        self.schedule.run()
        return self.tally

    def _begin(self) -> None:
        """A new owner starts from the pointer. Those before it may be dead, or only slow."""
        for owner in self._owners:
            if self.chance.random() < 0.2:
                owner.die()

        line = Line(self._store)

        def opened(rows: WideRows | Failed) -> None:
            if isinstance(rows, Failed):
                self._begin()
            else:
                self._owners.append(Owner(self, line, rows))

        WideRows.open(cast("WideStore", line), SHARD, opened)

    def _finish(self, rows: WideRows | Failed) -> None:
        """Everything has come to rest: is it as it should be?"""
        assert isinstance(rows, WideRows)
        if rows.pointer < self.confirmed or rows.pointer != LENGTH:
            raise Broken(f"{self.confirmed} was confirmed, {LENGTH} was to be reached, {rows.pointer} is there")

        def done(found: Found | Overtaken | Failed) -> None:
            assert not isinstance(found, Overtaken | Failed)
            self.history.check(rows.pointer, EVERYTHING, found)

        rows.load(EVERYTHING, done)
        check = partial(self.history.check_forwards, rows.pointer, self.delivered)
        told = self.history.moments[rows.pointer].told
        rows.load_forwards(OTHER, 0, told, FAR, lambda found: None if isinstance(found, Failed) else check(found))
        noted = b"".join(rows.recall((DEVICE,), 0))
        if noted != bytes(range(1, LENGTH + 1)):
            raise Broken(f"the delivery log tells {list(noted)}")


def run(seed: int) -> Tally:
    """One run. Raises Broken."""
    return Run(seed).go()


# --- how it could be wrong --------------------------------------------------------------------

_owe: Callable[[WideRows, Checkpoint], None] = vars(WideRows)["_owe"]
_write: Callable[[WideRows, Checkpoint, Callable[[Outcome], None]], None] = vars(WideRows)["_write"]
_advance: Callable[[WideRows, Checkpoint, Callable[[Outcome], None]], None] = vars(WideRows)["_advance"]


def _as_of_the_end(_rows: WideRows, _asked: int) -> int:
    return FAR


def _trim_then_write(rows: WideRows, checkpoint: Checkpoint, then: Callable[[Outcome], None]) -> None:
    _owe(rows, checkpoint)
    rows.trim()
    _write(rows, checkpoint, then)


def _believe(_rows: WideRows, asked: int, then: Callable[[int | Failed], None]) -> None:
    then(asked)


PLANTED: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "read the latest version": {"_as_of": _as_of_the_end},
    "pointer before rows": {"_write": _advance, "_advance": _write},
    "trim before pointer": {"_write": _trim_then_write},
    "no second look at the pointer": {"_recheck": _believe},
}
"""Mistake → methods of WideRows to replace. Each must be caught."""


def main() -> None:
    parser = argparse.ArgumentParser(description="owners of one shard over one store in bad weather")
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    total = Tally()
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        try:
            tally = run(seed)
        except Broken:
            print(f"broken: {PYTHON} -m sim.runs.owners --runs 1 --seed {seed}")
            raise
        for field in Tally.__struct_fields__:
            setattr(total, field, getattr(total, field) + getattr(tally, field))
    print(f"{arguments.runs} runs: {total}")


if __name__ == "__main__":
    main()
