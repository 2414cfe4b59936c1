"""Connections that only stay: a heartbeat every half minute, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from nightmail.wire.items import Foreground, FromDevice, Ping, Watch

from . import people
from .load_messages import Order, Seen
from .machine import cpu_ns
from .phone import Hub, Phone
from .pipes import Pipes, connect, until

HEARTBEAT_S = 30.0
ROUNDS = 300
"""A heartbeat of all is spread over so many moments."""
CONNECT_S = 300.0


async def hold(order: Order, pipes: Pipes) -> None:
    """Ready when all are connected and drained; measures the window it is given."""
    hub = Hub()
    phones = [Phone(hub, order.first + n, order.first, 0, writes=False) for n in range(order.count)]
    before = {phone: people.account(order.first + (n or order.count) - 1) for n, phone in enumerate(phones)}

    def connected(phone: Phone) -> None:
        """A client says what it wants to know of others as soon as it is connected."""
        items: list[FromDevice] = [Foreground(True)] if order.present else []
        if order.watching:
            items.append(Watch(0, (before[phone],)))
        if items:
            phone.send(items)

    hub.on_ready = connected
    await connect(phones, order.port, order.at_once)
    if not await until(lambda: bool(hub.why) or hub.ready >= order.count, CONNECT_S):
        hub.why = f"only {hub.ready} of {order.count} could connect"
    beating = asyncio.ensure_future(beat(phones))
    pipes.say(Seen(tally=hub.tally, connected=hub.ready, why=hub.why))
    while window := await pipes.window():
        await asyncio.sleep(max(0.0, window.since - time.monotonic()))
        began, server_ns, load_ns = time.monotonic(), cpu_ns(order.server), time.process_time_ns()
        await asyncio.sleep(max(0.0, window.until - time.monotonic()))
        pipes.say(
            Seen(
                seconds=time.monotonic() - began,
                server_ns=cpu_ns(order.server) - server_ns,
                load_ns=time.process_time_ns() - load_ns,
                tally=hub.tally,
                connected=sum(phone.is_open for phone in phones),
                why=hub.why,
            )
        )
    beating.cancel()


async def beat(phones: Sequence[Phone]) -> None:
    """A heartbeat of each, until this is cancelled."""
    nonce = 0
    while True:
        for moment in range(ROUNDS):
            nonce += 1
            for phone in phones[moment::ROUNDS]:
                phone.send([Ping(nonce)])
            await asyncio.sleep(HEARTBEAT_S / ROUNDS)
