"""Alerts told to a webhook of the operator's: when one begins to fire, now and then while it does, when it has ended.

Knows:   what the webhook has taken.
Touches: the webhook.
Never:   tells the same twice, unless nobody took it or `repeat_ms` is over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from nightmail.api.times import rfc3339

from .watch import AlertStanding

Post = Callable[[bytes, str], Awaitable[str]]
"""(body, id) → `sent`, if it was taken. A repeat has the same id."""


class AlertTold(Struct, frozen=True):
    """What the webhook is told."""

    type: Literal["alert.firing", "alert.resolved"]
    node: str
    name: str
    severity: str
    since: int
    """When it began to fire, or ended, in milliseconds since 1970."""
    since_rfc3339: str
    value: float | None
    threshold: float
    text: str
    runbook: str


class _Told(Struct):
    since: int
    """Which firing it was: when it began."""
    at: int
    """When, by time that never jumps."""


class AlertPost:
    """Call `tell` after each look. One call at a time: the next look comes soon enough."""

    def __init__(self, node: str, post: Post, repeat_ms: int, silenced: frozenset[str]) -> None:
        self._node, self._post, self._repeat_ms, self._silenced = node, post, repeat_ms, silenced
        self._told: dict[str, _Told] = {}
        """Alert → the firing that the webhook knows of."""
        self._is_telling = False

    async def tell(self, standings: Sequence[AlertStanding], now: int) -> None:
        if self._is_telling:
            return
        self._is_telling = True
        try:
            for standing in standings:
                if standing.alert.name not in self._silenced:
                    await self._tell_one(standing, now)
        finally:
            self._is_telling = False

    async def _tell_one(self, standing: AlertStanding, now: int) -> None:
        name = standing.alert.name
        told = self._told.get(name)
        if standing.state == "firing":
            since = standing.since
            if told is None or told.since != since or now - told.at >= self._repeat_ms:
                again = (now - told.at) // self._repeat_ms if told and told.since == since else 0
                if await self._say("alert.firing", standing, since, f"{name}-{since}-{again}"):
                    self._told[name] = _Told(since, now)
        elif told is not None and await self._say(
            "alert.resolved", standing, standing.since, f"{name}-{told.since}-end"
        ):
            del self._told[name]

    async def _say(
        self, kind: Literal["alert.firing", "alert.resolved"], standing: AlertStanding, since: int, ident: str
    ) -> bool:
        alert = standing.alert
        told = AlertTold(
            kind, self._node, alert.name, alert.severity, since, rfc3339(since), standing.value,
            alert.condition.threshold, alert.text, alert.runbook,
        )  # fmt: skip
        return await self._post(msgspec.json.encode(told), f"alert_{ident}") == "sent"
