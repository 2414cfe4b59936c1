"""What ends a node: an error below its doors, after which going on could give false answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nightmail.engine.machine_errors import MACHINE_ERRORS, as_engine_error

from .observe import log


class Fell(Exception):
    """A programming error below the doors left an unknown state. A restart recovers the right one from the log."""


class Guard:
    """Runs callbacks of the event loop. `fell` is done, with an exception, once one has raised."""

    def __init__(self, fell: asyncio.Future[None]) -> None:
        self.fell = fell
        self.closed = False
        """Nothing is run any more."""

    def __call__(self, callback: Callable[[], None]) -> None:
        """Run a callback. No peer can cause what raises here, and going on could give false answers, so the node stops.

        For an error of the machine, `fell` says what to do about it; any other is a mistake of ours.
        """
        if self.closed:
            return
        try:
            callback()
        except MACHINE_ERRORS as fault:
            self.fall(as_engine_error(fault))
        except Exception as mistake:  # noqa: BLE001 (whatever it is, the node cannot go on)
            self.fall(Fell("the server made a mistake and cannot go on; its log tells which"), mistake)

    def fall(self, why: Exception, mistake: Exception | None = None) -> None:
        if not self.fell.done():
            log.critical("the server cannot go on", extra={"why": str(why)}, exc_info=mistake)
            self.fell.set_exception(why)
