"""Groups in the chat, as somebody uses it: real keys, a real client, a real server."""

from __future__ import annotations

import pytest
from textual.widgets import Input, OptionList, Static

from nightmail.cli.chat.group_screens import MembersScreen, NewGroupScreen
from nightmail.cli.chat.lines import Notice
from nightmail.client import Client
from nightmail.client.messages import Tick
from nightmail.model.ids import account_id
from nightmail.testing import RegisteredDevice
from tests.cli.chat.test_app import QUICK, Window, played, window
from tests.cli.hand import Hand


@pytest.fixture
def ada(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("ada"))


@pytest.fixture
def bob(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("bob"))


def notices(at: Window) -> list[str]:
    return [line.text for line in at.app.lines if isinstance(line, Notice)]


async def joined(client: Client, name: str = "Friends") -> int:
    events = client.events()
    while not any(group.is_joined for group in client.groups()):
        await anext(events)
    return client.group(name).id


async def makes_a_group(a: Window, name: str, *members: str) -> None:
    await a.pilot.press("ctrl+g")
    await a.until(lambda: isinstance(a.app.screen, NewGroupScreen))
    a.app.screen.query_one("#group-name", Input).value = name
    a.app.screen.query_one("#group-members", Input).value = ", ".join(members)
    await a.pilot.press("enter")
    await a.until(lambda: a.words("#head").startswith(name))


def test_somebody_makes_a_group_talks_in_it_and_sees_who_has_read(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:  # fmt: skip
    async def story() -> None:
        async with window(ada, size=(100, 24)) as a, bob.client(limits=QUICK) as b:
            await b.ready()
            await makes_a_group(a, "Friends", bob.handle)
            group = await joined(b)
            await a.until(lambda: any("made the group" in line for line in notices(a)))
            await a.until(lambda: "2 members" in a.words("#head") and "^S members" in a.words("#status"))
            await a.says(f"Lunch, @{bob.handle}?")
            message = await anext(b.messages())
            assert message.content.mentions == (account_id(bob.handle),)
            await b.read(group)
            await a.until(lambda: [(line.tick, line.seen) for line in a.said] == [(Tick.READ, "read by 1 of 1")])
            await b.send(group, "Gladly.")
            await a.until(lambda: [(line.text, line.author) for line in a.said][1:] == [("Gladly.", bob.handle)])
            b.set_foreground(on=True)
            b.typing(group)
            await a.until(lambda: f"{bob.handle} is typing…" in a.words("#head"))
            await b.rename_group(group, "Old friends")
            await a.until(lambda: a.words("#head").startswith("Old friends"))
            await a.until(lambda: notices(a)[-1] == f"{bob.handle} named the group 'Old friends'.")
            # Bob was only met in the group: that is no conversation with him.
            await a.until(lambda: [row.name for row in a.app.model.conversations] == ["Old friends"])

    played(story)


def test_the_members_are_shown_on_a_small_screen(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, size=(80, 24)) as a, bob.client(limits=QUICK) as b:
            await b.ready()
            await makes_a_group(a, "Friends", bob.handle)
            await a.pilot.press("ctrl+s")
            await a.until(lambda: isinstance(a.app.screen, MembersScreen))
            shown = a.app.screen.query_one("#found", OptionList)
            lines = ["you  admin", f"{bob.handle}  member"]
            await a.until(lambda: [str(option.prompt) for option in shown.options] == lines)
            about = a.app.screen.query_one(".keys", Static)
            await a.until(lambda: about.region.area)
            assert about.region.bottom < 24
            assert "Every member may write." in str(about.render())

    played(story)


def test_leaving_and_timers_are_told_and_what_cannot_be_is_refused(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:  # fmt: skip
    async def story() -> None:
        async with window(ada) as a, bob.client(limits=QUICK) as b:
            await b.ready()
            await makes_a_group(a, "Friends", bob.handle)
            group = await joined(b)
            await a.pilot.press("ctrl+t")
            await a.types("1h")
            await a.pilot.press("enter")
            await a.until(lambda: "⏱ 1 hour" in a.words("#head"))
            told = "changed the settings: messages disappear 1 hour after they were read."
            await a.until(lambda: notices(a)[-1].endswith(told))
            await b.leave_group(group)
            await a.until(lambda: notices(a)[-1:] == [f"{bob.handle} left."])
            await a.pilot.press("ctrl+g")
            await a.until(lambda: isinstance(a.app.screen, NewGroupScreen))
            a.app.screen.query_one("#group-name", Input).value = "Nobody"
            a.app.screen.query_one("#group-members", Input).value = "nobody-at-all"
            await a.pilot.press("enter")
            await a.until(lambda: any("nobody-at-all" in each.message for each in a.app._notifications))  # pyright: ignore[reportPrivateUsage]
            assert [each.name for each in a.client.groups()] == ["Friends"]

    played(story)
