"""Scenarios `push` and `sleepers`: what waking devices costs. To a provider over HTTP/2, sealed for browsers, in the
fold alone, and among many that sleep."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from nightmail.model.ids import device_id
from nightmail.model.words import Kind, PushPlatform
from nightmail.outlets.addresses import Allowed
from nightmail.outlets.caller import CallerLimits, HttpCaller
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.push.apns import Apns
from nightmail.outlets.push.jwt import b64url
from nightmail.outlets.push.payload import Pseudonyms
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.providers import Providers, ProviderSetup
from nightmail.outlets.push.web_push import WebPush
from nightmail.outlets.thread import ThreadOutlet
from tests.outlets.push.rig import APPLE_KEY, pem, poster, running, seen

from .figures import Figures
from .machine import private_kib
from .scenario_setup import TINY, Stage
from .sleeping_town import TAKEN, SleepingTown

PUSHES, SEALED, ASLEEP = 20_000, 2_000, 10_000
"""The last: one percent of a million devices, which get mail in one minute."""
SLEEP_MINUTES, MINUTE_MS = 3, 60_000


def push(at: Stage) -> Iterator[Figures]:
    tiny = 20 if at.settings == TINY else 1
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "bench.push_provider:app", "rsgi") as provider:
        apns = Apns(provider.url, pem(APPLE_KEY), "KEY4567890", "TEAM567890", "org.example.chat")
        setup = ProviderSetup(apns=apns, ca_pem=provider.ca_pem)
        rate, cpu_us = asyncio.run(_push(setup, PUSHES // tiny))
    figures = Figures(scenario="push", rate=round(rate))
    figures.more = {
        "pushes_per_s": round(rate), "cpu_us": round(cpu_us, 1), "web_sealed_per_s": round(_seal(SEALED // tiny)),
        "asleep_us": round(_wake(ASLEEP // tiny), 1),
    }  # fmt: skip
    yield figures


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _push(setup: ProviderSetup, count: int) -> tuple[float, float]:
    """Pushes a second, and microseconds of CPU for each, all threads of this process together."""
    loop = asyncio.get_running_loop()
    outlet = ThreadOutlet(lambda: HttpCaller(Allowed(), CallerLimits(), _clock), poster(loop))
    providers = Providers(setup, Dispatch(outlet, PlaceLimits(), lambda: 0), _clock, poster(loop))
    providers.pseudonyms = Pseudonyms(b"secret")
    results: list[PushResult] = []

    async def run(first: int, upto: int) -> None:
        done = loop.create_future()

        def ended(result: PushResult) -> None:
            results.append(result)
            if len(results) == upto:
                done.set_result(None)

        for n in range(first, upto):
            providers.push(seen(PushPlatform.IOS, f"{n:064x}"), ended)
        await done

    try:
        await run(0, 100)  # The connection is made.
        began, cpu = time.perf_counter(), _cpu_s()
        await run(100, 100 + count)
        seconds, used = time.perf_counter() - began, _cpu_s() - cpu
    finally:
        providers.close()
    assert set(results) == {TAKEN}, set(results)
    return count / seconds, used / count * 1e6


def _clock() -> int:
    return int(time.time() * 1_000)


def _seal(count: int) -> float:
    """Pushes for browsers that one core seals in a second."""
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    keys = {
        "p256dh": b64url(point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)),
        "auth": b64url(bytes(16)),
    }
    token = json.dumps({"endpoint": "https://push.example/x", "keys": keys})
    web, one, cpu = WebPush(pem(APPLE_KEY), "mailto:x@example.org"), seen(PushPlatform.WEB, token), _cpu_s()
    for _ in range(count):
        web.request(one, "0" * 32, 1_750_000_000)
    return count / (_cpu_s() - cpu)


def _wake(count: int) -> float:
    """Microseconds of CPU for each push in the fold and the waker: the message less what it costs without a token."""
    costs: list[float] = []
    for has_tokens in (False, True):
        town = SleepingTown(count, has_tokens=has_tokens)
        cpu = _cpu_s()
        for person in range(1, count + 1):
            town.write(person)
        costs.append((_cpu_s() - cpu) / count * 1e6)
        assert len(town.pushed) == (count if has_tokens else 0), len(town.pushed)
    return costs[1] - costs[0]


def sleepers(at: Stage) -> Iterator[Figures]:
    """Devices asleep, one percent of which get mail in each minute; others get what must not wake them.

    Their rows are in memory, and nothing is written: it is the cost of deciding whom to wake, among so many.
    """
    count = at.settings.sleepers
    began, before_kib = time.perf_counter(), private_kib(os.getpid())
    town = SleepingTown(count)
    made_s, people = time.perf_counter() - began, iter(range(1, count + 1))
    taken_kib = private_kib(os.getpid()) - before_kib
    town.go_on(MINUTE_MS)  # What their registration left to be saved is saved.
    idle_s = _timed(lambda: town.go_on(MINUTE_MS))
    mail, quiet = max(1, count // 100), max(1, count // 100)
    wanted: set[int] = set()
    spent_s = 0.0
    for _ in range(SLEEP_MINUTES):
        written = [next(people) for _ in range(mail)]
        silent = [next(people) for _ in range(quiet)]
        wanted |= {device_id(town.accounts[each], 1) for each in written}

        def minute(written: list[int] = written, silent: list[int] = silent) -> None:
            for person in written:
                town.write(person)
            for person in silent:
                town.write(person, Kind.CONTROL)
            town.go_on(MINUTE_MS)

        spent_s += _timed(minute)
    pushed = town.pushed
    figures = Figures(scenario="sleepers", rate=round(len(pushed) / max(spent_s, 1e-9)))
    figures.more = {
        "asleep": count, "minutes": SLEEP_MINUTES, "got_mail": len(wanted), "pushes": len(pushed),
        "needless": sum(device not in wanted for device in pushed) + len(pushed) - len(set(pushed)),
        "missed": len(wanted - set(pushed)),
        "cpu_us_per_push": round((spent_s - SLEEP_MINUTES * idle_s) / max(1, len(pushed)) * 1e6, 1),
        "idle_cpu_share": round(idle_s / 60, 5), "kib_per_sleeper": round(taken_kib / count, 2),
        "made_s": round(made_s, 1),
    }  # fmt: skip
    if figures.more["needless"] or figures.more["missed"]:
        figures.broken = "a device was woken needlessly, or not at all"
    yield figures


def _timed(work: Callable[[], None]) -> float:
    """Seconds of CPU."""
    cpu = _cpu_s()
    work()
    return _cpu_s() - cpu
