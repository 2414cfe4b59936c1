"""Messages for later in the chat, as somebody uses it: real keys, a real client, a real server."""

from __future__ import annotations

from datetime import timedelta

import pytest
from textual.widgets import Input, OptionList

from nightmail.cli.chat.app import ChatApp
from nightmail.cli.chat.lines import LaterLine, Notice
from nightmail.cli.chat.schedule_screens import LaterScreen, ScheduledScreen
from nightmail.client.messages import Tick
from nightmail.model.ids import account_id
from nightmail.model.schedule_rows import ScheduleState
from nightmail.testing import RegisteredDevice
from tests.cli.chat.test_app import QUICK, Window, played, window
from tests.cli.hand import NOBODY, Hand

HOUR = timedelta(hours=1)


@pytest.fixture
def ada(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("ada"))


@pytest.fixture
def bob(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("bob"))


@pytest.fixture(autouse=True)
def errors_stay_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChatApp, "NOTIFICATION_TIMEOUT", 600.0)


async def says_later(a: Window, text: str, when: str) -> None:
    """Until the dialog is closed: scheduled, or refused."""
    a.composer.text = text
    await a.pilot.press("ctrl+l")
    await a.until(lambda: any(each.region.area for each in a.app.screen.query("#when")))
    a.app.screen.query_one("#when", Input).value = when
    await a.pilot.press("enter")
    await a.until(lambda: not isinstance(a.app.screen, LaterScreen))


async def opens_the_list(a: Window) -> None:
    await a.pilot.press("ctrl+l")
    await a.until(lambda: isinstance(a.app.screen, ScheduledScreen) and a.app.screen.query("#found"))


def later(a: Window) -> list[str]:
    return [line.text for line in a.app.lines if isinstance(line, LaterLine)]


def whens(a: Window) -> list[str]:
    return [line.when for line in a.app.lines if isinstance(line, LaterLine)]


def states(a: Window) -> list[ScheduleState]:
    return [each.state for each in a.client.scheduled()]


def listed(a: Window) -> list[tuple[str, str, str]]:
    """(Name, state, text), as the open list was read."""
    assert isinstance(a.app.screen, ScheduledScreen)
    return [(row.name, row.state, row.text) for row in a.app.screen.rows]


def told(a: Window) -> list[str]:
    return [each.message for each in a.app._notifications]  # pyright: ignore[reportPrivateUsage]


def test_a_scheduled_message_shows_a_clock_until_its_time_and_is_then_one_like_any_other(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            await says_later(a, "Happy birthday!", "1h")
            await a.until(lambda: later(a) == ["Happy birthday!"] and a.composer.text == "")
            await a.until(lambda: [each.is_queued for each in a.client.scheduled()] == [False])
            await a.until(lambda: [when.endswith(", queued") for when in whens(a)] == [False])
            await says_later(a, "Now.", "1s")
            message = await anext(b.messages())
            assert message.text == "Now."
            await a.until(lambda: [(line.text, line.tick) for line in a.said] == [("Now.", Tick.DELIVERED)])
            await a.until(lambda: later(a) == ["Happy birthday!"])

    played(story)


def test_an_answer_for_later_is_an_answer_and_is_given_in_a_group_too(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            receipt = await b.send(ada.handle, "Lunch?")
            await a.until(lambda: a.texts == ["Lunch?"])
            a.app.messages.focus()
            await a.pilot.press("end", "r")
            await a.until(lambda: "Lunch?" in a.words("#reply"))
            await says_later(a, "Gladly.", "1s")
            await a.until(lambda: not a.app.reply.display)
            message = await anext(b.messages())
            assert (message.text, message.reply_to_message_id) == ("Gladly.", receipt.message_id)
            group = await a.client.create_group("Friends", [bob.handle])
            a.app._open_conversation(group.id)  # pyright: ignore[reportPrivateUsage]
            await a.until(lambda: a.words("#head").startswith("Friends"))
            await says_later(a, f"All of you, @{bob.handle}!", "1s")
            message = await anext(b.messages())
            assert (message.group, message.content.mentions) == (group.id, (account_id(bob.handle),))
            await a.until(lambda: a.texts == [f"All of you, @{bob.handle}!"] and later(a) == [])

    played(story)


def test_the_list_shows_every_conversation_and_cancels_what_is_marked(
    ada: RegisteredDevice, bob: RegisteredDevice, hand: Hand
) -> None:
    carol = hand.server.register(hand.name("carol"))

    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.client.schedule(bob.handle, "to Bob", delay=HOUR)
            await a.client.schedule(carol.handle, "to Carol", delay=2 * HOUR)
            await a.until(lambda: not any(each.is_queued for each in a.client.scheduled()))
            await a.until(lambda: later(a) == ["to Bob"])
            # Carol was written to for later only: that is a conversation.
            names = {bob.handle, carol.handle}
            await a.until(lambda: {row.name for row in a.app.model.conversations} == names)
            a.composer.text = "half a sentence"
            await a.pilot.press("ctrl+l")
            await a.until(lambda: isinstance(a.app.screen, LaterScreen))
            await opens_the_list(a)  # from that dialog; what was written stays
            await a.until(
                lambda: listed(a) == [(bob.handle, "pending", "to Bob"), (carol.handle, "pending", "to Carol")]
            )
            await a.pilot.press("c")
            await a.until(lambda: listed(a) == [(carol.handle, "pending", "to Carol"), (bob.handle, "cancelled", "")])
            await a.pilot.press("escape")
            await a.until(lambda: later(a) == [] and not isinstance(a.app.screen, ScheduledScreen))
            assert a.composer.text == "half a sentence"
            assert states(a) == [ScheduleState.CANCELLED, ScheduleState.PENDING]

    played(story)


def test_what_was_delivered_cannot_be_cancelled_and_that_is_said(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await opens_the_list(a)
            await a.until(lambda: "Nothing is scheduled." in str(a.app.screen.query_one("#scheduled-keys").render()))
            await a.pilot.press("c")  # there is nothing to cancel
            await a.client.schedule(bob.handle, "too late", delay=0)
            await a.until(lambda: listed(a) == [(bob.handle, "delivered", "")])
            await a.pilot.press("c")
            await a.until(lambda: told(a) == ["It was sent already."])
            assert states(a) == [ScheduleState.DELIVERED]

    played(story)


def test_what_can_be_no_time_is_said_and_the_text_stays(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    refusals = {
        "soon": "'soon' is no time: write 30s, 5m, 1h, 7d, or 2026-03-01T12:00:00Z.",
        "2026-03-01T12:00:00": "'2026-03-01T12:00:00' has no zone: 2026-03-01T12:00:00Z, or +01:00 instead of Z.",
        "2020-03-01T12:00:00Z": "That time has passed. Nothing was scheduled.",
        "15d": "A message can be scheduled at most 14 days ahead. Nothing was scheduled.",
    }

    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            for n, (typed, words) in enumerate(refusals.items(), 1):
                await says_later(a, "Hello", typed)
                await a.until(lambda n=n: len(told(a)) == n)
                assert told(a)[-1] == words
            assert (a.composer.text, a.client.scheduled()) == ("Hello", [])

    played(story)


def test_without_a_server_it_is_queued_and_cancelled_here(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, url=NOBODY) as a:
            await says_later(a, "Hello", "1h")
            await a.until(lambda: [when.endswith(", queued") for when in whens(a)] == [True])
            await opens_the_list(a)
            await a.until(lambda: listed(a) == [(bob.handle, "queued", "Hello")])
            await a.pilot.press("delete")
            await a.until(lambda: listed(a) == [(bob.handle, "cancelled", "")])
            await a.until(lambda: later(a) == [])

    played(story)


def test_a_message_for_later_that_failed_is_told_in_its_conversation(ada: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person="nobody at all") as a:
            await says_later(a, "Anybody?", "1h")
            await a.until(lambda: states(a) == [ScheduleState.FAILED])
            await a.until(lambda: [line.grave for line in a.app.lines if isinstance(line, Notice)] == [True])
            (notice,) = (line for line in a.app.lines if isinstance(line, Notice))
            assert "“Anybody?” failed: nobody has registered that handle" in notice.text
            assert later(a) == []

    played(story)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_the_dialogs_fit_a_small_window(ada: RegisteredDevice, bob: RegisteredDevice, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, size=size) as a:
            for n in range(12):
                await a.client.schedule(bob.handle, f"number {n}", delay=HOUR)
            a.composer.text = "Hello"
            for screen, last in ((LaterScreen, ".keys"), (ScheduledScreen, "#scheduled-keys")):
                await a.pilot.press("ctrl+l")
                await a.until(lambda screen=screen: isinstance(a.app.screen, screen))
                await a.until(lambda last=last: any(each.region.area for each in a.app.screen.query(last)))
                await a.until(
                    lambda last=last: a.app.screen.region.contains_region(a.app.screen.query_one(last).region)
                )
                await a.until(lambda: all(box.max_scroll_y == 0 for box in a.app.screen.query(".box")))
            found = a.app.screen.query_one("#found", OptionList)
            await a.until(lambda: found.option_count == 12)

    played(story)
