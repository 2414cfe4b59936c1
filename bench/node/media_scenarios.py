"""Scenario `media`: what sealing costs against a plain copy, and what transfers cost others."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        found = [_copy(server, folder, file, turn) for turn in range(settings.media_turns)]
        calm, busy = _live(at, server, trickle=False), _live(at, server, trickle=True)
        small_us, small_rate = _small(server, settings.media_files)
        server.check()
    figures = at.figures("media", busy)
    size, middle = settings.media_mib, {name: statistics.median(each[name] for each in found) for name in found[0]}
    figures.more |= {
        "upload_ratio_to_plain": round(middle["plain_up_s"] / middle["up_s"], 3),
        "download_ratio_to_plain": round(middle["plain_down_s"] / middle["down_s"], 3),
        "client_mib": round(max(each["peak_mib"] for each in found), 1),
        "live_p99_ratio": round(_p99(busy) / _p99(calm), 2),
        "small_file_us": round(small_us),
        "small_files_per_s": round(small_rate),
        "mib": size,
        "upload_mib_s": round(size / middle["up_s"], 1), "download_mib_s": round(size / middle["down_s"], 1),
        "saved_mib_s": round(size / middle["saved_s"], 1),
        "plain_upload_mib_s": round(size / middle["plain_up_s"], 1),
        "plain_download_mib_s": round(size / middle["plain_down_s"], 1),
        "calm_p99_ms": _p99(calm),
    }  # fmt: skip
    yield figures


def _p99(seen: Seen) -> float:
    return quantile_ms(seen.latency, 0.99) or 0.001


def _copy(server: Server, folder: Path, file: Path, turn: int) -> dict[str, float]:
    """A plain copy, and a sealed one, up and down."""
    ada, bob = f"ada{turn}", f"bob{turn}"
    plain = _run(MediaOrder("plain", server.port, str(file)))
    _run(MediaOrder("register", server.port, profile=str(folder / bob), handle=bob))
    sent = _run(MediaOrder("send", server.port, str(file), str(folder / ada), ada, to=bob))
    saved = _run(MediaOrder("save", server.port, str(folder / "saved"), str(folder / bob), bob))
    assert saved["size"] == file.stat().st_size
    return {
        "plain_up_s": plain["up_s"], "plain_down_s": plain["down_s"], "up_s": sent["up_s"],
        "down_s": saved["down_s"], "saved_s": saved["saved_s"], "peak_mib": max(sent["peak_mib"], saved["peak_mib"]),
    }  # fmt: skip


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
