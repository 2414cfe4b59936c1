"""Where the CPU time goes: one account per purpose, on the loop's thread and on the others.

Knows:   the CPU clocks of this process and of each of its threads; its memory and what it wrote.
Never:   measures single records: reading a thread's clock costs a microsecond or two, so the account is switched
         per batch, and the cost of reading the clock is counted apart (`meter`).
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from cProfile import Profile
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Account: TypeAlias = Literal["bench", "client", "submit", "fold", "log", "checkpoint", "load", "offer", "calibration"]
"""What the loop's thread is doing.

    submit       taking records in: refusals, retries, encoding
    fold         durable records → rows and effects, and handing these out
    log          building a batch, giving it to the writer, hearing that it is durable
    checkpoint   taking and encoding changed rows, and what follows when they are saved
    load         reading rows and entries that are not in memory
    offer        looking up what is to be pushed to a device
    client       the simulated clients: none of it would run in a server
    bench        the rest of the loop: its queue, its turns
"""

ACCOUNTS: tuple[Account, ...] = (
    "bench", "client", "submit", "fold", "log", "checkpoint", "load", "offer", "calibration",
)  # fmt: skip
CALIBRATE_NS = 100_000_000
"""Wall time between two calibrations."""


class Meter:
    """Exclusive accounts for one thread: at any moment exactly one of them is charged."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = dict.fromkeys((*ACCOUNTS, "meter", "gc"), 0)
        self.current: Account = "bench"
        self.calibrations: list[int] = []
        self._calibrated_at = 0
        self.profile: tuple[Account, Profile] | None = None
        """Profile one account. What is measured meanwhile is the profiler."""
        self._gc_since = 0
        self._thread = threading.get_ident()
        self._cost = _cost_of_reading()
        self._since = time.thread_time_ns()

    def switch(self, account: Account) -> Account:
        """Charge what was spent so far, go on under `account`; returns the one before, to switch back."""
        now = time.thread_time_ns()
        before = self.current
        passed = now - self._since
        cost = self._cost if passed > self._cost else passed
        self.spent[before] += passed - cost
        self.spent["meter"] += cost
        self._since = now
        self.current = account
        if self.profile and before != account:
            watched, profiler = self.profile
            if before == watched:
                profiler.disable()
            elif account == watched:
                profiler.enable()
        return before

    def calibrate(self) -> None:
        """Do a fixed piece of work at intervals, to tell a slow machine from slow code."""
        now = time.monotonic_ns()
        if now - self._calibrated_at < CALIBRATE_NS:
            return
        self._calibrated_at = now
        before = self.switch("calibration")
        began = time.thread_time_ns()
        fixed_work()
        self.calibrations.append(time.thread_time_ns() - began)
        self.switch(before)

    def take_calibration(self) -> int:
        """The median since the last time."""
        taken, self.calibrations = self.calibrations, []
        return round(statistics.median(taken)) if taken else 0

    def watch_gc(self, phase: str, _info: dict[str, Any]) -> None:
        """For `gc.callbacks`. Collections of other threads are theirs."""
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._gc_since = time.thread_time_ns()
        elif self._gc_since:
            self.spent["gc"] += time.thread_time_ns() - self._gc_since
            self._gc_since = 0


def _cost_of_reading() -> int:
    costs: list[int] = []
    for _ in range(5):
        began = time.thread_time_ns()
        for _ in range(200):
            time.thread_time_ns()
        costs.append((time.thread_time_ns() - began) // 200)
    return min(costs)


def fixed_work() -> int:
    """About a millisecond of what the engine does most: calls, attributes, dicts and small objects."""
    rows: dict[tuple[int, int], list[int]] = {}
    total = 0
    for number in range(3_000):
        key = (number & 63, number & 7)
        row = rows.get(key)
        if row is None:
            row = rows[key] = [0, 0]
        row[0] = number
        row[1] += 1
        total += len(row)
    return total


class Sample(Struct, frozen=True):
    """Everything that is counted, at one moment."""

    wall: int
    process: int
    spent: dict[str, int]
    threads: dict[str, int]
    written: int
    """Bytes handed to the kernel."""
    to_disk: int
    """Bytes that the kernel sends to the disk: whole pages."""
    records: int
    batches: int
    checkpoints: int
    rows_saved: int
    entries_saved: int


def read_threads(threads: dict[str, int]) -> dict[str, int]:
    """CPU time of other threads, by their idents."""
    return {name: time.clock_gettime_ns(time.pthread_getcpuclockid(ident)) for name, ident in threads.items()}


def read_written() -> tuple[int, int]:
    """What this process has written so far, for the kernel and for the disk."""
    with open("/proc/self/io", encoding="ascii") as file:
        fields = dict(line.split(": ") for line in file.read().splitlines())
    return int(fields["wchar"]), int(fields["write_bytes"])


def rss_mib() -> float:
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) / 1024, 1)
    return 0.0


GcPolicy: TypeAlias = Literal["server", "default", "off"]


def set_gc(policy: GcPolicy) -> None:
    """As the server does it after its start, as Python does it, or not at all."""
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    if policy == "default":
        return
    gc.collect()
    gc.freeze()
    if policy == "server":
        gc.set_threshold(50_000, 20, 50)
    else:
        gc.disable()
