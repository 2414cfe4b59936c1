"""Cut the power of a data folder at every kind of moment, and see what is there afterwards.

    python -m sim.runs.powercuts --cuts 20000 --seed 1        the campaign
    python -m sim.runs.powercuts --cuts 1 --seed S            one case, as a failure prints it

One case is a folder in several lives: log and rows on ONE simulated disk are used as the loop uses
them, and the power is cut at a random operation, also while recovering from the cut before. Some
lives end otherwise, and are counted apart: only the process is killed, or a disk error keeps it from
going on. Then: the rows are those after the last confirmed checkpoint or after the one that was under
way; the log has every confirmed batch above them, in order, and nothing that was never written.

Knows:   what was confirmed, and a model of what that means.
Touches: a simulated disk.
Never:   depends on anything but its seed.
"""

from __future__ import annotations

import argparse
import errno
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random

import apsw

from nightmail.engine.filelog import FileLog
from nightmail.engine.folder_check import check_folder
from nightmail.engine.memory import MemoryRows
from nightmail.engine.ports import (
    Checkpoint,
    EngineError,
    EntryRange,
    Failed,
    Found,
    Need,
    Overtaken,
    RowKey,
    Rows,
    saving,
)
from nightmail.engine.sqlite import SqliteRows, SqliteSettings
from nightmail.model.rows import Kept
from sim.faults.disk import Disk, Killed, PowerCut
from sim.faults.disk_vfs import DiskVfs
from sim.world.world import PYTHON

FOLDER = "data"
LIVES = 4
"""In one case: what one recovery leaves is where the next one starts."""
ENDINGS = ("cuts", "cuts_in_recovery", "cuts_at_birth", "kills", "errors")
"""How lives ended: by a power cut, of which some came while a folder was opened again and some while it was made;
by a kill; by an error of the disk, after which the machine was switched off."""
SETTINGS = SqliteSettings(cache_kib=64, wal_truncate_ms=3, wal_pages=24, forget_bytes=1_000)
FAILING = {"write": 0.01, "sync": 0.03}
"""How often these go wrong, in a folder on a bad disk."""
KEYS = [RowKey(kind, a) for kind in (Kept.SHARD, Kept.MAILBOX, Kept.STREAM) for a in range(4)]
QUEUES = range(5)
EVERYTHING: list[Need] = [*KEYS, *(EntryRange(queue, 0, 1_000_000) for queue in QUEUES)]


class Broken(AssertionError):
    """A promise was not kept."""


class Lost(Broken):
    """What was confirmed is not there."""


class Torn(Broken):
    """What is there was never written like that."""


def inline(job: Callable[[], None]) -> None:
    job()


class Faults:
    """Cuts the power at one operation, and makes a few others fail."""

    def __init__(self, chance: Random, *, errors: bool) -> None:
        self._chance = chance
        self.errors = errors
        self.left = 0
        self._at_sync_of, self._kills, self._doubted = "", False, False
        self.ended_by: type[PowerCut] | None = None
        """What came at the planned operation, if it has come."""
        self._spared = 0
        """Syncs to let pass before the one at which the power is cut."""

    def plan(self, operations: int) -> None:
        self.ended_by = None
        self.left = self._chance.randrange(1, operations)
        # Just before a sync most is at stake; and sometimes only the process dies.
        self._at_sync_of = self._chance.choice(("", "", "*log-*", "*rows.*"))
        self._kills, self._spared = self._chance.random() < 0.2, 0
        if self._doubted:
            # Soon after this life has believed what it found.
            self.left, self._at_sync_of, self._kills = 1, "*log-*", False
            self._spared, self._doubted = self._chance.randrange(2, 8), False

    def __call__(self, operation: str, path: str) -> None:
        self.left -= 1
        if self.left == 0 and self._at_sync_of:
            awaited = operation == "sync" and fnmatchcase(path, self._at_sync_of)
            if not awaited or self._spared:
                self.left, self._spared = 1, self._spared - awaited
        if self.left == 0:
            self.ended_by = Killed if self._kills else PowerCut
            raise self.ended_by
        if self.errors and operation in FAILING and self._chance.random() < FAILING[operation]:
            if operation == "sync" and self.left > 0 and self._chance.random() < 0.7:
                self._doubt(path)
            raise OSError(
                self._chance.choice((errno.EIO, errno.ENOSPC) if operation == "write" else (errno.EIO,)), path
            )

    def _doubt(self, path: str) -> None:
        """A sync fails: from now on the kernel may show what is not on the disk. Where would it be believed?"""
        chance = self._chance
        self._at_sync_of, self._kills, self._spared = "", chance.random() < 0.5, 0
        if path.endswith("-wal") and chance.random() < 0.5:
            # By the life that opens the database again and copies a commit into it: the power goes before it syncs.
            self.left, self._at_sync_of, self._kills = 1, "*rows.db", False
        elif chance.random() < 0.5:
            # By the next life, if this one ends at once; then it is the next one that loses the power.
            self.left, self._kills, self._doubted = 1, True, True
        else:
            self.left = min(self.left, chance.randrange(1, chance.choice((4, 30))))


class Case:
    """One folder through several lives."""

    def __init__(self, vfs: DiskVfs, seed: int) -> None:
        self.chance = Random(seed)
        self.endings: Counter[str] = Counter()
        """See ENDINGS."""
        self._is_made = False
        self._faults = Faults(self.chance, errors=self.chance.random() < 0.5)
        self._disk = Disk(self.chance, self._faults)
        self._vfs = vfs
        vfs.disk, vfs.chance = self._disk, self.chance
        apsw.randomness(0)  # SQLite asks for a new seed, and gets it from this case
        self._now = 0
        self._model = MemoryRows()
        self._under_way: Checkpoint | None = None
        """Given to the rows and not confirmed: it is there whole, or not at all."""
        self._records: dict[int, bytes] = {}
        """Offset → every record that was confirmed."""
        self._doubtful: list[list[bytes]] = []
        """Batches of unknown outcome since the last confirmed one."""
        self._identity = b""
        self._forgotten = 0
        """Notes before this time may be gone: forgetting is not confirmed."""

    def run(self) -> None:
        for _ in range(LIVES):
            self._faults.plan(self.chance.choice((60, 400, 1_200)))
            self._live()
            self._disk.power_on()
        self._faults.left, self._faults.errors = 0, False
        for part in self._open():
            part.close()

    # --- one life ---

    def _live(self) -> None:
        opened = None
        try:
            opened = self._open()
            self._is_made = True
            while self._disk.is_on:
                self._use(*opened)
        except PowerCut:
            pass
        except EngineError:
            # Without power there may be any error. With power, one that was planted while opening
            # keeps the server from starting, and its operator switches the machine off.
            if self._disk.is_on and not self._faults.errors:
                raise
        finally:
            if self._disk.is_on:
                self._disk.power_cut()
            if opened:
                opened[0].close()
        self._count_ending(while_opening=opened is None)

    def _count_ending(self, *, while_opening: bool) -> None:
        if self._faults.ended_by is None:
            self.endings["errors"] += 1
        elif self._faults.ended_by is Killed:
            self.endings["kills"] += 1
        else:
            self.endings["cuts"] += 1
            if while_opening:
                self.endings["cuts_in_recovery" if self._is_made else "cuts_at_birth"] += 1

    def _open(self) -> tuple[SqliteRows, FileLog]:
        check_folder(Path(FOLDER), self._disk.files(FOLDER), self._vfs.name)
        rows = SqliteRows(
            Path(FOLDER),
            post=inline,
            execute=inline,
            entropy=self.chance.randbytes,
            settings=SETTINGS,
            vfs=self._vfs.name,
            alone=True,
        )
        try:
            self._check_rows(rows)
            log = FileLog(
                self._disk.files(FOLDER),
                rows.identity,
                after=rows.pointer,
                post=inline,
                execute=inline,
                entropy=self.chance.randbytes,
                segment_bytes=16_384,
                segment_age_ms=40,
            )
            self._check_log(log, rows.pointer)
        except BaseException:
            rows.close()
            raise
        return rows, log

    def _use(self, rows: SqliteRows, log: FileLog) -> None:
        chance = self.chance
        self._now += chance.randrange(3)
        for _ in range(chance.randrange(4)):
            self._append(log)
        if log.last > rows.pointer:
            self._save(rows, log.last)
        if chance.random() < 0.5:
            log.trim(rows.pointer, self._now)
        if chance.random() < 0.1:
            self._forgotten = self._now - 5
            rows.forget(self._forgotten)

    def _append(self, log: FileLog) -> None:
        chance = self.chance
        records = [chance.randbytes(chance.choice((0, 5, 60, 700, 2_500))) for _ in range(chance.randrange(1, 4))]
        self._doubtful.append(records)
        before = log.last

        def done(first: int | None) -> None:
            if first is None:
                return
            if first != before + 1:
                raise Torn(f"an append after offset {before} was given offset {first}")
            self._records |= dict(enumerate(records, first))
            self._doubtful.clear()

        log.append(self._now, records, done)

    def _save(self, rows: SqliteRows, upto: int) -> None:
        # What failed may be there all the same: nothing else is saved before it was repeated.
        self._under_way = checkpoint = self._under_way or self._a_checkpoint(upto)
        outcomes: list[Overtaken | Failed | None] = []
        for _ in range(4):
            rows.save(checkpoint, outcomes.append)
            if outcomes[-1] is None:
                self._model.save(checkpoint, lambda _: None)
                self._under_way = None
                break
        if rows.pointer != self._model.pointer:
            raise Torn(f"the pointer is {rows.pointer}, confirmed was {self._model.pointer}")

    def _a_checkpoint(self, upto: int) -> Checkpoint:
        chance = self.chance
        entries = {
            (chance.choice(QUEUES), upto * 10 + n): chance.randbytes(chance.choice((10, 600, 2_000)))
            for n in range(chance.randrange(5))
        }
        waiting = sorted(self._model.entries)
        return Checkpoint(
            upto,
            self._now,
            rows=[
                saving(key, upto, chance.choice((None, chance.randbytes(chance.choice((0, 200, 3_000))))))
                for key in chance.sample(KEYS, chance.randrange(5))
            ],
            entries=[(queue, seq, body) for (queue, seq), body in entries.items()],
            cleared=[chance.choice(waiting)] if waiting and chance.random() < 0.6 else [],
            dropped=[chance.choice(waiting)] if waiting and chance.random() < 0.3 else [],
            notes=[chance.randbytes(chance.choice((40, 900))) for _ in range(chance.randrange(4))],
            noted=frozenset(chance.choices(range(1, 9), k=2)),
        )

    # --- what must be there ---

    def _check_rows(self, rows: SqliteRows) -> None:
        if rows.pointer < self._model.pointer:
            raise Lost(f"rows are as of {rows.pointer}, confirmed was {self._model.pointer}")
        if self._identity and self._model.pointer and rows.identity != self._identity:
            raise Lost("the rows have a new identity")
        self._identity = rows.identity
        if rows.pointer > self._model.pointer:
            if not self._under_way or self._under_way.upto != rows.pointer:
                raise Torn(f"rows are as of {rows.pointer}, which nobody has saved")
            self._model.save(self._under_way, lambda _: None)
        self._under_way = None
        found, saved = _read_all(rows, self._forgotten), _read_all(self._model, self._forgotten)
        if wrong := [what for what in saved if found[what] != saved[what]]:
            raise Torn(f"as of {rows.pointer} these are not what was saved: {wrong}")

    def _check_log(self, log: FileLog, after: int) -> None:
        found = {
            offset: record
            for batch in log.replay(after)
            for offset, record in enumerate(batch.records, batch.first)
            if offset > after
        }
        if list(found) != list(range(after + 1, log.last + 1)):
            raise Torn(f"after {after} the log, which ends at {log.last}, gives offsets {list(found)}")
        for offset, record in self._records.items():
            if offset > after and found.get(offset) != record:
                raise Lost(f"offset {offset} was confirmed and is {'another' if offset in found else 'gone'}")
        confirmed = max(self._records, default=0)
        rest = [record for offset, record in sorted(found.items()) if offset > max(after, confirmed)]
        if log.last < max(after, confirmed) or (rest and rest not in self._doubtful):
            raise Torn(f"after the confirmed offset {confirmed} the log ends at {log.last}: nobody has appended that")
        self._records |= found
        self._doubtful.clear()


def _read_all(rows: Rows, since: int) -> dict[object, object]:
    answers: list[Found | Overtaken | Failed] = []
    rows.load(EVERYTHING, answers.append)
    (found,) = answers
    if isinstance(found, Failed):
        raise EngineError(found.why)
    assert not isinstance(found, Overtaken)
    notes = {f"notes of {device}": list(rows.recall((device,), since)) for device in range(1, 9)}
    return {**dict(zip(EVERYTHING, found, strict=True)), **notes}


# --- the campaign -----------------------------------------------------------------------------


def run_campaign(cuts: int, seed: int, say: Callable[[str], None]) -> dict[str, object]:
    """As many cases as it takes for so many power cuts. Stops at the first that is broken."""
    began = said = time.monotonic()
    vfs = DiskVfs("powercuts", Disk(Random(0)), Random(0), default=True)
    endings: Counter[str] = Counter()
    lost = torn = 0
    case_seed = seed
    try:
        while endings["cuts"] < cuts:
            case = Case(vfs, case_seed)
            try:
                case.run()
            except (Lost, EngineError) as error:
                lost += 1
                say(_failure(case_seed, error))
            except Torn as error:
                torn += 1
                say(_failure(case_seed, error))
            endings += case.endings
            case_seed += 1
            if lost or torn:
                break
            if (now := time.monotonic()) - said >= 1:
                said = now
                done, in_recovery = endings["cuts"], endings["cuts_in_recovery"]
                say(f"{done:,} of {cuts:,} cuts, {in_recovery:,} in recovery, {done / (now - began):,.0f} per second")
    finally:
        vfs.unregister()
    return {
        "campaign": "powercuts",
        "seed": seed,
        **{ending: endings[ending] for ending in ENDINGS},
        "lost": lost,
        "torn": torn,
        "seconds": round(time.monotonic() - began, 1),
    }


def _failure(seed: int, error: Exception) -> str:
    return f"{type(error).__name__}: {error}\nalone: {PYTHON} -m sim.runs.powercuts --seed {seed} --cuts 1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    outcome = run_campaign(asked.cuts, asked.seed, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(outcome))
    return 1 if outcome["lost"] or outcome["torn"] else 0


if __name__ == "__main__":
    sys.exit(main())
