from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread

import pytest

from engines import plans
from engines.engines import Engines
from engines.jars import COORDINATES, NoEngine, folder
from engines.plans import HOST, KINDS, Plan
from engines.readiness import is_ready
from tests.s3_engine import need_s3


def start(engines: Engines, kind: str) -> Plan:
    if kind in COORDINATES and not folder(kind).exists():
        pytest.skip(f"the jars of {kind} are missing: NOTHING IS TRIED ON A REAL {kind.upper()}; make engines")
    if kind == "s3":
        need_s3()
    engines.up([kind])
    return engines.plans[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_is_ready_once_it_is_up_and_serves_again_at_the_same_place_after_a_kill(
    engines: Engines, kind: str
) -> None:
    plan = start(engines, kind)
    before = engines.pid(kind)
    assert is_ready(kind, plan.port)
    engines.kill(kind)
    assert (engines.pid(kind), is_ready(kind, plan.port)) == (None, False)
    engines.up([kind])
    assert is_ready(kind, plan.port)
    assert engines.plans[kind] == plan
    assert engines.pid(kind) not in (None, before)
    engines.kill(kind)


def test_starting_what_runs_already_changes_nothing(engines: Engines) -> None:
    start(engines, "redis")
    before = engines.pid("redis")
    engines.up(["redis"])
    assert engines.pid("redis") == before


def test_an_open_port_is_not_a_ready_engine() -> None:
    with socket.create_server((HOST, 0)) as server:

        def hang_up() -> None:
            for _ in KINDS:
                link, _address = server.accept()
                link.sendall(b"no\n")
                link.close()

        stranger = Thread(target=hang_up)
        stranger.start()
        assert [is_ready(kind, server.getsockname()[1]) for kind in KINDS] == [False] * len(KINDS)
        stranger.join()


def test_what_cannot_start_is_said_with_the_place_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_home: Path, port: int, _other: int) -> Plan:
        return Plan("redis", port, ["redis-server", "--no-such-setting", "1"], {})

    monkeypatch.setitem(plans.PLANS, "redis", broken)
    with pytest.raises(NoEngine, match=f"redis did not become ready: see {tmp_path}/redis/log"):
        Engines(tmp_path).up(["redis"])


def test_a_program_that_is_missing_is_said_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoEngine, match="redis-server is missing: install the Debian package redis-server"):
        Engines(tmp_path).up(["redis"])


def test_a_folder_that_is_taken_down_has_no_engines(engines: Engines, tmp_path: Path) -> None:
    start(engines, "redis")
    alone = Engines(tmp_path)
    alone.up(["redis"])
    alone.down()
    assert (alone.plans, alone.pid("redis")) == ({}, None)
    assert engines.pid("redis") is not None
