"""Groups in a small world: what a server does with thousands of members or once a minute happens here, too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

from nightmail.core.groups import cursors, log, missed
from nightmail.model import roster

SWEEP_MS = 500
"""A day here has seconds: the logs of groups are looked through more often."""
PAGE = 2
"""Members, or entries, that are looked at in one step: a world has few of either."""


@contextmanager
def small_pages() -> Generator[None]:
    with (
        mock.patch.object(log, "SWEEP_MS", SWEEP_MS),
        mock.patch.object(cursors, "PAGE", PAGE),
        mock.patch.object(missed, "PAGE", PAGE),
    ):
        yield


@contextmanager
def a_server_with_groups() -> Generator[None]:
    """Likewise; and timers may be short."""
    with small_pages(), mock.patch.object(roster, "TIMER_MS_MIN", 1):
        yield
