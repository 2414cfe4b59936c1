"""A server process whose history holds a week, as if it had run that long.

    python -m bench.ops_server FOLDER

Prints where it is and its operator's token, as JSON, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from msgspec import Struct

from nightmail.server.config import load
from nightmail.server.heart import clock
from nightmail.server.history import MINUTE_MS, MINUTES, SECONDS
from nightmail.server.node import Node
from nightmail.server.operator import FILE_NAME
from pictures.ops import SETTINGS

LIMITS = {"http.schedules_per_minute": 1_000_000, "gateway.address_requests_burst": 1_000_000, "log.level": "error"}


class ServedWeek(Struct, frozen=True):
    url: str
    operator_token: str
    pid: int


@contextmanager
def serving_a_week(folder: Path) -> Generator[ServedWeek]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.ops_server", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield ServedWeek(told["url"], told["token"], process.pid)
    finally:
        process.communicate()


async def _serve(folder: str) -> None:
    flags: dict[str, Any] = {**SETTINGS, **LIMITS, "data.folder": folder, "server.port": 0, "gateway.stop_ms": 1}
    node = Node(load(flags=flags).config)
    await node.start()
    history, now = node.sampling.history, clock()
    for ring, count, step_ms in ((history.minutes, MINUTES, MINUTE_MS), (history.seconds, SECONDS, 1_000)):
        for number in range(count):
            values = [(number * 7 + at) % 100 for at in range(len(history.columns))]
            ring.add(now - (count - number) * step_ms, values)
    token = (Path(folder) / FILE_NAME).read_text().strip()
    print(json.dumps({"url": node.url, "token": token}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await node.stop()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
