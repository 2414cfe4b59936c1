"""Scenarios of messages for later: `schedule`, into conversations, and `webhooks`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Literal

import msgspec

from bench.figures import say
from bench.measured_node import Broken

from .checks import quantile_ms
from .figures import Figures
from .machine import usage
from .scenario_setup import Settings, Stage
from .schedule_load import ScheduleOrder, ScheduleSeen
from .seeded_calls import Calls, seed_calls
from .server import ADMIT_ALL, MANY, Server
from .webhook_load import CallsSeen

LIFTED: Mapping[str, str] = {
    **ADMIT_ALL,
    "NIGHTMAIL_LIMITS__SCHEDULES": MANY,
    "NIGHTMAIL_LIMITS__SCHEDULE_BYTES": str(10**12),
}
CALLING: Mapping[str, str] = {
    **LIFTED,
    "NIGHTMAIL_LIMITS__SCHEDULE_CALLS": MANY,
    "NIGHTMAIL_SCHEDULE__WEBHOOKS": "accounts",
    "NIGHTMAIL_SCHEDULE__PRIVATE_NETWORKS": "127.0.0.1",
}
PUNCTUAL_MS = 100.0
COSTED = 30_000
"""Messages of which the cost is measured."""
ACCOUNTS = 50
START_S = 8.0
"""A server that starts is ready within this time."""
HUNG = 200
"""Calls to a receiver that never answers, beside the others."""


def schedule(at: Stage) -> Iterator[Figures]:
    """Many wait for another day; meanwhile others come due, so many in a second."""
    settings = at.settings
    authors, pending = settings.schedule_authors, settings.schedule_pending
    with at.server(2 * authors, LIFTED) as server:
        waiting = _load(server, authors, "pending", pending)
        each_s = waiting.request_s / pending
        memory = server.private_kib()
        rate, punctual = _most_punctual(server, settings, each_s)
        late_p99_ms = quantile_ms(punctual.late, 0.99)
        grown = server.private_kib() - memory
        costed = min(COSTED, int(settings.schedule_rates[0] * settings.schedule_s))
        span = costed / settings.schedule_rates[0]
        cost = _load(server, authors, "cost", costed, span, each_s)
        server.kill()
        recovery_s = server.start()
        server.check()
    yield Figures(
        scenario="schedule",
        rate=round(punctual.came / max(punctual.seconds, 1e-9)),
        server_us=round(punctual.server_ns / 1_000 / punctual.messages, 2),
        p50_ms=quantile_ms(punctual.late, 0.5),
        p99_ms=late_p99_ms,
        p999_ms=quantile_ms(punctual.late, 0.999),
        calibration_ns=at.calibration.take(),
        lost=punctual.messages - punctual.came + cost.messages - cost.came,
        doubled=punctual.doubled + cost.doubled,
        more={
            "fired_per_s": round(punctual.came / max(punctual.seconds, 1e-9)),
            "due_per_s": rate,
            "early": punctual.early + cost.early,
            "late_p99_ms": late_p99_ms,
            "fired_us": round(cost.server_ns / 1_000 / cost.messages, 2),
            "pending": pending,
            "pending_us": round(waiting.server_ns / 1_000 / pending, 2),
            "recovery_s": round(recovery_s, 2),
            "memory_grown_mib": round(grown / 1_024, 1),
            "authors": authors,
        },
    )


def _most_punctual(server: Server, settings: Settings, each_s: float) -> tuple[int, ScheduleSeen]:
    """The first rate at which messages are punctual, or the last; and what was seen at it.

    `each_s`: how long it takes to schedule one.
    """
    *higher, lowest = settings.schedule_rates
    for rate in higher:
        seen = _due_at(server, settings, rate, each_s)
        late_p99_ms = quantile_ms(seen.late, 0.99) or 0.0
        if late_p99_ms < PUNCTUAL_MS:
            return rate, seen
        say(f"    at {rate:,} a second: late by {late_p99_ms:,.0f} ms (p99)")
    return lowest, _due_at(server, settings, lowest, each_s)


def _due_at(server: Server, settings: Settings, rate: int, each_s: float) -> ScheduleSeen:
    messages = int(rate * settings.schedule_s)
    return _load(server, settings.schedule_authors, "punctual", messages, settings.schedule_s, each_s)


def _load(
    server: Server, authors: int, job: Literal["pending", "punctual", "cost"], messages: int, seconds: float = 0.0,
    each_s: float = 0.0,
) -> ScheduleSeen:  # fmt: skip
    order = ScheduleOrder(
        job=job, port=server.port, server=server.pid, authors=authors, messages=messages, seconds=seconds,
        lead_s=2 + 2 * messages * each_s,
    )  # fmt: skip
    command = (sys.executable, "-m", "bench.node.schedule_load")
    said = subprocess.run(command, input=msgspec.json.encode(order), capture_output=True, check=False)
    server.check()
    if said.returncode:
        raise Broken(f"the load for {job} failed: {said.stderr.decode()[-500:]}")
    seen = msgspec.json.decode(said.stdout, type=ScheduleSeen)
    if seen.why:
        raise Broken(f"{job}: {seen.why}")
    return seen


# --- webhooks ---------------------------------------------------------------------------------


def webhooks(at: Stage) -> Iterator[Figures]:
    """As many as can be called, all due at once; then at a fixed rate, by turns alone and beside a receiver that never
    answers. Each time with a server and a folder of its own."""
    settings = at.settings
    calls, span = int(settings.webhook_rate * settings.webhook_s), settings.webhook_s
    alone, beside = Counter[int](), Counter[int]()
    seen: list[CallsSeen] = []
    paced_us: list[float] = []
    burst, burst_us = _called(at, calls, 0.0)
    for _ in range(settings.turns):
        found, used_us = _called(at, calls, span)
        seen.append(found)
        paced_us.append(used_us)
        alone.update(found.late)
        with _receiver("hang") as hung:
            found, _ = _called(at, calls, span, hung)
        seen.append(found)
        beside.update(found.late)
    late_p99_ms, hanging_p99_ms = quantile_ms(alone, 0.99) or 0.0, quantile_ms(beside, 0.99) or 0.0
    yield Figures(
        scenario="webhooks",
        rate=round(burst.calls / max(burst.seconds, 1e-9)),
        server_us=round(burst_us, 2),
        p50_ms=quantile_ms(alone, 0.5),
        p99_ms=late_p99_ms,
        p999_ms=quantile_ms(alone, 0.999),
        calibration_ns=at.calibration.take(),
        lost=(1 + len(seen)) * calls - burst.calls - sum(each.calls for each in seen),
        more={
            "calls_per_s": round(burst.calls / max(burst.seconds, 1e-9)),
            "late_p99_ms": late_p99_ms,
            "late_p99_ms_by_turn": [quantile_ms(each.late, 0.99) for each in seen],
            "paced_per_s": settings.webhook_rate,
            "paced_us": round(median(paced_us), 2),
            "hanging_late_p99_ms": hanging_p99_ms,
            "hanging_ratio": round(hanging_p99_ms / max(late_p99_ms, 1e-9), 2),
            "early": burst.early + sum(each.early for each in seen),
            "repeated_calls": burst.doubled + sum(each.doubled for each in seen),
        },
    )


class _Receiving:
    """A receiver's process: where it listens, and what it has seen."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout
        self.url = f"http://127.0.0.1:{int(process.stdout.readline())}/calls"

    def finish(self) -> CallsSeen:
        said, _ = self._process.communicate("", timeout=60)
        return msgspec.json.decode(said, type=CallsSeen)


@contextmanager
def _receiver(job: Literal["receive", "hang"]) -> Generator[_Receiving]:
    command = (sys.executable, "-m", "bench.node.webhook_load", job)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _Receiving(process)
        finally:
            process.kill()


def _called(at: Stage, calls: int, span: float, hung: _Receiving | None = None) -> tuple[CallsSeen, float]:
    """Have so many calls due within this time. What the receiver saw, and the server's CPU time for each, in µs."""
    with _receiver("receive") as receiver:
        wanted = [Calls(receiver.url, calls, span)]
        if hung:
            wanted.append(Calls(hung.url, HUNG, 0.0))
        folder = at.new_folder()
        start = seed_calls(folder, ACCOUNTS, wanted, START_S)
        with Server(folder, CALLING, at.settings.profile) as server:
            if time.time() * 1_000 > start:
                raise Broken("the first call was due before the server was ready")
            time.sleep(start / 1_000 - time.time())
            before = usage(server.pid)
            time.sleep(span + 1 + calls / 1_000)
            used = usage(server.pid).since(before)
            server.check()
        return receiver.finish(), used.cpu / 1_000 / calls
