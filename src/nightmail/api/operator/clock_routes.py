"""What the operator asks and commands about time.

Knows:   that the time is set back only to the machine's clock, and only while that is far behind.
Touches: the desk.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from nightmail.api import schemas
from nightmail.api.access import Access
from nightmail.api.desk_client import DeskClient
from nightmail.api.problems import problem
from nightmail.api.route import ApiRoute
from nightmail.api.times import rfc3339
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.records import ClockSetBack


class ClockRoutes:
    def __init__(self, desk: DeskClient, access: Access, clock_seen: Callable[[], ClockSeen]) -> None:
        self._desk, self._access, self._clock_seen = desk, access, clock_seen

    async def show(self, request: Request) -> schemas.ClockShown:
        self._access.operator(request)
        return self._shown()

    async def set_back(self, request: Request) -> schemas.ClockShown:
        """Only to the machine's clock: a time that somebody types could be wrong, too."""
        self._access.operator(request)
        seen = self._clock_seen()
        if seen.state is not ClockState.BEHIND:
            raise problem("clock_not_behind", "the server's time is not far ahead of the machine's clock")
        await self._desk.command(ClockSetBack(seen.wall_ms, seen.time_ms))
        return self._shown()

    def _shown(self) -> schemas.ClockShown:
        seen = self._clock_seen()
        clock, time = rfc3339(seen.wall_ms), rfc3339(seen.time_ms)
        return schemas.ClockShown(seen.state.value, seen.wall_ms, clock, seen.time_ms, time)

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET", "/v1/clock", "operator", "The machine's clock, and the time that the server goes by", self.show,
                None, schemas.ClockShown,
            ),
            ApiRoute(
                "POST", "/v1/clock/set-back", "operator", "Set the server's time back to the machine's clock",
                self.set_back, None, schemas.ClockShown, 200, ("clock_not_behind",),
            ),
        ]  # fmt: skip
