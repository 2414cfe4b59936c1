"""Draws `nightmail chat` as SVG for the README, from a conversation of real clients on a real server.

    python -m pictures.chat docs/chat.svg

Touches: a server process in a temporary folder, and the file that it writes.
Never:   invents content: the picture is a screenshot of the window.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from textual.pilot import Pilot

from nightmail.cli.chat.app import ChatApp
from nightmail.cli.chat.lines import MessageLine
from nightmail.client import Client, Group
from nightmail.client.messages import Tick
from nightmail.testing import RegisteredDevice, running_server

SIZE = (96, 26)
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""Removed, so that the picture loads nothing; the viewer's own monospace font is used."""


async def _draw(people: dict[str, RegisteredDevice]) -> str:
    async with people["ada"].client() as ada, people["bob"].client() as bob, people["carol"].client() as carol:
        await carol.people.name("ada", "Ada")
        await (await carol.send("ada", "The boat leaves at six.")).delivered()
        for words in ("Are you coming, too?", "Tell me by noon."):
            await (await carol.send("ada", words)).delivered()
        await ada.people.name("carol", "Carol")
        await _talk(ada, bob)
        await _talk_in_group(ada, bob, carol)
        await ada.verify("bob", ada.safety_number("bob"))
        app = ChatApp(ada, "bob")
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            await _settled(app, pilot)
            await bob.close()
            await _say(pilot, "See you there!")
            await _until(pilot.pause, lambda: _said(app)[-1].tick is Tick.SENT)
            await pilot.pause()
            return _FONTS.sub("", app.export_screenshot(title="nightmail chat"))


async def _talk(ada: Client, bob: Client) -> None:
    """The messages before the window opens."""
    newest = ""
    for author, other, words in (
        (ada, "bob", "Good morning, Bob. Did the night mail arrive?"),
        (bob, "ada", "It did, every letter once and in order."),
        (bob, "ada", "Even those you wrote in the tunnel."),
        (ada, "bob", "Then lunch is on me. The café by the station, at noon?"),
        (bob, "ada", "Gladly ☕"),
    ):
        answers = words.startswith("Gladly")
        receipt = await author.send(other, words, reply_to_message_id=newest if answers else "")
        newest = receipt.message_id
        await receipt.delivered()
        await (bob if author is ada else ada).read(author.identity.account)
        await receipt.read()


async def _talk_in_group(ada: Client, bob: Client, carol: Client) -> None:
    """Ada has read the first message, and not the second."""
    group = await ada.create_group("Friends", ["bob", "carol"])
    for author, words in ((bob, "Who brings the skates?"), (carol, "I have two pairs!")):
        await _until(asyncio.sleep, partial(_is_in, author, group))
        receipt = await author.send(group, words)
        await _until(asyncio.sleep, partial(ada.search, words, group))
        if author is bob:
            await ada.read(group, [receipt.message_id])


def _is_in(client: Client, group: Group) -> bool:
    return group.id in client.group_names() and client.group(group).is_joined


async def _say(pilot: Pilot[None], words: str) -> None:
    await pilot.press(*["space" if char == " " else char for char in words])
    await pilot.press("enter")


def _said(app: ChatApp) -> list[MessageLine]:
    return [line for line in app.lines if isinstance(line, MessageLine)]


async def _settled(app: ChatApp, pilot: Pilot[None]) -> None:
    await _until(pilot.pause, lambda: len(_said(app)) == 5 and app.conversations.client.online)


async def _until(pause: Callable[[float], Awaitable[None]], is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await pause(0.05)


def draw() -> str:
    with running_server() as server:
        people = {handle: server.register(handle) for handle in ("ada", "bob", "carol")}
        return asyncio.run(_draw(people))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw())
