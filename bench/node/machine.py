"""What the kernel knows about a process, and how fast this machine is at the moment.

Knows:   the CPU clock of any process, the memory it has to itself, the limits of this one.
Touches: /proc, read only.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from typing import NamedTuple

from bench.meter import fixed_work
from nightmail.server.spare_descriptors import first_spare

CPU_CLOCK = 2
"""CPUCLOCK_SCHED, in the lowest bits of a clock's id: nanoseconds as the scheduler counts them."""
CALIBRATE_S = 0.25
SERVER_FILES = 80
"""Open files that a server needs for itself below those that it keeps free: its log, its rows, its sockets."""


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, those that have ended included."""
    return time.clock_gettime_ns((~pid << 3) | CPU_CLOCK)


class Usage(NamedTuple):
    """What a process has used so far, in ns."""

    cpu: int
    """All threads, those that have ended included."""
    first: int
    """Its first thread: in a server, the event loop."""
    system: int
    """Spent in the kernel, in steps of 10 ms: sockets, files."""
    waited: int
    """How long its first thread stood ready to run while something else had the core."""

    def since(self, before: Usage) -> Usage:
        return Usage(*(now - then for now, then in zip(self, before, strict=True)))


def usage(pid: int) -> Usage:
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        first, waited, _ = map(int, file.read().split())
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        ticks = int(file.read().rpartition(")")[2].split()[12])
    return Usage(cpu_ns(pid), first, ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK"), waited)


def private_kib(pid: int) -> int:
    """User memory that belongs to this process alone."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def connections_max() -> int:
    """How many connections a server takes here: it turns away what would need one of the descriptors that it keeps."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return first_spare(hard) - SERVER_FILES


def raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Calibration:
    """A fixed piece of work, done at intervals while others are measured: tells a slow machine from slow code."""

    def __init__(self) -> None:
        self._taken: list[int] = []
        self._at = 0.0

    def look(self) -> None:
        now = time.monotonic()
        if now - self._at >= CALIBRATE_S:
            self._at = now
            began = time.thread_time_ns()
            fixed_work()
            self._taken.append(time.thread_time_ns() - began)

    def take(self) -> int:
        """The median since the last time."""
        self._at = 0.0
        self.look()
        taken, self._taken = self._taken, []
        return round(statistics.median(taken))
