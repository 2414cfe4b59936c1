from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nightmail.outlets import role
from nightmail.outlets.caller import CallerLimits
from nightmail.outlets.link import SOCKET_NAME, MessageReader, Setup, encode
from nightmail.outlets.outcomes import DONE, CallResult
from nightmail.outlets.ports import WebhookCall
from nightmail.outlets.processes import ProcessesOutlet
from tests.outlets.hook import SECRET, Hook, answering

SETUP = Setup("127.0.0.1", CallerLimits())


class Rig:
    """A node's side, and as many processes as a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outlet = folder, ProcessesOutlet(SETUP)
        self.ended: dict[int, CallResult] = {}
        self._changed = asyncio.Event()
        self.outlet.attend(self._on_ended)

    def _on_ended(self, ended: Sequence[tuple[int, CallResult]]) -> None:
        assert not self.ended.keys() & {number for number, _ in ended}
        self.ended |= dict(ended)
        self._changed.set()

    @asynccontextmanager
    async def process(self) -> AsyncGenerator[None]:
        serving = asyncio.ensure_future(role.serve(self.folder, lambda: 0))
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def until_ended(self, count: int) -> None:
        while len(self.ended) < count:
            self._changed.clear()
            await self._changed.wait()


def run(folder: Path, story: Callable[[Rig, Hook], Awaitable[None]]) -> None:
    async def play(hook: Hook) -> None:
        rig = Rig(folder)
        await rig.outlet.listen(folder)
        try:
            async with asyncio.timeout(120):
                await story(rig, hook)
        finally:
            rig.outlet.close()

    with answering() as hook:
        asyncio.run(play(hook))


def calls(hook: Hook, *numbers: int) -> list[tuple[int, WebhookCall]]:
    return [(number, WebhookCall(f"id-{number}", hook.url, b"{}", SECRET)) for number in numbers]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "AGAIN_S", 0.01)


def test_a_process_makes_the_calls_that_waited_for_it(tmp_path: Path) -> None:
    async def story(rig: Rig, hook: Hook) -> None:
        rig.outlet.begin(calls(hook, 1, 2))
        async with rig.process():
            await rig.until_ended(2)
            rig.outlet.begin(calls(hook, 3))
            await rig.until_ended(3)
        assert rig.ended == {1: DONE, 2: DONE, 3: DONE}
        assert all(call.is_signed for call in hook.calls)

    run(tmp_path, story)


def test_the_calls_of_a_process_that_dies_are_made_by_another(tmp_path: Path) -> None:
    async def story(rig: Rig, hook: Hook) -> None:
        # It takes calls, and never says what became of them.
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET_NAME))
        await reader.readexactly(4)
        rig.outlet.begin(calls(hook, 1, 2))
        writer.close()
        async with rig.process():
            await rig.until_ended(2)

    run(tmp_path, story)


def test_a_process_that_talks_nonsense_is_let_go(tmp_path: Path) -> None:
    async def story(rig: Rig, hook: Hook) -> None:
        for nonsense in (b"\xff\xff\xff\xff", encode(SETUP)):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET_NAME))
            await reader.readexactly(4)
            writer.write(nonsense)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(10_000)
            writer.close()
        assert (rig.ended, rig.outlet.processes) == ({}, 0)

    run(tmp_path, story)


def test_messages_come_whole_however_their_bytes_do() -> None:
    data = encode([(1, DONE)]) + encode([(2, DONE)])
    messages = MessageReader()
    found = [body for byte in data for body in messages.feed(bytes([byte]))]
    assert b"".join(len(body).to_bytes(4, "big") + body for body in found) == data
    with pytest.raises(ValueError):
        list(messages.feed(b"\xff\xff\xff\xff"))
