"""The process around a node: signals, limits of the machine, and how it ends.

Knows:   what an exit code means.
Touches: signals, the number of open files, the rights of new files.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import uvloop

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.ports import Damaged, EngineError, InUse, TooNew, Unwritable

from .config import Config
from .fallen import Fell
from .listening_socket import CannotListen
from .memory import Collector, limit_arenas
from .node import Node
from .observe import log, set_up_logging
from .private_files import UMASK


class ServingNode(Protocol):
    """What a process needs of its node: alone, or one of a cluster."""

    fell: asyncio.Future[None]
    collector: Collector
    name: str

    @property
    def url(self) -> str: ...

    @property
    def folder(self) -> Path: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


SWITCH_S = 0.0005
"""While another thread computes, the event loop gets the interpreter back after this time, and not after 5 ms: once in
each turn, because it lets go of it to wait for sockets."""

EXIT_CODES: dict[type[Exception], int] = {
    EngineError: 1,
    InUse: 3,
    Damaged: 4,
    TooNew: 4,
    Unwritable: 5,
    CannotListen: 6,
    Fell: 70,
}
"""Also 0: stopped as asked; 2: a setting is wrong."""


def run(
    config: Config,
    on_started: Callable[[ServingNode], None] | None = None,
    on_failed: Callable[[int, str], None] | None = None,
    newest_fold: int = NEWEST_FOLD,
) -> int:
    """Serve until a signal says otherwise. Returns the exit code; says why in one sentence on standard error.

    `on_failed` is told the same: the exit code and the sentence. `newest_fold`: see `Heart`.
    """
    set_up_logging(config.log)
    os.umask(UMASK)
    limit_arenas()
    sys.setswitchinterval(SWITCH_S)
    raise_open_files()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(config, on_started, newest_fold))
    except (EngineError, CannotListen, Fell) as error:
        logging.shutdown()
        print(f"nightmail: {error}", file=sys.stderr)  # noqa: T201
        code = EXIT_CODES.get(type(error), EXIT_CODES[EngineError])
        if on_failed:
            on_failed(code, f"{error}")
        return code


async def _serve(config: Config, on_started: Callable[[ServingNode], None] | None, newest_fold: int) -> int:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def on_signal(number: int) -> None:
        if asked.is_set():
            # What was acknowledged is in the log: nothing is lost by not waiting.
            log.warning("stopped at once")
            logging.shutdown()
            os._exit(128 + number)
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    node = _node(config, newest_fold)
    await node.start()
    node.collector.start()
    if on_started:
        on_started(node)
    stop = asyncio.ensure_future(asked.wait())
    await asyncio.wait((stop, node.fell), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    await node.stop()
    if node.fell.done():
        node.fell.result()
    return 0


def _node(config: Config, newest_fold: int) -> ServingNode:
    if not config.cluster.enabled:
        return Node(config, newest_fold)
    try:
        # Its drivers are an extra.
        from .cluster.node import ClusterNode  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(f"a node of a cluster needs the extra nightmail[cluster]: {error.name} is missing") from None
    return ClusterNode(config, newest_fold)


def raise_open_files() -> None:
    """Every connection is a file: have as many as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            log.warning("the number of open files could not be raised", extra={"limit": soft})
