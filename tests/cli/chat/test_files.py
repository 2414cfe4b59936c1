"""Files in the chat, as somebody uses it: real keys, a real client, a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from textual.widgets import Input

from nightmail.cli.chat.app import ChatApp
from nightmail.cli.chat.file_screens import PathScreen
from nightmail.cli.chat.files import FileLine, drawn
from nightmail.client.media.thumbnails import thumbnail_of
from nightmail.client.messages import Tick
from nightmail.testing import RegisteredDevice
from tests.cli.chat.test_app import Window, played, window
from tests.cli.hand import NOBODY, Hand

DATA = b"a,b\n" * 1_000


@pytest.fixture
def ada(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("ada"))


@pytest.fixture
def bob(hand: Hand) -> RegisteredDevice:
    return hand.server.register(hand.name("bob"))


@pytest.fixture(autouse=True)
def notes_stay_on_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChatApp, "NOTIFICATION_TIMEOUT", 600.0)


def a_file(folder: Path) -> Path:
    path = folder / "figures.csv"
    path.write_bytes(DATA)
    return path


async def answers(a: Window, path: Path) -> None:
    """The dialog asks for a path."""
    await a.until(lambda: any(each.region.area for each in a.app.screen.query("#path")))
    a.app.screen.query_one("#path", Input).value = str(path)
    await a.pilot.press("enter")
    await a.until(lambda: not isinstance(a.app.screen, PathScreen))


def told(a: Window) -> list[str]:
    return [note.message for note in a.app._notifications]


def test_a_file_is_sent_with_what_is_written_and_saved(
    ada: RegisteredDevice, bob: RegisteredDevice, tmp_path: Path
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle) as a, window(bob, person=ada.handle) as b:
            a.composer.text = "as promised"
            await a.pilot.press("ctrl+o")
            await answers(a, a_file(tmp_path))
            await a.until(lambda: a.texts == ["figures.csv\nas promised"] and a.said[0].tick >= Tick.DELIVERED)
            assert a.composer.text == ""
            await b.until(lambda: b.said and b.said[0].file and "in the profile" in b.said[0].file.about)
            assert b.said[0].file == FileLine("(text/csv, 3.9 KiB) in the profile")
            b.app.messages.focus()
            await b.pilot.press("s")
            await answers(b, tmp_path / "saved.csv")
            await b.until(lambda: told(b))
            assert (tmp_path / "saved.csv").read_bytes() == DATA

    played(story)


def test_a_file_that_waits_has_a_bar_and_can_be_given_up(
    ada: RegisteredDevice, bob: RegisteredDevice, tmp_path: Path
) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, url=NOBODY) as a:
            await a.pilot.press("ctrl+o")
            await answers(a, a_file(tmp_path))
            await a.until(lambda: a.said and a.said[0].file and a.said[0].file.share == 0)
            a.app.messages.focus()
            await a.pilot.press("delete")
            await a.until(lambda: a.said[0].tick is Tick.FAILED)
            assert (a.said[0].reason, a.said[0].file and a.said[0].file.share) == ("given_up", None)

    played(story)


def test_what_is_no_file_is_a_sentence(ada: RegisteredDevice, bob: RegisteredDevice, tmp_path: Path) -> None:
    async def story() -> None:
        async with window(ada, person=bob.handle, url=NOBODY) as a:
            await a.pilot.press("ctrl+o")
            await answers(a, tmp_path / "nowhere")
            await a.until(lambda: told(a))
            assert a.said == []

    played(story)


def test_a_preview_is_drawn_in_half_blocks_and_progress_as_a_bar(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    Image.new("RGB", (100, 100), "red").save(path)
    lines = drawn(FileLine("(image/png, 1 KiB) being fetched", 0.5, thumbnail_of(str(path))))
    assert [line.plain for line in lines[:10]] == ["▄" * 20] * 10
    assert [line.plain for line in lines[10:]] == ["(image/png, 1 KiB) being fetched", "━" * 20 + "  50%"]
    assert len(drawn(FileLine("(image/png, 1 KiB)", None, b"no picture"))) == 1
