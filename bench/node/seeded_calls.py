"""Calls to webhooks in the data folder, scheduled by the engine before the server starts.

Over HTTP a call takes a hundred times as long to schedule as to make: the server that is measured would be busy with
requests for minutes before the first call is due.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bench.measured_node import Broken, Rig
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import ScheduleTaken
from nightmail.model.effects import Answer
from nightmail.model.forms import TAG_BYTES
from nightmail.model.ids import SERVER
from nightmail.model.limits import FoldLimits
from nightmail.model.records import CallScheduled, Record

from . import people

AT_ONCE = 256
UNBOUNDED = 10**9
DAY_MS = 86_400_000
TRIED = 500
"""Calls for another day, to see how long it takes to schedule one."""


class Calls(Struct, frozen=True):
    """So many calls to one receiver, evenly due within a time."""

    url: str
    count: int
    seconds: float


def seed_calls(folder: Path, accounts: int, wanted: Sequence[Calls], start_s: float) -> int:
    """Into a folder that no server has open. Returns when the first is due, in ms since 1970.

    That is `start_s` after the last was scheduled, at least.
    """
    rig = Rig(folder)
    try:
        rig.loop.recover()
        while not rig.loop.adopt(NEWEST_FOLD, FoldLimits(schedules=UNBOUNDED, schedule_calls=UNBOUNDED)):
            rig.turn(())
        people.register(rig, accounts)
        began = time.time()
        _schedule(rig, accounts, [Calls("http://127.0.0.1:1/", TRIED, 0.0)], int(began * 1_000) + DAY_MS, 0)
        each_s = (time.time() - began) / TRIED
        start = int((time.time() + start_s + 2 * each_s * sum(calls.count for calls in wanted)) * 1_000)
        _schedule(rig, accounts, wanted, start, TRIED)
        rig.settle()
    finally:
        rig.close()
    return start


def _schedule(rig: Rig, accounts: int, wanted: Iterable[Calls], start: int, first: int) -> None:
    bodies = enumerate(_bodies(wanted, start, accounts, first), 1)
    waiting = taken = 0
    while True:
        batch = [Record(SERVER, via, body) for via, body in islice(bodies, AT_ONCE - waiting)]
        waiting += len(batch)
        if not waiting:
            return
        for effect in rig.turn(batch):
            if isinstance(effect, Answer):
                if not isinstance(effect.said, ScheduleTaken):
                    raise Broken(f"a call was told {effect.said}")
                waiting, taken = waiting - 1, taken + 1


def _bodies(wanted: Iterable[Calls], start: int, accounts: int, number: int) -> Iterable[CallScheduled]:
    for calls in wanted:
        for n in range(calls.count):
            number += 1
            person = number % accounts
            due = start + int(n * calls.seconds * 1_000 / calls.count)
            content = json.dumps({"due": due, "n": n}).encode()
            ident = f"{people.device(person):x}:{start}:{number:05d}:x9k2"
            tag = sha256(ident.encode()).digest()[:TAG_BYTES]
            yield CallScheduled(
                people.account(person), ident, "", tag, due, calls.url, "application/json", content
            )  # fmt: skip
