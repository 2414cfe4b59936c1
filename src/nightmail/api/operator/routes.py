"""The operator's routes: the node at a glance, its history, its storage, and the schedules of all accounts.

Knows:   how a question is bounded.
Touches: the node, by `OperatorView`.
Never:   shows a key, a token or what a message says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, TypeVar, get_args

from starlette.requests import Request

from nightmail.api.access import Access
from nightmail.api.desk_client import DeskClient
from nightmail.api.problems import malformed, problem, refused
from nightmail.api.queries import is_number, number_asked
from nightmail.api.route import ApiRoute
from nightmail.api.schedule_routes import state_asked
from nightmail.api.schedule_schemas import STATE_NAMES, schedule_shown
from nightmail.engine.ports import ScheduleSeen
from nightmail.model.refusals import Unavailable
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyPage

from .schemas import (
    AccountScheduleShown,
    AllSchedulesShown,
    HistoryShown,
    OverviewShown,
    ScheduleCountsShown,
    SpanName,
    StorageShown,
)

T = TypeVar("T")

SPANS: tuple[SpanName, ...] = get_args(SpanName)
ACCOUNT = re.compile(r"[0-9a-f]{1,15}\Z")
SURVEYS = 4
"""Questions about all schedules that may wait; each reads from the disk."""


class OperatorView(Protocol):
    """What the node says of itself."""

    def overview(self, after: int) -> OverviewShown: ...

    def history(self, span: SpanName) -> HistoryShown: ...

    def storage(self) -> StorageShown: ...

    def count_schedules(self, then: Callable[[ScheduleCounts | None], None]) -> None: ...

    def survey_schedules(
        self, state: ScheduleState | None, after: tuple[int, int], then: Callable[[SurveyPage | None], None]
    ) -> None: ...


class OperatorRoutes:
    def __init__(self, desk: DeskClient, access: Access, view: OperatorView) -> None:
        self._desk, self._access, self._view = desk, access, view
        self._surveys = 0

    async def overview(self, request: Request) -> OverviewShown:
        self._access.operator(request)
        return self._view.overview(number_asked(request, "after", "after is the number that `last` said"))

    async def history(self, request: Request) -> HistoryShown:
        self._access.operator(request)
        wanted = request.query_params.get("span", SPANS[0])
        for span in SPANS:
            if span == wanted:
                return self._view.history(span)
        raise malformed(f"span is one of {', '.join(SPANS)}")

    async def storage(self, request: Request) -> StorageShown:
        self._access.operator(request)
        return self._view.storage()

    async def count_schedules(self, request: Request) -> ScheduleCountsShown:
        self._access.operator(request)
        found = await self._survey(self._view.count_schedules)
        return ScheduleCountsShown(
            {STATE_NAMES[state]: count for state, count in found.by_state.items()}, found.is_complete
        )

    async def all_schedules(self, request: Request) -> AllSchedulesShown:
        self._access.operator(request)
        state, after = state_asked(request), _page(request)

        def ask(then: Callable[[SurveyPage | None], None]) -> None:
            self._view.survey_schedules(state, after, then)

        found = await self._survey(ask)
        handles = {each.account: "" for each in found.schedules}
        for account in handles:
            handles[account] = await self._desk.account(account, lambda row: row.handle) or ""
        shown = [
            AccountScheduleShown(
                f"{each.account:x}", handles[each.account], schedule_shown(ScheduleSeen(each.serial, each.schedule))
            )
            for each in found.schedules
        ]
        return AllSchedulesShown(shown, f"{found.after[0]:x}.{found.after[1]}" if any(found.after) else "")

    async def _survey(self, ask: Callable[[Callable[[T | None], None]], None]) -> T:
        if self._surveys >= SURVEYS:
            raise problem("not_ready", "too many ask for all schedules at the same time", retry_s=1)

        def counted(then: Callable[[T | None], None]) -> None:
            def answered(found: T | None) -> None:
                self._surveys -= 1
                then(found)

            self._surveys += 1
            ask(answered)

        if (found := await self._desk.look(counted)) is None:
            raise refused(Unavailable())
        return found

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET", "/v1/operator/overview", "operator", "The node at a glance, with its last 15 minutes",
                self.overview, None, OverviewShown, query=("after",),
            ),
            ApiRoute(
                "GET", "/v1/operator/history", "operator", "The node's figures over up to a week", self.history, None,
                HistoryShown, query=("span",),
            ),
            ApiRoute(
                "GET", "/v1/operator/storage", "operator", "The health of the data folder", self.storage, None,
                StorageShown,
            ),
            ApiRoute(
                "GET", "/v1/operator/schedules/counts", "operator", "Scheduled messages of all accounts, by state",
                self.count_schedules, None, ScheduleCountsShown, 200, ("not_ready",),
            ),
            ApiRoute(
                "GET", "/v1/operator/schedules", "operator", "Scheduled messages of all accounts, without content",
                self.all_schedules, None, AllSchedulesShown, 200, ("not_ready",), query=("state", "page"),
            ),
        ]  # fmt: skip


def _page(request: Request) -> tuple[int, int]:
    """(account, serial): what the page before ended with."""
    account, dot, serial = (request.query_params.get("page", "") or "0.0").partition(".")
    if not (dot and ACCOUNT.match(account) and is_number(serial)):
        raise malformed("page is what next_page said")
    return int(account, 16), int(serial)
