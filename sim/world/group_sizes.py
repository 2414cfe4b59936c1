"""Groups in a small world: what a server does with thousands of members or once a minute happens here, too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

from nightmail.core.groups import cursors, log, missed
from nightmail.gateway import session
from nightmail.gateway.greeting import Shared, welcome
from nightmail.model import roster
from nightmail.wire.items import Welcome

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
    """Likewise; and devices are told that they may ask about groups, although there is no presence in these worlds."""

    def with_groups(shared: Shared, *, with_presence: bool) -> Welcome:
        del with_presence
        return welcome(shared, with_presence=True)

    with (
        small_pages(),
        mock.patch.object(session, "welcome", with_groups),
        mock.patch.object(roster, "TIMER_MS_MIN", 1),
    ):
        yield
