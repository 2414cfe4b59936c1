"""The outlet of a node by default: a thread with an event loop of its own.

So a receiver that hangs, a slow handshake or a name server holds up no message: the node's loop only hands calls over,
and hears how they ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import uvloop

from nightmail.engine.ports import Post

from .caller import HttpCaller
from .calling import Calling
from .outcomes import CallResult
from .ports import Ended, WebhookCall


class ThreadOutlet:
    """An `Outlet`. `make_caller` is called on the thread, at the first call."""

    def __init__(self, make_caller: Callable[[], HttpCaller], post: Post) -> None:
        self._make_caller, self._post = make_caller, post
        self._tell: Ended | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calling: Calling | None = None

    def attend(self, ended: Ended) -> None:
        self._tell = ended

    def begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        if self._loop is None:
            # Most servers never call anybody: they need no thread.
            self._loop = uvloop.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="outlet", daemon=True)
            self._thread.start()
        self._loop.call_soon_threadsafe(self._begin, list(calls))

    @property
    def is_ready(self) -> bool:
        return True

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    # --- on the thread ------------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            if self._calling:
                loop.run_until_complete(self._calling.close())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        if self._calling is None:
            self._calling = Calling(self._make_caller(), self._ended)
        self._calling.begin(calls)

    def _ended(self, ended: Sequence[tuple[int, CallResult]]) -> None:
        assert self._tell is not None
        tell = self._tell
        self._post(lambda: tell(ended))
