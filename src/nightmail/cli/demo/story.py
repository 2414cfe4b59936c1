"""The story of the demo: one device goes offline, the server is killed, and every message still arrives once. Then
three people write in a group.

Knows:   the steps, and how to check at the end that the promise was kept.
Touches: a real server process and real clients, in a temporary folder.
Never:   sets a tick: the screen shows what the clients hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from rich.text import Text

from nightmail.client import Receipt
from nightmail.client.addressees import GROUP
from nightmail.client.group_events import GroupReceipt
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Tick
from nightmail.testing import RunningServer, running_server

from .screen import DemoDevice, DemoScreen
from .view import FRAME_S, View

LONGEST_S = 60.0
"""A step that takes longer than this has failed."""
EAGER = ClientLimits(backoff_ms_min=100, backoff_ms_max=300)


class DemoOutcome(NamedTuple):
    messages: int
    kills: int
    kept: bool
    """True if all devices of a conversation have the same messages in the same order, each once."""


async def play(make_view: Callable[[DemoScreen], View], beat_s: float) -> DemoOutcome:
    """Start a server and four devices, tell the story, and compare what the devices have. Raises TimeoutError."""
    async with running_server() as server, asyncio.timeout(LONGEST_S + 60):
        ada = await asyncio.to_thread(server.register, "ada")
        bob = await asyncio.to_thread(server.register, "bob")
        laptop = await asyncio.to_thread(server.link, bob, "laptop")
        cleo = await asyncio.to_thread(server.register, "cleo")
        devices = [
            DemoDevice("Ada's phone", ada, "bob"),
            DemoDevice("Bob's phone", bob, "ada"),
            DemoDevice("Bob's laptop", laptop, "ada"),
            DemoDevice("Cleo's phone", cleo, "ada"),
        ]
        screen = DemoScreen(devices[:3], server)
        view = make_view(screen)
        for device in devices:
            await _connect(device)
        try:
            async with view:
                story = Story(server, devices, view, beat_s)
                await story.tell_of_two()
                between_two = [_ids(device) for device in devices[:3]]
                await story.tell_of_group()
                in_group = [_ids(device) for device in devices]
        finally:
            for device in devices:
                await _disconnect(device)
    kept = _all_once(between_two) and _all_once(in_group)
    return DemoOutcome(len(between_two[0]) + len(in_group[0]), screen.kills, kept)


async def _connect(device: DemoDevice) -> None:
    device.client = await device.device.client(limits=EAGER).__aenter__()
    device.client.on(GroupReceipt)(device.take)


async def _disconnect(device: DemoDevice) -> None:
    _ = device.messages  # remembers the messages that it shows while it is offline
    client, device.client = device.client, None
    if client:
        await client.close()


class Story:
    """Every step waits until its effect is visible in the clients."""

    def __init__(self, server: RunningServer, devices: list[DemoDevice], view: View, beat_s: float) -> None:
        self._server, self._view, self._beat_s = server, view, beat_s
        self._ada, self._phone, self._laptop, self._cleo = self._devices = devices

    async def tell_of_two(self) -> None:
        ada, phone, laptop = self._ada, self._phone, self._laptop
        await self._beat("A server, Ada's phone, and Bob's two devices.")
        first = await self._write(ada, "Hi Bob! Dinner tonight?")
        await first.delivered()
        await self._beat("Sent ✓: the message is on the server's disk. Delivered ✓✓: a device of Bob's has stored it.")
        await self._read(phone)
        await first.read()
        answer = await self._write(phone, "Gladly. Where?")
        await answer.delivered()
        await self._beat("Bob has read it, and answers. His laptop shows his answer, too.")
        await _disconnect(laptop)
        await self._beat("Bob's laptop goes offline.")
        second = await self._write(ada, "The usual place.")
        third = await self._write(ada, "Bring a coat, it is cold.")
        await third.delivered()
        await self._beat("His phone gets the next messages at once. For the laptop they wait on the server.")
        await self._kill()
        await self._beat("kill -9: the server process is gone.")
        fourth = await self._write(ada, "And the tickets!")
        fifth = await self._write(phone, "Anything else?")
        await self._beat("Both go on writing. Their messages wait in their outboxes ◷.")
        await self._restart()
        await fourth.delivered()
        await fifth.delivered()
        await self._beat("The server starts again on the same folder. The devices reconnect, and the ticks arrive.")
        await _connect(laptop)
        await self._until(lambda: _ids(laptop) == _ids(phone))
        await self._beat("Bob's laptop is online again: it has every message, once, and in order.")
        await self._read(laptop)
        await self._read(ada)
        for receipt in (second, third, fourth, answer, fifth):
            await receipt.read()
        await self._until(lambda: _ticks(laptop) == _ticks(phone))
        await self._beat("Both have read everything, and both know it.")

    async def tell_of_group(self) -> None:
        ada, phone, cleo = self._ada, self._phone, self._cleo
        assert ada.client is not None
        group = await ada.client.create_group("Friends", ["bob", "cleo"])
        await self._until(lambda: all(_is_in(device, group.id) for device in self._devices))
        for device in self._devices:
            device.peer = f"{GROUP}{group.name}"
        self._view.screen.devices = [ada, phone, cleo]
        await self._beat("Ada makes a group with Bob and Cleo.")
        plan = await self._write(ada, "Ice skating on Sunday?")
        await self._until(lambda: _reached(ada, plan) == (2, 0))
        await self._beat("Her phone seals the message once, and both members get it.")
        await self._read(phone)
        await self._read(cleo)
        await self._until(lambda: _reached(ada, plan) == (2, 2))
        await self._beat("Both have read it. Each answer goes to the whole group, too.")
        tea = await self._write(cleo, "I'll bring tea.")
        await tea.sent()
        joining = await self._write(phone, "Count me in!")
        await self._until(lambda: _all_once([_ids(device) for device in self._devices]))
        for device in (ada, phone, cleo):
            await self._read(device)
        await self._until(lambda: _reached(cleo, tea) == _reached(phone, joining) == (2, 2))
        await self._beat("Every message is on every device once, in order, and its sender knows.")

    # --- steps ----------------------------------------------------------------------------------

    async def _beat(self, caption: str) -> None:
        self._view.set_caption(caption)
        await asyncio.sleep(self._beat_s)

    async def _write(self, device: DemoDevice, text: str) -> Receipt:
        assert device.client is not None
        return await device.client.send(device.peer, text)

    async def _read(self, device: DemoDevice) -> None:
        assert device.client is not None
        await device.client.read(device.peer)

    async def _kill(self) -> None:
        self._view.screen.state = Text("killed with SIGKILL", "bold red")
        self._view.screen.kills += 1
        await asyncio.to_thread(self._server.kill)

    async def _restart(self) -> None:
        self._view.screen.state = Text("starting again", "yellow")
        await asyncio.to_thread(self._server.start)
        self._view.screen.state = Text("serving", "green")

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST_S):
            while not is_so():  # noqa: ASYNC110 (profiles do not notify)
                await asyncio.sleep(FRAME_S)


def _ids(device: DemoDevice) -> list[str]:
    return [message.id for message in device.messages]


def _all_once(shown: list[list[str]]) -> bool:
    return all(ids == shown[0] for ids in shown) and len(set(shown[0])) == len(shown[0])


def _is_in(device: DemoDevice, group: int) -> bool:
    assert device.client is not None
    return group in device.client.group_names() and device.client.group(group).is_joined


def _reached(device: DemoDevice, message: Receipt) -> tuple[int, int]:
    """How many members have a message, and how many have read it."""
    receipt = device.receipts.get(message.message_id)
    return (receipt.delivered, receipt.read) if receipt else (0, 0)


def _ticks(device: DemoDevice) -> list[Tick]:
    return [message.state for message in device.messages if message.own]
