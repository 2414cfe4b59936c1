"""`make kills`: the real server process, killed with SIGKILL again and again while people write.

    python -m sim.runs.kills --kills 50 --seed 1

Three kinds of instants, in turn:

- *random*: some time after messages flow again.
- *after an ack*: at the moment when *sent* has come back, before the device has even read it. What the server has
  promised must be there after the restart.
- *in a checkpoint*: nothing but a checkpoint writes to rows.db-wal, and inotify tells of each write. A thread
  that does nothing else kills the process at the first write of a checkpoint, or a few writes later. Afterwards
  the WAL itself is the witness: if its last frame does not end a transaction, the kill was inside of one.

Each time the server starts again on the same folder. The clients are real, live through all of it, and keep
what they keep in their profiles. At the end everything heals, and what they saw is judged.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import signal
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nightmail.client.limits import ClientLimits
from nightmail.model.words import Lane
from nightmail.testing import RunningServer, running_server
from nightmail.verify.participants import Participant
from nightmail.verify.plan import Plan
from nightmail.verify.redelivery import ConnectionCheck, RedeliveryCheck
from nightmail.verify.run import Result, Run

KINDS = ("after an ack", "in a checkpoint", "random")
SETTINGS = {"data.checkpoint_ms": 250, "data.wal_pages": 64}
"""Checkpoints often, and the WAL starts over often: more instants at which something is half done."""
EAGER = ClientLimits(backoff_ms_min=50, backoff_ms_max=200, retry_ms_min=200, retry_ms_max=1_000)
FLOWING = 30
"""Messages acknowledged since the last start, before the next kill is prepared."""
STUCK_S = 120.0
"""Nothing moves for this long: the server does not serve, and that is a failure of its own."""

IN_MODIFY = 0x2
WAL_HEADER, FRAME_HEADER = 32, 24


class Trigger(RedeliveryCheck):
    """Kills at an ack, once it is armed."""

    def __init__(self, name: str, campaign: Kills) -> None:
        super().__init__(name)
        self._campaign = campaign

    def connection(self) -> ConnectionCheck:
        return TimedConnection(self, self._campaign)

    def accepted(self) -> None:
        self._campaign.on_ack()


class TimedConnection(ConnectionCheck):
    """Notes when a frame came, so that it can be said how soon after it the kill was."""

    def __init__(self, check: RedeliveryCheck, campaign: Kills) -> None:
        super().__init__(check)
        self._campaign = campaign

    def down(self, payload: bytes) -> None:
        self._campaign.came_ns = time.perf_counter_ns()
        super().down(payload)


class Kills(Run):
    """A run without faults of the network, in which the server dies all the time."""

    def __init__(self, kills: int, seed: int, server: RunningServer, look: Callable[[int], None]) -> None:
        plan = Plan(seed=seed, people=3, devices=2, seconds=0, kills=False, faults=False)
        super().__init__(plan, [server.url], server, limits=EAGER)
        self._count, self._chance, self._process, self._look_at = kills, Random(seed), server, look
        self._acks_until: int | None = None
        self._killed = asyncio.Event()
        self._over = False
        self.kinds: Counter[str] = Counter()
        self.inside = 0
        """Kills after which the WAL ended in the middle of a transaction."""
        self.came_ns = 0
        """When the newest frame was read from the server."""
        self.delays_us: list[int] = []
        """From reading an ack to asking the kernel for the kill. When that call returns tells nothing: on a busy
        machine this process loses its turn inside of it (seen: up to 11 ms, with 0.1 ms of work), and whether
        the signal was out by then cannot be seen from here."""

    def redelivery_check(self, name: str) -> RedeliveryCheck:
        return Trigger(name, self)

    async def execute(self) -> None:
        for participant in self.participants:
            self.do(self._writing(participant, Random(self._chance.getrandbits(64))))
        for number in range(self._count):
            kind = KINDS[number % len(KINDS)]
            await self._flowing()
            await self._kill_at(kind)
            await asyncio.to_thread(self._process.restart)
            self.kinds[kind] += 1
            self.progress.kills += 1
            self._look_at(number + 1)
        await self._flowing()
        self._over = True

    # --- load -----------------------------------------------------------------------------------

    async def _writing(self, participant: Participant, chance: Random) -> None:
        others = [person for person in range(self.plan.people) if person != self.plan.owner(participant.number)]
        while not self._over:
            to = chance.choice(others)
            await participant.write(self.handles[to], to, chance.choice((Lane.NORMAL, Lane.NORMAL, Lane.HIGH)), 200)
            await asyncio.sleep(chance.expovariate(20))

    async def _flowing(self) -> None:
        """Until messages are acknowledged again, as many as it takes to be sure."""
        wanted = len(self.ledger.acked) + FLOWING
        while len(self.ledger.acked) < wanted:
            self.ledger.changed.clear()
            async with asyncio.timeout(STUCK_S):
                await self.ledger.changed.wait()

    # --- instants -------------------------------------------------------------------------------

    async def _kill_at(self, kind: str) -> None:
        chance = self._chance
        if kind == "random":
            await asyncio.sleep(chance.uniform(0, 0.6))
            self._kill()
        elif kind == "after an ack":
            self._killed.clear()
            self._acks_until = chance.randint(1, 20)
            async with asyncio.timeout(STUCK_S):
                await self._killed.wait()
        else:
            folder, skip = self._process.folder, chance.choice((0, 0, 1, 2, 4, 8, 16))
            with Watch(folder / "rows.db-wal") as watch:
                await asyncio.to_thread(watch.wait, skip, self._kill)
            await asyncio.to_thread(self._process.kill)
            self.inside += ends_inside(folder / "rows.db-wal")

    def on_ack(self) -> None:
        if self._acks_until is not None:
            self._acks_until -= 1
            if not self._acks_until:
                self._acks_until = None
                self.delays_us.append((time.perf_counter_ns() - self.came_ns) // 1_000)
                self._kill()
                self._killed.set()

    def _kill(self) -> None:
        """At once: nothing may come between the instant and the signal."""
        if (pid := self._process.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Watch:
    """Writes to one file, as the kernel tells of them."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.inotify_init1(os.O_CLOEXEC)
        if self._fd < 0 or libc.inotify_add_watch(self._fd, os.fsencode(path), IN_MODIFY) < 0:
            raise OSError(ctypes.get_errno(), f"{path} cannot be watched")

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def wait(self, skip: int, then: Callable[[], None]) -> None:
        """Until the first write, and `skip` further looks; then act, on this very thread."""
        overdue = threading.Timer(STUCK_S, then)
        overdue.start()
        try:
            for _ in range(skip + 1):
                os.read(self._fd, 4_096)
            then()
        finally:
            overdue.cancel()


def ends_inside(wal: Path) -> bool:
    """Whether the last valid frame of a WAL leaves a transaction open (SQLite's file format, section 4)."""
    data = wal.read_bytes() if wal.exists() else b""
    if len(data) < WAL_HEADER:
        return False
    frame = FRAME_HEADER + int.from_bytes(data[8:12])
    salts = data[16:24]
    is_open = False
    for at in range(WAL_HEADER, len(data) - frame + 1, frame):
        _, committed_pages = struct.unpack_from(">II", data, at)
        if data[at + 8 : at + 16] != salts:
            break  # left over from before the WAL started over
        is_open = not committed_pages
    return is_open


# --- the command ------------------------------------------------------------------------------


async def campaign(kills: int, seed: int, look: Callable[[int], None]) -> tuple[Kills, Result]:
    async with running_server(SETTINGS) as server:
        run = Kills(kills, seed, server, look)
        return run, await run()


def summary(run: Kills, result: Result, seconds: float) -> dict[str, object]:
    verdict = {name: value for name, value in structs.asdict(result.verdict).items() if name != "notes"}
    return {
        "campaign": "kills", "kills": run.progress.kills, "after_ack": run.kinds["after an ack"],
        "within_1_ms": sum(delay < 1_000 for delay in run.delays_us),
        "in_checkpoint": run.kinds["in a checkpoint"], "inside_transaction": run.inside, "seed": run.plan.seed,
        **verdict, "unexplained": result.unexplained, "redelivered": result.redelivered,
        "repeated_sends": result.repeated_sends, "seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill the real server process while people write.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    page = Console(stderr=True, highlight=False)
    began = time.monotonic()
    with Progress(
        TextColumn("killing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=page, transient=True
    ) as bar:
        task = bar.add_task("kills", total=given.kills)
        run, result = asyncio.run(campaign(given.kills, given.seed, lambda done: bar.update(task, completed=done)))
    for note in result.notes:
        page.print(note, style="red", markup=False)
    print(json.dumps(summary(run, result, time.monotonic() - began)))
    sys.exit(1 if result.broken else 0)


if __name__ == "__main__":
    main()
