"""Load of pairs: one device writes, the other acknowledges, the first gets a receipt. Closed loop or fixed rate.

At a fixed rate a message's clock starts when it is due, whether or not anybody could send it then: a
server that stalls is charged for everybody who had to wait (no coordinated omission).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from .checks import histogram
from .load_messages import Order, Seen, Window
from .machine import usage
from .mqtt import MqttPhone
from .phone import Hub, Phone
from .pipes import CONNECT_S, Pipes, connect, until

SETTLE_S = 30.0
"""How long the last messages may take after nothing more is sent."""
SWEEP_S = 0.05


class Talker(Protocol):
    """Nightmail's or MQTT's."""

    going: bool

    def go(self) -> None: ...

    @property
    def settled(self) -> bool: ...

    def finish(self) -> None: ...


class OpenLoop:
    """Messages fall due at random moments (Poisson), `rate` per second, each at the next writer's."""

    def __init__(self, writers: Sequence[Phone], rate: float, seed: int) -> None:
        self._writers, self._rate, self._chance = writers, rate, Random(seed)
        self._loop = asyncio.get_running_loop()
        self._turn = 0
        self._due = 0.0
        self._running = False

    def go(self) -> None:
        self._running = True
        self._due = time.monotonic()
        self._fire()

    def stop(self) -> None:
        self._running = False

    def _fire(self) -> None:
        if not self._running:
            return
        now = time.monotonic()
        while self._due <= now:
            self._writers[self._turn].write_one(self._due)
            self._turn = (self._turn + 1) % len(self._writers)
            self._due += self._chance.expovariate(self._rate)
        self._loop.call_later(self._due - now, self._fire)


async def talk(order: Order, pipes: Pipes) -> None:
    """Connect everybody, say so, then work in every window that is named."""
    hub = Hub()
    numbers = order.people or list(range(order.first, order.first + order.count))
    talkers, phones = _make(order, hub, numbers)
    await connect([*phones], order.port, order.at_once)
    if not await until(lambda: hub.ready >= len(numbers), CONNECT_S):
        hub.why = hub.why or f"only {hub.ready} of {len(numbers)} could connect"
    Random(order.first).shuffle(phones)
    writers = [phone for phone in phones if isinstance(phone, Phone) and phone.window]
    open_loop = OpenLoop(writers, order.rate, order.first) if order.rate else None
    sweeping = asyncio.ensure_future(sweep(hub))
    pipes.say(Seen(tally=hub.tally, connected=hub.ready, why=hub.why))
    while window := await pipes.window():
        pipes.say(await measure(window, hub, talkers, order.server, pipes, lambda: _compare(talkers), open_loop))
    sweeping.cancel()


def _make(order: Order, hub: Hub, numbers: list[int]) -> tuple[list[Talker], list[Phone | MqttPhone]]:
    phones: list[Phone | MqttPhone] = []
    for a, b in zip(numbers[::2], numbers[1::2], strict=True):
        if order.job == "talk_mqtt":
            phones.append(MqttPhone(hub, a, b, order.window, writes=True, grouped=order.grouped))
            phones.append(MqttPhone(hub, b, a, order.window, writes=False, grouped=order.grouped))
        else:
            phones.append(Phone(hub, a, b, order.window, writes=True))
            phones.append(
                Phone(hub, b, a, order.window, writes=order.both_ways, plant=order.plant and len(phones) == 1)
            )
    return [*phones], phones


async def measure(
    window: Window, hub: Hub, talkers: Sequence[Talker], server: int, pipes: Pipes, compare: Callable[[], None],
    open_loop: OpenLoop | None = None,
) -> Seen:  # fmt: skip
    """Let everybody talk for a window, wait until all is settled, and compare what was written with what came."""
    if open_loop:
        open_loop.go()
    else:
        for talker in talkers:
            talker.go()
    await asyncio.sleep(max(0.0, window.since - time.monotonic()))
    hub.latencies.clear()
    hub.answers.clear()
    done, shown, began = hub.tally.delivered, hub.tally.shown, time.monotonic()
    before, load_ns = usage(server), time.process_time_ns()
    if window.until:
        await asyncio.sleep(max(0.0, window.until - time.monotonic()))
    else:
        await pipes.line()
    used, load_ns = usage(server).since(before), time.process_time_ns() - load_ns
    messages, seconds = hub.tally.delivered - done, time.monotonic() - began
    shown = hub.tally.shown - shown
    latencies, answers = hub.latencies.copy(), hub.answers.copy()
    if open_loop:
        open_loop.stop()
    for talker in talkers:
        talker.going = False
    await until(lambda: bool(hub.why) or all(talker.settled for talker in talkers), SETTLE_S)
    for talker in talkers:
        talker.finish()
    compare()
    return Seen(
        messages=messages, shown=shown, seconds=seconds, load_ns=load_ns,
        server_ns=used.cpu, loop_ns=used.first, system_ns=used.system, waited_ns=used.waited,
        latency=histogram(latencies), answer=histogram(answers), tally=hub.tally, connected=hub.ready, why=hub.why,
    )  # fmt: skip


def _compare(talkers: Sequence[Talker]) -> None:
    """What the one wrote, the other must have been shown; a receipt alone is no proof."""
    for a, b in zip(talkers[::2], talkers[1::2], strict=True):
        if isinstance(a, Phone) and isinstance(b, Phone):
            a.inbox.finish(b.written)
            b.inbox.finish(a.written)


async def sweep(hub: Hub) -> None:
    """Now and then, have acknowledgements said that nothing else was said with."""
    while True:
        await asyncio.sleep(SWEEP_S)
        hub.sweep(time.monotonic())
