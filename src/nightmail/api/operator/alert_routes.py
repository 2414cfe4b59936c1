"""What the operator asks about alerts: how each of them stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from starlette.requests import Request

from nightmail.api.access import Access
from nightmail.api.route import ApiRoute
from nightmail.api.times import Milliseconds, Time


class AlertShown(Struct, frozen=True):
    """One alert, as it stands."""

    name: str
    severity: Literal["critical", "warning", "info"]
    state: Literal["ok", "pending", "firing"]
    """pending: its condition is met, but not for long enough yet."""
    since: Milliseconds | None
    """When it came into this state; null: it has been in it since the server began."""
    since_rfc3339: Time | None
    value: float | None
    """What is compared with the threshold; null: there is too little to judge."""
    compares: Literal[">", ">=", "<", "==", "!="]
    """How a value compares with the threshold that is to be told of."""
    threshold: float
    text: str
    """What it means."""
    runbook: str
    """Where it is written what to do."""


class AlertsShown(Struct, frozen=True):
    looked_at: Milliseconds
    """When they were last judged."""
    looked_at_rfc3339: Time
    alerts: list[AlertShown]


class AlertRoutes:
    def __init__(self, access: Access, alerts: Callable[[], AlertsShown]) -> None:
        self._access, self._alerts = access, alerts

    async def alerts(self, request: Request) -> AlertsShown:
        self._access.operator(request)
        return self._alerts()

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET", "/v1/operator/alerts", "operator", "How each alert stands", self.alerts, None, AlertsShown,
            ),
        ]  # fmt: skip
