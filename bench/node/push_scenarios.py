"""Scenario `push`: what waking devices costs. To a provider over HTTP/2, sealed for browsers, and in the fold."""

from __future__ import annotations

import asyncio
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRegistry, MemoryRows
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.forms import Form
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import AnyBody, Envelope, PushOutcome, PushSet, Record, Registered, Sent
from nightmail.model.words import Kind, Lane, Platform, PushPlatform
from nightmail.outlets.addresses import Allowed
from nightmail.outlets.caller import CallerLimits, HttpCaller
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.push.apns import Apns
from nightmail.outlets.push.jwt import b64url
from nightmail.outlets.push.payload import Pseudonyms
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.providers import Providers, ProviderSetup
from nightmail.outlets.push.waker import PushWaker, WakerLimits
from nightmail.outlets.push.web_push import WebPush
from nightmail.outlets.thread import ThreadOutlet
from tests.outlets.push.rig import APPLE_KEY, pem, poster, running, seen

from .figures import Figures
from .scenario_setup import TINY, Stage

PUSHES, SEALED, ASLEEP = 20_000, 2_000, 10_000
"""The last: one percent of a million devices, which get mail in one minute."""
TAKEN = PushResult(PushOutcome.DELIVERED)


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


def _pace() -> int:
    return 1_000_000


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


class _Taking:
    """A `Pusher` that costs nothing."""

    def __init__(self) -> None:
        self.pushes = 0

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        self.pushes += 1
        done(TAKEN)


def _wake(count: int) -> float:
    """Microseconds of CPU for each push in the fold and the waker: the message less what it costs without a token."""
    costs: list[float] = []
    for has_token in (False, True):
        pusher = _Taking()
        desk = LoopDesk(lambda size: b"\1" * size, _pace)
        loop = Loop(MemoryLog(), MemoryRows(), lambda: 1_700_000_000_000, desk.on_effects, pace=_pace)
        registry = MemoryRegistry()
        waker = PushWaker(desk, registry, pusher, _pace, lambda: None, WakerLimits(grace_ms=0))
        gateway = Gateway(
            desk, registry, Form(), GatewayLimits(), lambda: 0, _pace, "bench", lambda: None, lambda: 0.0
        )  # fmt: skip
        desk.attend(loop, gateway, on_wake=waker.wake)
        loop.recover()
        while not loop.adopt(NEWEST_FOLD, FoldLimits()):
            pass
        people = [(account_id(f"p{n}"), f"p{n}") for n in range(count + 1)]
        for account, name in people:
            _fold(loop, SERVER, Registered(account, name, 7, name.encode().rjust(32), "x", Platform.CLI))
            if has_token:
                _fold(loop, device_id(account, 1), PushSet(PushPlatform.UNIFIEDPUSH, f"https://push.example/{name}"))
        by = device_id(people[0][0], 1)
        cpu = _cpu_s()
        for account, _ in people[1:]:
            envelope = Envelope(device_id(account, 1), 7, bytes(200))
            ident = f"{by:x}:1700000000000:00001:x"
            sent = Sent(account, Lane.NORMAL, 1, 1, 0, ident, bytes(16), Kind.TEXT, None, 0, 1, (envelope,), ())
            _fold(loop, by, sent)
        costs.append((_cpu_s() - cpu) / count * 1e6)
        assert pusher.pushes == (count if has_token else 0), pusher.pushes
    return costs[1] - costs[0]


def _fold(loop: Loop, by: int, body: AnyBody) -> None:
    loop.submit(Record(by, 0, body))
    loop.flush()
