"""A chaos run: register accounts, write messages under faults, end the faults, judge.

Knows:   the plan, and how far the run has come.
Touches: a server, or the nodes of a cluster, by address; its process only if the run started it.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from nightmail.client import Client
from nightmail.client.group_errors import NoGroups
from nightmail.client.limits import ClientLimits
from nightmail.testing import RegisteredDevice, RunningServer

from .ledger import Ledger, Verdict
from .participants import IMPATIENT, Participant
from .plan import Break, Fault, Kill, Plan, Write
from .proxy import Proxy, Upstream
from .redelivery import RedeliveryCheck

PATIENCE_S = 60.0
"""If there is no event for this long after all faults ended, missing messages are lost."""
PROFILE_CHECK_S = 2.0
"""Without events for this long, profiles are read: a closing client may not have reported its last event."""


class Progress(Struct):
    """How far a run is, for a progress bar."""

    stage: str = "setting up"
    done_s: float = 0.0
    written: int = 0
    sent: int = 0
    missing: int = 0
    faults: int = 0
    kills: int = 0


class Result(Struct, frozen=True):
    verdict: Verdict
    redelivered: int
    """Entries that were handed out again, for whatever reason."""
    unexplained: int
    """Of these, without one."""
    repeated_sends: int
    """Messages that reached the server more than once."""
    faults: dict[str, int]
    kills: int
    notes: list[str]

    @property
    def broken(self) -> int:
        return self.verdict.broken + self.unexplained


class Run:
    """One run. `look` is called now and then with how far it is."""

    def __init__(
        self, plan: Plan, urls: Sequence[str], server: RunningServer | None = None, tls: ssl.SSLContext | None = None,
        ca_file: str | None = None, look: Callable[[Progress], None] = lambda _: None,
        limits: ClientLimits = IMPATIENT,
    ) -> None:  # fmt: skip
        """`urls`: where it serves; every node of a cluster. `server`: the process behind it, if it may be killed."""
        self.limits, self.patience_s = limits, PATIENCE_S
        self.plan, self._urls, self.server, self._tls, self._ca_file = plan, urls, server, tls, ca_file
        self._look = look
        self.progress = Progress()
        self._faults: Counter[str] = Counter()
        self._working: set[asyncio.Task[None]] = set()
        self._name = secrets.token_hex(4)
        persons = range(plan.people)
        self.handles = [f"verify.{self._name}.{person}" for person in persons]
        addressed = {person: plan.devices_of(person) for person in persons}
        members = [device for person in plan.members for device in plan.devices_of(person)]
        self.ledger = Ledger(self._name, addressed, {plan.group: members})
        self._group: int | None = None
        """None: the server does not know groups."""
        self.checks: list[RedeliveryCheck] = []
        self._proxies: list[list[Proxy]] = []
        """Of each device: one before each address."""
        self.participants: list[Participant] = []

    async def __call__(self) -> Result:
        with tempfile.TemporaryDirectory(prefix="nightmail-verify-", ignore_cleanup_errors=True) as folder:
            async with AsyncExitStack() as stack:
                devices = await self._join(Path(folder))
                for number, device in enumerate(devices):
                    check = self.redelivery_check(f"{device.handle} {number}")
                    proxies = [
                        await stack.enter_async_context(Proxy(Upstream(url, self._tls), check)) for url in self._urls
                    ]
                    first = number % len(proxies)
                    urls = [proxy.url for proxy in (*proxies[first:], *proxies[:first])]
                    participant = Participant(number, device, urls, self.ledger, self.limits)
                    await stack.enter_async_context(_opened(participant))
                    self.checks.append(check)
                    self._proxies.append(proxies)
                    self.participants.append(participant)
                async with _ticking(self._show):
                    await self.execute()
                    await self._heal()
                histories = {participant.number: participant.history() for participant in self.participants}
            await self._close_accounts(devices)
        return self._result(self.ledger.judge(histories))

    def redelivery_check(self, name: str) -> RedeliveryCheck:
        """The check for one device. Subclasses may return their own."""
        return RedeliveryCheck(name)

    # --- setting up -----------------------------------------------------------------------------

    async def _join(self, folder: Path) -> list[RegisteredDevice]:
        """Register all accounts and devices without faults: the set of addressed devices must not change later."""
        devices: list[RegisteredDevice] = []
        for handle in self.handles:
            first = RegisteredDevice(handle, folder / f"{len(devices)}", self._urls[0])
            devices.append(first)
            async with self._client(first, handle=handle) as client:
                await client.ready()
                for _ in range(self.plan.devices - 1):
                    other = RegisteredDevice(handle, folder / f"{len(devices)}", self._urls[0])
                    devices.append(other)
                    await client.link_here(other.profile, "second device")
        await self._share_group(devices)
        return devices

    async def _share_group(self, devices: Sequence[RegisteredDevice]) -> None:
        """Make the group, and let every device of its members know it: from then on all of them are addressed."""
        members = [devices[number] for person in self.plan.members for number in self.plan.devices_of(person)]
        handles = [self.handles[person] for person in self.plan.members]
        async with self._client(members[0]) as maker:
            try:
                self._group = (await maker.create_group("verify", handles[1:])).id
            except NoGroups:
                return
            for member in members[1:]:
                async with self._client(member) as client:
                    events = client.events()
                    while self._group not in client.group_names() or not client.group(self._group).is_joined:
                        await anext(events)

    def _client(self, device: RegisteredDevice, handle: str = "") -> Client:
        return device.client(handle=handle, ca_file=self._ca_file)

    async def _close_accounts(self, devices: Sequence[RegisteredDevice]) -> None:
        """Remove the accounts from a server that the run did not start."""
        if self.server is None:
            for first in devices[:: self.plan.devices]:
                async with self._client(first) as client:
                    await client.http.close_account()

    # --- faults ---------------------------------------------------------------------------------

    async def execute(self) -> None:
        """Execute the plan."""
        self.progress.stage = "chaos"
        loop = asyncio.get_running_loop()
        began = loop.time()
        for step in self.plan.steps():
            await asyncio.sleep(max(0.0, began + step.at_ms / 1_000 - loop.time()))
            self.progress.done_s = step.at_ms / 1_000
            match step:
                case Write():
                    self.do(self._write(step))
                case Break():
                    self.do(self._break(step))
                case Kill() if self.server is not None:
                    await self.kill(self.server, step.down_ms / 1_000)
                case _:
                    pass
        self.progress.done_s = self.plan.seconds

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work in the background. `_heal` waits for it."""
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _write(self, step: Write) -> None:
        if (to := self.address_of(step.to)) is not None:
            await self.participants[step.by].write(to, step.to, step.lane, step.size)

    def address_of(self, to: int) -> str | int | None:
        """Of a person, or of the group; None: the server does not know groups."""
        return self._group if to == self.plan.group else self.handles[to]

    async def _break(self, step: Break) -> None:
        if step.fault is Fault.REOPEN:
            await self.participants[step.device].reopen(step.for_ms / 1_000)
        elif not (proxy := self.proxy_in_use(step.device)) or not await proxy.inject(step.fault, step.for_ms / 1_000):
            return
        self._faults[step.fault] += 1

    def proxy_in_use(self, device: int) -> Proxy | None:
        """The one that the device is connected through."""
        return next((proxy for proxy in self._proxies[device] if proxy.connections), None)

    async def kill(self, server: RunningServer, down_s: float) -> None:
        """SIGKILL, then a start on the same folder."""
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(down_s)
        await asyncio.to_thread(server.start)
        self.progress.kills += 1

    # --- after the faults -----------------------------------------------------------------------

    async def _heal(self) -> None:
        """End all faults, open every client once more, and wait until every message has arrived."""
        self.progress.stage = "healing"
        for proxy in chain.from_iterable(self._proxies):
            proxy.heal()
        await asyncio.gather(*self._working)
        for participant in self.participants:
            await participant.reopen()
        loop = asyncio.get_running_loop()
        changed_at = loop.time()
        while not self.ledger.done and loop.time() - changed_at < self.patience_s:
            self.ledger.changed.clear()
            try:
                async with asyncio.timeout(PROFILE_CHECK_S):
                    await self.ledger.changed.wait()
                changed_at = loop.time()
            except TimeoutError:
                if not self.ledger.judge(
                    {participant.number: participant.history() for participant in self.participants}
                ).broken:
                    return

    def _show(self) -> None:
        progress, ledger = self.progress, self.ledger
        progress.written, progress.sent, progress.missing = len(ledger.written), len(ledger.acked), len(ledger.missing)
        progress.faults = sum(self._faults.values())
        self._look(progress)

    def _result(self, verdict: Verdict) -> Result:
        self.progress.stage = "done"
        self._show()
        sends = sum(check.sends for check in self.checks)
        return Result(
            verdict=verdict,
            redelivered=sum(check.redelivered for check in self.checks),
            unexplained=sum(check.unexplained for check in self.checks),
            repeated_sends=max(0, sends - verdict.sent),
            faults=dict(sorted(self._faults.items())),
            kills=self.progress.kills,
            notes=[*verdict.notes, *(note for check in self.checks for note in check.notes)],
        )


@asynccontextmanager
async def _opened(participant: Participant) -> AsyncGenerator[Participant]:
    await participant.open()
    try:
        yield participant
    finally:
        await participant.leave()


@asynccontextmanager
async def _ticking(show: Callable[[], None]) -> AsyncGenerator[None]:
    """Report progress ten times a second."""

    async def tick() -> None:
        while True:
            show()
            await asyncio.sleep(0.1)

    task = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
