"""Strangers cannot take the descriptors that the disk and those who are connected need."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from nightmail.server.spare_descriptors import BACKLOG, TOLD_S, Descriptors, first_spare
from nightmail.wire.frames import encode
from nightmail.wire.items import PATH, SUBPROTOCOL, VERSION, Answered, Ask, Hello, Welcome
from tests.server.rig import WAIT_S, Asker, message
from tests.server.test_process import ROOT, ends
from tests.server.test_system_calls import until

LIMIT = 80


def test_a_share_of_the_descriptors_is_no_connections() -> None:
    assert {limit: first_spare(limit) for limit in (64, 1_024, 1 << 20)} == {
        64: 48,
        1_024: 768,
        1 << 20: (1 << 20) - 320,
    }


def test_the_operator_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    descriptors = Descriptors(64, lambda: now)
    for _ in range(100):
        descriptors.turn_away()
    now = TOLD_S
    descriptors.turn_away()
    said = "file descriptors run out; new connections are turned away, and those that are here are served"
    told = [(record.getMessage(), vars(record)["turned_away"]) for record in caplog.records]
    assert told == [(said, 1), (said, 101)]


def test_with_few_descriptors_those_who_are_connected_are_served_and_the_log_says_so(tmp_path: Path) -> None:
    command = f'ulimit -n {LIMIT}; exec "$0" -m tests.server.serve "$1"'
    running = subprocess.Popen(
        ["sh", "-c", command, sys.executable, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT,
    )  # fmt: skip
    strangers: list[socket.socket] = []
    try:
        assert running.stdout
        asker = Asker(int(running.stdout.readline()))
        ada, bob = asker.register("ada"), asker.register("bob")
        address = f"ws://127.0.0.1:{asker.port}{PATH}"
        with connect(address, subprotocols=[Subprotocol(SUBPROTOCOL)], compression=None) as device:
            device.send(encode([Hello(VERSION, ada.device, ada.token, 0, 0, 0)]))
            until(device, Welcome)
            strangers += [socket.create_connection(("127.0.0.1", asker.port), WAIT_S) for _ in range(2 * LIMIT)]
            turned_away = strangers[-1].recv(1)
            assert turned_away == b""
            for n in range(1, 20):
                device.send(encode([Ask(n, message(ada, bob, n))]))
                until(device, Answered)
        for stranger in strangers:
            stranger.close()
        running.terminate()
        code, said = ends(running)
    finally:
        running.kill()
    assert code == 0
    assert said.count("file descriptors run out") == 1
    assert "the disk" not in said


def test_one_turn_of_the_event_loop_takes_one_connection_however_many_wait() -> None:
    """`BACKLOG` relies on it: a loop that took all that wait would keep everybody else waiting meanwhile."""
    waiting = 50

    async def story() -> list[int]:
        loop, made = asyncio.get_running_loop(), list[asyncio.Protocol]()

        class Newcomer(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.append(self)

        server = await loop.create_server(Newcomer, "127.0.0.1", 0, backlog=BACKLOG)
        sockets = [socket.create_connection(server.sockets[0].getsockname()) for _ in range(waiting)]
        taken = list[int]()
        while len(made) < waiting:
            before = len(made)
            await asyncio.sleep(0)
            taken.append(len(made) - before)
        for each in sockets:
            each.close()
        server.close()
        return taken

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert max(runner.run(story())) == 1
