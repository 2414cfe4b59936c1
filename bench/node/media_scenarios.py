"""Scenario `media`: what sealing costs against a plain copy, and what transfers cost others."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .checks import quantile_ms
from .figures import Figures
from .load_messages import Order, Seen
from .media_load import MediaOrder
from .scenario_setup import Stage
from .server import ADMIT_ALL, MANY, Server

MIB = 1 << 20
SMALL_BYTES = 4_096
LIFTED = {
    **ADMIT_ALL,
    **{f"NIGHTMAIL_LIMITS__{name}": str(1 << 40) for name in ("MEDIA_BYTES", "MEDIA_QUOTA_BYTES")},
    **{f"NIGHTMAIL_MEDIA__{name}": MANY for name in ("BEGUN_PER_MINUTE", "FETCHED_PER_MINUTE", "ACCOUNT_STREAMS")},
    "NIGHTMAIL_LIMITS__MEDIA_FILES": MANY,
}  # fmt: skip


def media(at: Stage) -> Iterator[Figures]:
    settings, folder = at.settings, at.new_folder()
    folder.mkdir()
    file = folder / "file"
    with file.open("wb") as made:
        for _ in range(settings.media_mib):
            made.write(os.urandom(MIB))
    with at.server(4 * settings.media_uploads, LIFTED) as server:
        turns = [_copies(server, folder, file, turn) for turn in range(settings.media_turns)]
        calm, busy = _live(at, server, trickle=False), _live(at, server, trickle=True)
        small_us, small_rate = _small(server, settings.media_files)
        server.check()
    figures = at.figures("media", busy)
    size = settings.media_mib
    figures.more |= {
        "upload_ratio_to_plain": _middle(turn.plain_up.seconds / turn.up.seconds for turn in turns),
        "download_ratio_to_plain": _middle(turn.plain_down.seconds / turn.down.seconds for turn in turns),
        "upload_cpu_ratio": _middle(turn.plain_up.cpu_s / turn.up.cpu_s for turn in turns),
        "download_cpu_ratio": _middle(turn.plain_down.cpu_s / turn.down.cpu_s for turn in turns),
        "client_mib": round(max(max(turn.up.peak_mib, turn.down.peak_mib) for turn in turns), 1),
        "live_p99_ratio": round(_p99(busy) / _p99(calm), 2),
        "small_file_us": round(small_us),
        "small_files_per_s": round(small_rate),
        "mib": size,
        "calm_p99_ms": _p99(calm),
    }  # fmt: skip
    for name in Copies._fields:
        transfers = [getattr(turn, name) for turn in turns]
        figures.more[f"{name}_mib_s"] = _middle(size / each.seconds for each in transfers)
        figures.more[f"{name}_client_ms_per_mib"] = _middle(each.client_s * 1e3 / size for each in transfers)
        figures.more[f"{name}_server_ms_per_mib"] = _middle(each.server_s * 1e3 / size for each in transfers)
    yield figures


class Transfer(NamedTuple):
    seconds: float
    client_s: float
    """Of CPU, for the transfer alone."""
    server_s: float
    """Of CPU, likewise of all its threads."""
    peak_mib: float

    @property
    def cpu_s(self) -> float:
        return self.client_s + self.server_s


class Copies(NamedTuple):
    plain_up: Transfer
    up: Transfer
    plain_down: Transfer
    down: Transfer


def _middle(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


def _p99(seen: Seen) -> float:
    return quantile_ms(seen.latency, 0.99) or 0.001


def _copies(server: Server, folder: Path, file: Path, turn: int) -> Copies:
    """A plain copy and a sealed one, right after each other, up and down; which is first changes with each turn."""
    ada, bob, size = f"ada{turn}", f"bob{turn}", file.stat().st_size
    plain, blob = MediaOrder("plain_up", server.port, str(file)), ""
    for name in (ada, bob):
        _run(MediaOrder("register", server.port, profile=str(folder / name), handle=name))
    sealed = MediaOrder("send", server.port, str(file), profile=str(folder / ada), handle=ada, to=bob)
    found: dict[str, Transfer] = {}
    for order in (plain, sealed) if turn % 2 else (sealed, plain):
        found[order.job], said = _transfer(server, order)
        blob = said.get("blob", blob)
    plain = MediaOrder("plain_down", server.port, str(file), blob)
    sealed = MediaOrder("save", server.port, str(folder / "saved"), profile=str(folder / bob), handle=bob)
    for order in (plain, sealed) if turn % 2 else (sealed, plain):
        found[order.job], said = _transfer(server, order)
        assert said.get("size", size) == size
    return Copies(found["plain_up"], found["send"], found["plain_down"], found["save"])


def _transfer(server: Server, order: MediaOrder) -> tuple[Transfer, dict[str, Any]]:
    before = server.cpu_ns()
    said = _run(order)
    server_s = (server.cpu_ns() - before) / 1e9
    return Transfer(said["seconds"], said["cpu_s"], server_s, said["peak_mib"]), said


def _live(at: Stage, server: Server, *, trickle: bool) -> Seen:
    settings = at.settings
    persons = 2 * settings.media_uploads
    order = Order(
        job="talk", port=server.port, server=server.pid, first=persons if trickle else 0, count=persons,
        both_ways=True, rate=settings.media_rate,
    )  # fmt: skip
    uploads = MediaOrder(
        "trickle", server.port, seconds=settings.warm_up + settings.seconds + 2, uploads=settings.media_uploads,
        bytes_per_s=MIB,
    )  # fmt: skip
    with at.load(order) as load:
        beside = _begin(uploads) if trickle else None
        if beside is not None:
            assert beside.stdout is not None
            beside.stdout.readline()
        seen = load.measure(settings.seconds, settings.warm_up)
        if beside is not None:
            _end(beside)
    return seen


def _small(server: Server, files: int) -> tuple[float, float]:
    """Microseconds of server CPU for each, and how many a second."""
    before = server.cpu_ns()
    found = _run(MediaOrder("small", server.port, files=files, size=SMALL_BYTES))
    return (server.cpu_ns() - before) / 1e3 / found["files"], found["files"] / found["seconds"]


def _begin(order: MediaOrder) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.node.media_load", msgspec.json.encode(order).decode()]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _end(running: subprocess.Popen[bytes]) -> dict[str, Any]:
    said, _ = running.communicate()
    assert running.returncode == 0, "a load has failed"
    return json.loads(said)


def _run(order: MediaOrder) -> dict[str, Any]:
    return _end(_begin(order))
