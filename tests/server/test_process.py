"""The process: signals, exit codes, and what is left after it is killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from nightmail.server.memory import THRESHOLDS
from nightmail.server.process import SWITCH_S
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import PATH, SUBPROTOCOL, VERSION, Hello, Welcome
from tests.engine.sqlite.editing import edit
from tests.server.rig import WAIT_S, Asker

ROOT = Path(__file__).parent.parent.parent


def begin(folder: Path, *settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.server.serve", str(folder), *settings],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


@contextmanager
def process(folder: Path, *settings: str) -> Generator[tuple[subprocess.Popen[str], Asker]]:
    with begin(folder, *settings) as running:
        try:
            assert running.stdout
            yield running, Asker(int(running.stdout.readline()))
        finally:
            running.kill()


def ends(running: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code, and what it said."""
    _, said = running.communicate(timeout=WAIT_S)
    return running.returncode, said


def test_a_signal_drains_and_ends_it_well(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with process(tmp_path, "log.level=info") as (running, asker):
            asker.register("ada")
            running.send_signal(number)
            code, said = ends(running)
        assert code == 0
        assert "stopped" in said
        assert "Traceback" not in said


def test_devices_are_sent_elsewhere_before_it_ends(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        ada = asker.register("ada")
        address = f"ws://127.0.0.1:{asker.port}{PATH}"
        with connect(address, subprotocols=[Subprotocol(SUBPROTOCOL)], compression=None) as device:
            device.send(encode([Hello(VERSION, ada.device, ada.token, 0, 0, 0)]))
            first = device.recv(WAIT_S)
            assert isinstance(first, bytes)
            assert isinstance(decode_from_server(first)[0], Welcome)
            running.terminate()
            with pytest.raises(ConnectionClosed) as closed:
                list(iter(lambda: device.recv(WAIT_S), None))
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == CloseCode.DRAINING
        assert ends(running)[0] == 0


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        people = [asker.register(f"person-{n}") for n in range(20)]
        running.kill()
        running.wait(WAIT_S)
    with process(tmp_path) as (_, asker):
        assert [asker.get("/v1/devices", person).status for person in people] == [200] * 20


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with (
        process(tmp_path, "server.drain_ms=60000") as (running, asker),
        socket.create_connection(("127.0.0.1", asker.port), timeout=WAIT_S) as slow,
    ):
        # A request that does not end keeps it from draining.
        slow.sendall(b"POST /v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        slow.sendall(b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 100")
        running.send_signal(signal.SIGTERM)
        refused = False
        while not refused:
            try:
                socket.create_connection(("127.0.0.1", asker.port), timeout=WAIT_S).close()
            except ConnectionError:
                refused = True
        running.send_signal(signal.SIGTERM)
        code, _ = ends(running)
    assert code == 128 + signal.SIGTERM
    with process(tmp_path) as (_, asker):
        assert asker.get("/readyz").status == 200


def test_a_second_process_on_the_folder_is_told_who_has_it(tmp_path: Path) -> None:
    with process(tmp_path) as (running, _):
        code, said = ends(begin(tmp_path))
        assert (code, said) == (3, f"nightmail: {tmp_path} is in use by process {running.pid}\n")


def test_a_second_process_on_the_port_is_told_so(tmp_path: Path) -> None:
    with process(tmp_path / "a") as (_, asker):
        code, said = ends(begin(tmp_path / "b", f"server.port={asker.port}"))
    assert code == 6
    assert said.startswith(f"nightmail: 127.0.0.1:{asker.port} is in use by another process")
    assert said.count("\n") == 1


def test_a_damaged_folder_is_not_served(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        asker.register("ada")
        running.terminate()
        assert ends(running)[0] == 0
    (tmp_path / "rows.db").write_bytes(b"not a database" * 100)
    code, said = ends(begin(tmp_path))
    assert code == 4
    assert said.count("\n") == 1
    assert "rows.db" in said


def contents(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    """Name → bytes (of a folder none) and time of the last change, of everything in it."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def test_a_start_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        ada = asker.register("ada")
        running.kill()
        running.wait(WAIT_S)
    (tmp_path / "rows.db").rename(tmp_path / "aside")
    before = contents(tmp_path)
    code, said = ends(begin(tmp_path))
    assert (code, said.count("\n")) == (4, 1)
    assert before == contents(tmp_path)
    (tmp_path / "aside").rename(tmp_path / "rows.db")
    with process(tmp_path) as (_, asker):
        assert asker.get("/v1/devices", ada).status == 200


def test_a_damaged_row_ends_it_with_a_sentence_that_names_the_row(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        ada = asker.register("ada")
        running.terminate()
        assert ends(running)[0] == 0
    ((good,),) = edit(tmp_path, "SELECT value FROM account")
    edit(tmp_path, "UPDATE account SET value = ?", (good[:-5] + b"\0" + good[-4:],))
    with process(tmp_path) as (running, asker):
        with suppress(OSError, HTTPException):
            asker.get("/v1/devices", ada)
        code, said = ends(running)
    *_, sentence = said.splitlines()
    assert (code, sentence) == (4, f"nightmail: the row ACCOUNT {ada.account} is stored, but is not what was written")
    edit(tmp_path, "UPDATE account SET value = ?", (good,))
    with process(tmp_path) as (_, asker):
        assert asker.get("/v1/devices", ada).status == 200


TUNED = """
import gc, os, signal, sys
from nightmail.server.config import load
from nightmail.server.process import run
from tests.server.rig import SMALL

def started(node):
    print(sys.getswitchinterval(), *gc.get_threshold(), gc.get_freeze_count() > 0)
    os.kill(os.getpid(), signal.SIGTERM)

sys.exit(run(load(flags=SMALL | {"data.folder": sys.argv[1]}).config, started))
"""


def test_neither_a_thread_nor_the_collector_stops_the_event_loop_for_long(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TUNED, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=True
    )  # fmt: skip
    assert done.stdout.split() == [str(each) for each in (SWITCH_S, *THRESHOLDS, True)]
