"""Many connections that watch one account, which comes and goes while they are measured."""

from __future__ import annotations

import asyncio
import time

from nightmail.model.words import Audience
from nightmail.wire.items import Foreground, FromServer, ShowTo, Watch
from nightmail.wire.items import Seen as SeenItem

from . import people
from .idle_load import beat
from .load_messages import Order, Seen
from .machine import cpu_ns
from .phone import Hub, Phone
from .pipes import CONNECT_S, Pipes, connect, until

CHANGE_S = 0.1
"""The account comes or goes so often; its watchers are told once a second at most."""
SETTLE_S = 2.0
"""After a window, the last change is told within this."""


class Watcher(Phone):
    __slots__ = ("told",)

    def __init__(self, hub: Hub, number: int) -> None:
        super().__init__(hub, number, number, 0, writes=False)
        self.told = 0
        """Items about the watched account, not counting answers."""

    def heard(self, items: list[FromServer]) -> None:
        self.told += sum(isinstance(item, SeenItem) and not item.ref for item in items)
        super().heard(items)


async def watch(order: Order, pipes: Pipes) -> None:
    """Person `first` is watched by the others. Ready when all watch; in each window it comes and goes."""
    hub = Hub()
    busy = Phone(hub, order.first, order.first, 0, writes=False)
    watchers = [Watcher(hub, order.first + n) for n in range(1, order.count)]
    everybody = [busy, *watchers]
    await connect(everybody, order.port, order.at_once)
    if not await until(lambda: bool(hub.why) or hub.ready >= len(everybody), CONNECT_S):
        hub.why = f"only {hub.ready} of {len(everybody)} could connect"
    busy.send([ShowTo(1, Audience.EVERYONE), Foreground(True)])
    for watcher in watchers:
        watcher.send([Watch(1, (people.account(order.first),))])
    beating = asyncio.ensure_future(beat(everybody))
    await asyncio.sleep(SETTLE_S)
    pipes.say(Seen(tally=hub.tally, connected=hub.ready, why=hub.why))
    while window := await pipes.window():
        await asyncio.sleep(max(0.0, window.since - time.monotonic()))
        began, server_ns, load_ns = time.monotonic(), cpu_ns(order.server), time.process_time_ns()
        before = [watcher.told for watcher in watchers]
        on = True
        while time.monotonic() < window.until:
            on = not on
            busy.send([Foreground(on)])
            await asyncio.sleep(CHANGE_S)
        seconds, server_ns = time.monotonic() - began, cpu_ns(order.server) - server_ns
        told = [watcher.told - earlier for watcher, earlier in zip(watchers, before, strict=True)]
        busy.send([Foreground(True)])
        if max(told) > seconds + 1:
            hub.why = hub.why or f"a watcher was told {max(told)} times in {seconds:.1f} s"
        elif not min(told):
            hub.why = hub.why or "a watcher was told nothing"
        await asyncio.sleep(SETTLE_S)
        pipes.say(
            Seen(
                messages=sum(told), seconds=seconds, server_ns=server_ns, load_ns=time.process_time_ns() - load_ns,
                tally=hub.tally, connected=sum(phone.is_open for phone in everybody), why=hub.why,
            )
        )  # fmt: skip
    beating.cancel()
