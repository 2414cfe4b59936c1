"""Simulated worlds and power cuts until interrupted, on all cores.

    python -m sim.runs.soak                  until Ctrl-C, or until a promise is broken
    python -m sim.runs.soak --minutes 30     for so long

Each seed is lived through by one node and by a cluster; between them, power is cut. The first
failure ends it: it is run again here, shrunk, and told with the command that shows it. The last
line on standard output is JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count, islice

from sim.world.plan import Plan, run
from sim.world.world import Broken

from . import powercuts
from .campaign import MUST_HAPPEN, is_sealed, must_happen, tell_failure

FIRST_SEED = 10_001
"""Behind those that campaigns begin with."""
CUTS = 200
"""Power cuts in one job."""
CUTS_EVERY = 5
"""Seeds between two jobs of power cuts."""
JOBS_PER_PROCESS = 25
"""A worker is replaced after so many: whatever it may have gathered, memory stays bounded."""
CRASH = "nothing crashes"
"""The promise that any other exception breaks."""


@dataclass(frozen=True)
class Job:
    kind: str
    """node, cluster or powercuts."""
    seed: int
    seconds: float = Plan.seconds

    @property
    def plan(self) -> Plan:
        return Plan(self.kind, self.seed, seconds=self.seconds, sealed=is_sealed(self.seed))


@dataclass
class Done:
    """What one job came to: small, and fit to be sent from one process to another."""

    job: Job
    events: int = 0
    cuts: int = 0
    sometimes: Counter[str] = field(default_factory=Counter[str])
    broken: str = ""
    promise: str = ""
    story: list[str] = field(default_factory=list[str])


@dataclass
class Tally:
    began: float = field(default_factory=time.monotonic)
    seeds: Counter[str] = field(default_factory=Counter[str])
    events: int = 0
    cuts: int = 0
    sometimes: dict[str, Counter[str]] = field(default_factory=lambda: {mode: Counter[str]() for mode in MUST_HAPPEN})
    failed: Done | None = None

    def add(self, done: Done) -> None:
        self.events += done.events
        self.cuts += done.cuts
        self.seeds[done.job.kind] += 1
        if done.job.kind in self.sometimes:
            self.sometimes[done.job.kind] += done.sometimes
        if done.broken and self.failed is None:
            self.failed = done

    @property
    def events_per_minute(self) -> int:
        return round(self.events / max(time.monotonic() - self.began, 0.001) * 60)

    def progress(self) -> str:
        minutes, seconds = divmod(round(time.monotonic() - self.began), 60)
        return (
            f"{minutes}:{seconds:02}  {self.seeds['node']:,} node seeds, {self.seeds['cluster']:,} cluster seeds, "
            f"{self.events:,} events ({self.events_per_minute:,} per minute), {self.cuts:,} power cuts"
        )

    def outcome(self) -> dict[str, object]:
        promise = self.failed.promise if self.failed else ""
        kinds = {"lost": "nothing lost", "doubled": "nothing twice", "reordered": "sender's order"}
        never = {
            mode: [what for what in must_happen(mode, self.seeds[mode]) if not self.sometimes[mode][what]]
            for mode in MUST_HAPPEN
        }
        return {
            "campaign": "soak",
            "seeds": self.seeds["node"] + self.seeds["cluster"],
            "events": self.events,
            "events_per_minute": self.events_per_minute,
            "cuts": self.cuts,
            **{key: int(promise == kept) for key, kept in kinds.items()},
            "broken": promise or None,
            **({"failed_mode": self.failed.job.kind, "failed_seed": self.failed.job.seed} if self.failed else {}),
            "never": never,
            "seconds": round(time.monotonic() - self.began, 1),
        }


# --- work -------------------------------------------------------------------------------------


def jobs(seed: int, seconds: float) -> Iterator[Job]:
    for one in count(seed):
        yield Job("node", one, seconds)
        yield Job("cluster", one, seconds)
        if (one - seed) % CUTS_EVERY == 0:
            yield Job("powercuts", one * CUTS, seconds)


def work(job: Job) -> Done:
    """In a process of its own."""
    if job.kind == "powercuts":
        said: list[str] = []
        outcome = powercuts.run_campaign(CUTS, job.seed, said.append)
        done = Done(job, cuts=int(str(outcome["cuts"])))
        if outcome["lost"] or outcome["torn"]:
            done.broken, done.promise = said[-1], "nothing lost" if outcome["lost"] else "nothing torn"
        return done
    try:
        world = run(job.plan)
    except Broken as broken:
        return Done(job, broken=str(broken), promise=broken.promise, story=broken.story)
    return Done(job, events=world.events, sometimes=world.sometimes)


def soak(pool: Executor, workers: int, todo: Iterator[Job], tally: Tally, minutes: float = 0) -> None:
    """Keep every worker busy until something breaks, the time is over, nothing is left, or Ctrl-C."""
    running: dict[Future[Done], Job] = {}
    said, often_s, end = time.monotonic(), *((1, "\r") if sys.stderr.isatty() else (30, "\n"))
    while tally.failed is None and not (minutes and time.monotonic() - tally.began > minutes * 60):
        running |= {pool.submit(work, job): job for job in islice(todo, workers - len(running))}
        if not running:
            return
        for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            crash = future.exception()
            tally.add(Done(job, broken=f"{CRASH}: {crash!r}", promise=CRASH) if crash else future.result())
        if time.monotonic() - said > often_s:
            said = time.monotonic()
            print(tally.progress(), end=end, file=sys.stderr, flush=True)


def tell(failed: Done) -> None:
    """Show the failure again, here, and everything needed to see it once more."""
    if failed.job.kind == "powercuts":
        print(f"\nBROKEN {failed.broken}", file=sys.stderr)
        return
    plan = failed.job.plan
    print(f"\nBROKEN {failed.broken}\nagain:  {plan.command()}", file=sys.stderr)
    try:
        run(plan)
    except Broken as broken:
        tell_failure(plan, broken, may_shrink=True)
        return
    print("It did not break again: something else than the seed decides. Its story:", file=sys.stderr)
    print(*failed.story, sep="\n", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=0, help="default: until Ctrl-C")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first one")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="of simulated time before healing")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: one for each core")
    asked = parser.parse_args(arguments)

    tally = Tally()
    print(f"simulated worlds from seed {asked.seed} on, {asked.workers} at a time; Ctrl-C ends it", file=sys.stderr)
    pool = ProcessPoolExecutor(
        asked.workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts_to_the_parent,
        max_tasks_per_child=JOBS_PER_PROCESS,
    )
    try:
        soak(pool, asked.workers, jobs(asked.seed, asked.seconds), tally, asked.minutes)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in multiprocessing.active_children():
            worker.terminate()
    print(tally.progress(), file=sys.stderr)
    try:
        if tally.failed:
            tell(tally.failed)
    finally:
        print(json.dumps(tally.outcome()))
    return 1 if tally.failed else 0


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
