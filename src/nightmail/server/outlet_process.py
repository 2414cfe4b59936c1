"""The process around an outlet: signals, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import uvloop

from nightmail.outlets.role import serve

from .config import Config
from .heart import clock
from .observe import log, set_up_logging
from .private_files import UMASK
from .process import raise_open_files


def run_outlet(config: Config) -> int:
    """Make the calls of the server of this data folder, until a signal says otherwise. Returns the exit code."""
    set_up_logging(config.log)
    os.umask(UMASK)
    raise_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(config.data.folder)))
    return 0


async def _serve(folder: Path) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    serving = asyncio.ensure_future(serve(folder, clock))
    await asked.wait()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    log.info("stopped")
