"""What earlier commits wrote goes on: their data folders and client profiles, opened by the present programs."""

from __future__ import annotations

import signal
import sys
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from nightmail.core.state import NEWEST_FOLD
from tests.compatibility.installation import Installation
from tests.compatibility.make import (
    EXPIRING,
    MADE_AT,
    QUEUED_FOR_ADA,
    QUEUED_FOR_BOB,
    TALKED,
    UNSENT_ADA,
    UNSENT_BOB,
)
from tests.embedded import Server

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
BEFORE_TIMERS = {"2e4b862", "45ffc38"}
"""Their clients let no message disappear; those of later commits count an hour from when it was sent."""
DISAPPEARED = "(disappeared)"


def unpacked(archive: Path, home: Path) -> Installation:
    """The present programs on a copy of the kept example, a day after it was made."""
    with tarfile.open(archive) as packed:
        # Python 3.12 wants a filter; the first 3.11 know none.
        packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        packed.extractall(home)
    return Installation(Path(sys.executable), home, MADE_AT + timedelta(days=1))


def fold_of(folder: Path) -> int:
    server = Server(folder, segment_bytes=4 << 20)
    try:
        return server.loop.state.shard.fold
    finally:
        server.close()


def heard(at: Installation, profile: str) -> list[str]:
    """The messages that a device shows for the first time. What it has to send goes out."""
    events = at.run(profile, "listen", "--until-empty")
    return [event["text"] for event in events if event["type"] == "message"]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name.partition(".")[0])
@pytest.mark.parametrize("folder", ["data-killed", "data-stopped"])
def test_what_an_earlier_commit_left_goes_on(archive: Path, folder: str, tmp_path: Path) -> None:
    at = unpacked(archive, tmp_path)
    with at.serving(folder) as server:
        assert heard(at, "ada") == QUEUED_FOR_ADA
        assert heard(at, "bob") == [*QUEUED_FOR_BOB, UNSENT_ADA]
        assert heard(at, "ada") == [UNSENT_BOB]
        at.run("ada", "send", "bob", "Before the restart.")
        at.run("bob", "send", "ada", "An answer.")
        server.kill()
    with at.serving(folder) as server:
        assert heard(at, "bob") == ["Before the restart."]
        assert heard(at, "ada") == ["An answer."]
        at.run("ada", "send", "bob", "After the restart.")
        assert heard(at, "bob") == ["After the restart."]
        assert heard(at, "ada") == []
        assert heard(at, "laptop") == [
            *TALKED, *QUEUED_FOR_ADA, *QUEUED_FOR_BOB, UNSENT_ADA, UNSENT_BOB, "Before the restart.", "An answer.",
            "After the restart.",
        ]  # fmt: skip
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    history = [(each.get("text", DISAPPEARED), each.get("state", "")) for each in at.run("ada", "history", "bob")]
    assert history[:-1] == [
        *((text, "read") for text in TALKED[:2]),
        (TALKED[2], ""),
        *((text, "") for text in QUEUED_FOR_ADA),
        (QUEUED_FOR_BOB[0], "read"),
        (EXPIRING if archive.name.partition(".")[0] in BEFORE_TIMERS else DISAPPEARED, "failed"),
        *((text, "read") for text in (*QUEUED_FOR_BOB[1:], UNSENT_ADA)),
        (UNSENT_BOB, ""),
        ("Before the restart.", "read"),
        ("An answer.", ""),
    ]
    assert [each["text"] for each in at.run("bob", "search", "waits", "second")] == [
        QUEUED_FOR_BOB[1],
        QUEUED_FOR_ADA[1],
    ]
    contacts = {
        each["handle"]: (each["name"], each["blocked"], each["verified"]) for each in at.run("ada", "contacts", "list")
    }
    assert contacts == {"bob": ("Robert", False, True), "cleo": ("", True, False)}


def test_lives_in_a_kept_profile_are_counted_from_its_first_start(tmp_path: Path) -> None:
    at = unpacked(Path(__file__).with_name("2e4b862.tar.xz"), tmp_path)
    sent = [each["text"] for each in at.run("ada", "history", "bob")]
    assert {EXPIRING, QUEUED_FOR_BOB[2]} <= set(sent)
    for hours, gone in ((0.9, set[str]()), (1.1, {EXPIRING}), (7 * 24 + 1.1, {EXPIRING, QUEUED_FOR_BOB[2]})):
        later = Installation(at.python, at.home, MADE_AT + timedelta(days=1, hours=hours))
        assert [each["text"] for each in later.run("ada", "history", "bob") if "text" in each] == [
            text for text in sent if text not in gone
        ]


@pytest.mark.parametrize("folder", ["data-killed", "data-stopped"])
def test_a_kept_push_token_is_there_and_can_be_replaced(folder: str, tmp_path: Path) -> None:
    at = unpacked(Path(__file__).with_name("effde67.tar.xz"), tmp_path)
    assert fold_of(tmp_path / folder) == 6

    def kept() -> list[str | None]:
        return [each["push"] for seen in at.run("bob", "devices", "list") for each in seen["devices"]]

    with at.serving(folder) as server:
        assert kept() == ["unifiedpush"]
        at.run("bob", "push", "set", "ios", "ab" * 32)
        server.kill()
    with at.serving(folder):
        assert kept() == ["ios"]


@pytest.mark.parametrize("folder", ["data-killed", "data-stopped"])
def test_a_start_raises_the_fold_of_a_folder_that_was_written_with_the_first(folder: str, tmp_path: Path) -> None:
    at = unpacked(Path(__file__).with_name("2e4b862.tar.xz"), tmp_path)
    assert fold_of(tmp_path / folder) == 1
    with at.serving(folder) as server:
        server.kill()
    assert fold_of(tmp_path / folder) == NEWEST_FOLD
