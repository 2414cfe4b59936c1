"""`nightmail.testing`: what it gives to other people's tests."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from nightmail.client import Tick
from nightmail.testing import RunningServer, ServerFailed, running, running_server
from nightmail.testing.running import free_port

pytest_plugins = ["pytester"]
WAIT_S = 120


def test_a_real_server_runs_and_is_gone_afterwards() -> None:
    with running_server() as server:
        pid, home = server.pid, server.home
        assert pid is not None
        os.kill(pid, 0)
        ada, bob = server.register("ada"), server.register("bob")
        with ada.sync() as sender, bob.sync() as recipient:
            sender.send("bob", "hello")
            assert recipient.receive(timeout=WAIT_S).text == "hello"
    assert not home.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_kill_loses_nothing_and_a_restart_is_at_the_same_address() -> None:
    with running_server() as server:
        ada, bob = server.register("ada"), server.register("bob")
        phone, url = server.link(bob, "phone"), server.url
        with ada.sync() as sender:
            sender.wait(sender.send("bob", "before"), Tick.SENT, WAIT_S)
            server.kill()
            assert server.pid is None
            sender.send("bob", "after")
            server.restart()
            assert server.url == url
            for device in (bob, phone):
                with device.sync() as recipient:
                    assert [recipient.receive(timeout=WAIT_S).text for _ in range(2)] == ["before", "after"]


def test_it_can_be_stopped_well_and_started_again() -> None:
    with running_server({"log.level": "info"}) as server:
        server.stop()
        assert "stopped" in server.log
        server.start()
        assert server.register("ada").client


def test_it_can_be_used_where_an_event_loop_runs() -> None:
    async def story() -> None:
        async with running_server() as server:
            ada, bob = server.register("ada"), server.register("bob")
            async with ada.client() as sender, bob.client() as recipient, asyncio.timeout(WAIT_S):
                receipt = await sender.send("bob", "hello")
                assert (await anext(recipient.messages())).text == "hello"
                await receipt.delivered()

    asyncio.run(story())


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="No such option"), running_server({"no.such": 1}):
        pass
    with (
        running_server(folder=tmp_path) as server,
        pytest.raises(ServerFailed, match=f"in use by process {server.pid}"),
        running_server(folder=tmp_path),
    ):
        pass


def test_a_port_that_another_process_took_in_between_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = iter([other.getsockname()[1], free_port()])
        monkeypatch.setattr(running, "free_port", lambda: next(ports))
        with running_server() as server:
            assert server.port != other.getsockname()[1]
            assert server.register("ada").client


def test_settings_of_the_environment_do_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTMAIL_SERVER__PORT", "not a port")
    with running_server({"operator.open_metrics": False}) as server:
        assert isinstance(server, RunningServer)
        assert len(server.operator_token) >= 16


def test_pytest_has_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["nightmail.testing.fixtures"]')
    pytester.makepyfile(
        "def test_it(nightmail_server):\n    assert nightmail_server.register('ada').profile.is_dir()\n"
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
