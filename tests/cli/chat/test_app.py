"""The chat, as somebody uses it: real keys, a real client, a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from nightmail.cli.chat.app import ChatApp
from nightmail.cli.chat.lines import MessageLine, Notice
from nightmail.cli.chat.screens import SafetyNumberScreen
from nightmail.cli.chat.widgets import Composer
from nightmail.cli.errors import no_keys_yet
from nightmail.client import Client
from nightmail.client.events import SecurityCodeChanged
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Tick
from nightmail.model.ids import account_id
from nightmail.testing import RegisteredDevice
from tests.cli.hand import NOBODY, Hand, registered_without_keys

HOUR_MS = 3_600_000
QUICK = ClientLimits(backoff_ms_min=20, backoff_ms_max=100)


class Window:
    """One person before a terminal."""

    def __init__(self, client: Client, app: ChatApp, pilot: Pilot[None]) -> None:
        self.client, self.app, self.pilot = client, app, pilot

    async def types(self, text: str) -> None:
        await self.pilot.press(*["space" if char == " " else char for char in text])

    async def says(self, text: str) -> None:
        await self.types(text)
        await self.pilot.press("enter")
        await self.until(lambda: self.composer.text == "")

    async def until(self, is_so: Callable[[], Any]) -> None:
        async with asyncio.timeout(120):
            while not is_so():
                await self.pilot.pause(0.02)

    @property
    def composer(self) -> Composer:
        return self.app.composer

    @property
    def said(self) -> list[MessageLine]:
        return [line for line in self.app.lines if isinstance(line, MessageLine)]

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.said]

    def words(self, selector: str) -> str:
        return str(self.app.screen_stack[0].query_one(selector, Static).render())


@asynccontextmanager
async def window(
    device: RegisteredDevice, *, size: tuple[int, int] = (110, 32), person: str = "", url: str = ""
) -> AsyncIterator[Window]:
    async with Client(device.profile, [url or device.url], limits=QUICK) as client:
        app = ChatApp(client, person)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield Window(client, app, pilot)


def played(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        async with asyncio.timeout(300):
            await story()

    asyncio.run(play())


@pytest.fixture
def ada(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("ada"))


@pytest.fixture
def bob(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("bob"))


def test_two_people_talk_and_see_their_ticks_turn_blue(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            await a.says("Lunch at noon?")
            message = await anext(b.messages())
            assert message.text == "Lunch at noon?"
            await a.until(lambda: [line.tick for line in a.said] == [Tick.DELIVERED])
            await b.read(message.peer)
            await a.until(lambda: [line.tick for line in a.said] == [Tick.READ])
            await b.send(ada.handle, "Gladly.")
            await a.until(lambda: a.texts == ["Lunch at noon?", "Gladly."])
            assert [line.own for line in a.said] == [True, False]
            # It is on the screen, so it is read.
            await a.until(lambda: a.client.unread() == 0)
            await a.until(lambda: a.words("#status").startswith("● online"))
            assert bob.handle in a.words("#head")

    played(story)


def test_an_unread_conversation_is_counted_until_it_is_opened(
    ada: RegisteredDevice, bob: RegisteredDevice, hand: Hand
) -> None:
    carol = hand.server.register(hand.name("carol"))

    async def story() -> None:
        async with window(ada, person=bob.handle) as a, carol.client() as c:
            for n in range(3):
                await c.send(ada.handle, f"news {n}")
            await a.until(lambda: a.app.model.unread == 3)
            assert a.texts == []
            a.app.list.focus()
            await a.pilot.press("home", "enter")
            await a.until(lambda: a.texts == ["news 0", "news 1", "news 2"])
            await a.until(lambda: a.app.model.unread == 0)

    played(story)


def test_nothing_is_read_while_the_terminal_has_lost_the_focus(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client() as b:
            a.app.post_message(events.AppBlur())
            await a.pilot.pause()
            await b.send(ada.handle, "psst")
            await a.until(lambda: a.texts == ["psst"])
            assert a.client.unread() == 1
            a.app.post_message(events.AppFocus())
            await a.until(lambda: a.client.unread() == 0)

    played(story)


def test_the_chat_shows_who_is_online_typing_and_gone_and_what_waits_for_them(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.says("Are you there?")
            async with bob.client(limits=QUICK) as b:
                # Bob's client is in the background, and does not know Ada.
                await anext(b.messages())
                await a.until(lambda: a.words("#head").endswith("last seen: unavailable"))
                await (await b.send(ada.handle, "Yes.")).delivered()
            await a.until(lambda: a.texts == ["Are you there?", "Yes."])
        async with window(ada, person=bob.handle) as a:
            await a.until(lambda: a.words("#head").endswith("· offline"))
            await a.says("Still?")
            await a.until(lambda: [(line.tick, line.queued) for line in a.said][-1] == (Tick.SENT, True))
            async with window(bob, person=ada.handle) as b:
                await a.until(lambda: a.words("#head").endswith("· online"))
                await b.until(lambda: b.words("#head").endswith("· online"))
                await a.until(lambda: not a.said[-1].queued)
                await b.types("h")
                await a.until(lambda: a.words("#head").endswith("· typing…"))
                await a.until(lambda: a.words("#head").endswith("· online"))
                b.app.post_message(events.AppBlur())
                await a.until(lambda: "last seen at" in a.words("#head") or "last seen on" in a.words("#head"))

    played(story)


def test_a_message_may_have_several_lines_and_half_a_message_waits(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.types("one")
            await a.pilot.press("ctrl+j")
            await a.says("two")
            await a.until(lambda: a.texts == ["one\ntwo"])
            await a.types("half")
            await a.pilot.press("ctrl+n")
            await a.types("nobody")
            await a.pilot.press("enter")
            await a.until(lambda: a.composer.text == "")
            a.app.list.focus()
            await a.pilot.press("home", "enter")
            await a.until(lambda: a.texts == ["one\ntwo"])
            await a.until(lambda: a.composer.text == "half")

    played(story)


def test_it_works_offline_and_says_so(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, url=NOBODY) as a:
            await a.says("into the void")
            await a.until(lambda: [(line.text, line.tick) for line in a.said] == [("into the void", Tick.PENDING)])
            await a.until(lambda: a.words("#status").startswith("○ offline"))
        async with window(ada) as a:  # the newest conversation is opened
            await a.until(lambda: [line.tick for line in a.said] == [Tick.SENT])

    played(story)


def test_a_failed_message_says_why(ada: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person="nobody at all") as a:
            await a.says("hello?")
            await a.until(lambda: [(line.tick, line.reason) for line in a.said] == [(Tick.FAILED, "unknown_recipient")])

    played(story)


def test_a_recipient_without_keys_is_told_in_the_conversation(hand: Hand, ada: RegisteredDevice) -> None:
    newcomer = registered_without_keys(hand)

    async def story() -> None:
        async with window(ada, person=newcomer) as a:
            await a.says("hello?")
            await a.until(lambda: [line.text for line in a.app.lines if isinstance(line, Notice)])
            (notice,) = [line for line in a.app.lines if isinstance(line, Notice)]
            assert (no_keys_yet(newcomer), a.said[-1].tick) == (notice.text, Tick.PENDING)

    played(story)


def test_a_failed_message_is_marked_in_the_list_and_does_not_stay_the_newest(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person="nobody-is-called-so") as a:
            await a.says("hello?")
            await a.until(lambda: a.said[-1].tick is Tick.FAILED)
            await a.client.send(bob.handle, "hello")
            await a.until(lambda: len(a.app.model.conversations) == 2 and a.app.model.conversations[0].at < 1 << 60)
            newest, failed = a.app.model.conversations
            assert (newest.peer, newest.failed, failed.failed) == (account_id(bob.handle), False, True)

    played(story)


def test_a_search_finds_while_one_types_and_opens_the_message(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.says("the cafe at the corner")
            await a.says("something else")
            await a.pilot.press("ctrl+n")
            await a.types("nobody")
            await a.pilot.press("enter")
            await a.pilot.press("ctrl+f")
            await a.types("CAF")
            await a.until(lambda: a.app.screen.query_one("#found", OptionList).option_count == 1)
            await a.pilot.press("enter")
            await a.until(lambda: a.texts == ["the cafe at the corner", "something else"])
            await a.until(lambda: (marked := a.app.messages.highlighted_option) and marked.id == a.said[0].id)
            await a.pilot.press("ctrl+f")
            await a.client.send(bob.handle, "while it stands above")
            await a.until(lambda: len(a.texts) == 3)
            await a.pilot.press("escape")
            await a.until(lambda: not a.app.screen.query("#found"))

    played(story)


def test_a_narrow_terminal_shows_one_thing_at_a_time(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, size=(40, 20)) as a:
            await a.says("hi")
            await a.until(lambda: not a.app.query_one("#left").display)
            await a.pilot.press("escape")
            await a.until(lambda: a.app.query_one("#left").display and not a.app.query_one("#right").display)
            await a.pilot.press("enter")
            await a.until(lambda: a.app.query_one("#right").display)
            await a.pilot.resize_terminal(110, 30)
            await a.until(lambda: a.app.query_one("#left").display and a.app.query_one("#right").display)
            await a.pilot.resize_terminal(30, 12)
            await a.until(lambda: not a.app.query_one("#left").display)

    played(story)


def test_older_messages_come_when_one_goes_up(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with ada.client() as client:
            for n in range(100):
                await client.send(bob.handle, f"number {n}")
        async with window(ada) as a:
            await a.until(lambda: a.texts and a.texts[-1] == "number 99")
            assert len(a.texts) == 60
            a.app.messages.focus()
            await a.pilot.press("home")
            await a.until(lambda: len(a.texts) == 100)

    played(story)


def test_names_and_handles_of_others_are_not_markup(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.client.people.name(bob.handle, "[red]Bob[/red]")
            await a.says("[bold]hello[/bold]")  # sending drops the cached row of the list
            await a.until(lambda: "[red]Bob[/red]" in a.words("#head"))
            assert "hello" not in a.app.title

    played(story)


def test_a_message_is_answered_and_the_answer_shows_what_it_answers(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            await b.send(ada.handle, "Lunch or dinner?")
            await b.send(ada.handle, "And where?")
            await a.until(lambda: len(a.texts) == 2)
            a.app.messages.focus()
            await a.pilot.press("home", "r")
            await a.until(lambda: "Lunch or dinner?" in a.words("#reply"))
            await a.says("Dinner")
            await a.until(lambda: not a.app.reply.display)
            answer = await anext(b.messages())
            assert (answer.text, answer.reply_to_message_id) == ("Dinner", a.said[0].id)
            await a.until(lambda: [line.quote for line in a.said] == ["", "", "Lunch or dinner?"])
            a.app.messages.focus()
            await a.pilot.press("end", "r", "escape")
            await a.until(lambda: not a.app.reply.display)

    played(story)


def test_the_safety_number_is_compared_and_said_to_be_alike(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            await a.pilot.press("ctrl+s")  # nobody's key is known yet: that is said, and nothing opens
            assert not isinstance(a.app.screen, SafetyNumberScreen)
            await a.says("hello")
            message = await anext(b.messages())
            await a.pilot.press("ctrl+s")
            await a.until(lambda: isinstance(a.app.screen, SafetyNumberScreen))
            number = str(a.app.screen.query_one("#number", Static).render())
            assert "".join(number.split()) == b.safety_number(message.peer)
            await a.pilot.press("v")
            await a.until(lambda: "verified" in a.words("#head") and a.client.trust(bob.handle).verified)

    played(story)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (110, 40)])
def test_every_dialog_fits_its_window(ada: RegisteredDevice, bob: RegisteredDevice, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, size=size) as a, bob.client(limits=QUICK) as b:
            await a.says("hello")
            await anext(b.messages())
            dialogs = {
                "ctrl+n": "#whom", "ctrl+f": "#found", "ctrl+s": "#advice", "ctrl+g": "#group-members",
                "ctrl+t": "#after", "ctrl+l": "#scheduled-keys", "ctrl+o": "#path",
            }  # fmt: skip
            for key, last in dialogs.items():
                await a.pilot.press(key)
                await a.until(lambda last=last: any(each.region.area for each in a.app.screen.query(last)))
                await a.pilot.pause()
                screen = a.app.screen
                assert screen.region.contains_region(screen.query_one(last).region)
                assert all(box.max_scroll_y == 0 for box in screen.query(".box"))
                if key == "ctrl+s":
                    assert screen.query_one("#qr-code").is_on_screen == (size[1] == 40)
                await a.pilot.press("escape")

    played(story)


def test_a_changed_security_code_stands_in_the_conversation(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            await a.says("before")
            await a.until(lambda: [line.tick for line in a.said] == [Tick.SENT])
            store, account = a.app.conversations.client._store, account_id(bob.handle)
            trusted = store.trusted(account)
            assert trusted is not None
            store.put_trusted(replace(trusted, held=True, changed_at=1 << 41))
            a.app._handle_client_event(SecurityCodeChanged(account, bob.handle, True))
            await a.until(lambda: any(isinstance(line, Notice) for line in a.app.lines))
            (notice,) = [line for line in a.app.lines if isinstance(line, Notice)]
            assert (notice.grave, bob.handle in notice.text, "Your messages wait" in notice.text) == (True, True, True)

    played(story)


def test_a_timer_is_set_shown_and_takes_the_message_its_quote_and_its_preview_away(
    ada: RegisteredDevice, bob: RegisteredDevice
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, bob.client(limits=QUICK) as b:
            await a.pilot.press("ctrl+t")
            await a.types("1h")
            await a.pilot.press("enter")
            await a.until(lambda: "⏱ 1 hour" in a.words("#head"))
            words = "You set the timer: messages disappear 1 hour after they were read."
            await a.until(lambda: any(isinstance(line, Notice) and line.text == words for line in a.app.lines))
            await a.until(lambda: b.timer(ada.handle) == HOUR_MS)
            await b.send(ada.handle, "Between us.")
            await a.until(lambda: a.texts == ["Between us."] and a.client.unread() == 0)
            a.app.messages.focus()
            await a.pilot.press("end", "r")
            await a.until(lambda: "Between us." in a.words("#reply"))
            await a.says("Sure.")
            await a.until(lambda: [line.quote for line in a.said] == ["", "Between us."])
            await a.until(lambda: a.said[1].tick is Tick.DELIVERED)
            driver = a.client._open_driver()
            with driver.working() as machine:
                machine.tick(driver.clock() + HOUR_MS)
            await a.until(lambda: a.texts == [])
            await a.until(lambda: a.app.model.conversations[0].preview == words)
            assert a.client.search("between") == []

    played(story)


def test_what_can_be_no_timer_is_said_so(ada: RegisteredDevice, bob: RegisteredDevice) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a:
            for typed in ("29s", "soon"):
                await a.pilot.press("ctrl+t")
                await a.types(typed)
                await a.pilot.press("enter")
            await a.until(lambda: len(a.app._notifications) == 2)
            assert a.client.timer(bob.handle) == 0

    played(story)
