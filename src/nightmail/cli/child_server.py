"""Runs commands that start a server process: when the command ends, its server process has ended, too."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from nightmail.testing import ServerFailed

from .errors import Exit, Failure

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, but SIGTERM raises KeyboardInterrupt, so `with` blocks end their processes. Raises Failure."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if in_main else None
    try:
        return asyncio.run(work)
    except ServerFailed as error:
        raise Failure(Exit.OTHER, f"{error}.") from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)
