"""What the real process asks of the kernel: a simulated disk cannot show that. And bugs that must be seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from nightmail.cli.profiles import SERVERS_FILE
from nightmail.client.profile.keybox import DEFAULT_FILE
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, VERSION, Answered, Ask, Hello, Welcome
from tests.server.rig import WAIT_S, Asker, message
from tests.server.watching import STRACE, Call, calls_of, judge_answers, judge_names, judge_segments, served, watch

pytestmark = pytest.mark.skipif(not STRACE, reason="strace is missing: NO SYSTEM CALL IS WATCHED; install strace")

MESSAGES = 10
PROFILE_PROGRAM = """
import pathlib, sys
from nightmail.cli.profiles import remember_servers
from nightmail.client.profile.profile import Profile
path = pathlib.Path(sys.argv[1])
Profile(path).close()
remember_servers(path, ["http://127.0.0.1:8640"], None)
"""


def until(device: ClientConnection, kind: type) -> None:
    """Wait for an item of this kind."""
    while True:
        frame = device.recv(WAIT_S)
        assert isinstance(frame, bytes)
        if any(isinstance(item, kind) for item in decode_from_server(frame)):
            return


def lived(folder: Path, trace: Path, plant: str = "none") -> list[Call]:
    """A server on a new folder: two people, a talk, one message at a time; then it is told to stop."""
    with served(plant, folder, trace) as running:
        try:
            assert running.stdout
            asker = Asker(int(running.stdout.readline()))
            ada, bob = asker.register("ada"), asker.register("bob")
            address = f"ws://127.0.0.1:{asker.port}{PATH}"
            with connect(address, subprotocols=[Subprotocol(SUBPROTOCOL)], compression=None) as device:
                device.send(encode([Hello(VERSION, ada.device, ada.token, 0, 0, 0)]))
                until(device, Welcome)
                for n in range(1, MESSAGES + 1):
                    device.send(encode([Ask(n, message(ada, bob, n))]))
                    until(device, Answered)
        finally:
            os.killpg(running.pid, signal.SIGTERM)
        running.wait(WAIT_S)
    return calls_of(trace)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Call]]:
    home = tmp_path_factory.mktemp("watched")
    return home, lived(home / "new" / "data", home / "trace")


def test_every_batch_is_on_the_disk_before_its_answer_is_on_the_line(right: tuple[Path, list[Call]]) -> None:
    assert judge_answers(right[1]) >= MESSAGES + 2


def test_a_segment_has_its_space_and_a_durable_name_before_its_first_batch(right: tuple[Path, list[Call]]) -> None:
    assert judge_segments(right[1]) >= 2


def test_the_names_of_folders_databases_and_secrets_are_durable(right: tuple[Path, list[Call]]) -> None:
    home, calls = right
    data = home / "new" / "data"
    judge_names(
        calls,
        made=[home / "new", data, data / "rows.db", data / "rows.db-sums0", data / "rows.db-sums1"],
        renamed=[data / "operator.token", data / "accounts.secret"],
    )


def test_the_names_of_a_profile_its_key_and_its_servers_are_durable(tmp_path: Path) -> None:
    profile = tmp_path / "profiles" / "ada"
    command = [sys.executable, "-c", PROFILE_PROGRAM, str(profile)]
    subprocess.run(watch(command, tmp_path / "trace"), check=True, timeout=WAIT_S)
    calls = calls_of(tmp_path / "trace")
    judge_names(
        calls,
        made=[profile.parent, profile, profile / "nightmail.db"],
        renamed=[profile / "key", profile / DEFAULT_FILE, profile / SERVERS_FILE],
    )


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ("no sync", "never synced"),
        ("late sync", "answered before it was synced"),
        ("no folder sync", "not durable"),
        ("no space", "no space reserved"),
    ],
)
def test_a_server_with_a_planted_bug_is_caught(tmp_path: Path, plant: str, said: str) -> None:
    data = tmp_path / "new" / "data"
    calls = lived(data, tmp_path / "trace", plant)

    def judge() -> None:
        judge_answers(calls)
        judge_names(calls, made=[data.parent, data], renamed=[data / "operator.token"])
        judge_segments(calls)

    with pytest.raises(AssertionError, match=said):
        judge()
