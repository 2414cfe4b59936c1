"""The webhook hears each change once, and again what it did not take."""

from __future__ import annotations

import asyncio
import json

from nightmail.server.alerts.conditions import Level
from nightmail.server.alerts.post import AlertPost
from nightmail.server.alerts.table import Alert
from nightmail.server.alerts.watch import AlertWatch

ALERT = Alert("TooMuch", "warning", Level("x", ">", 5), 60, "There is too much.")
OTHER = Alert("AlsoTooMuch", "info", Level("x", ">", 5), 0, "There is too much, too.")
REPEAT_MS = 3_600_000


class Story:
    """A webhook, and time that passes."""

    def __init__(self, silenced: str = "AlsoTooMuch") -> None:
        self.heard: list[tuple[str, str]] = []
        """What it was told, and under which id."""
        self.takes = True
        self.now = 0
        self.watch = AlertWatch((ALERT, OTHER))
        self._post = AlertPost("here", self._take, REPEAT_MS, frozenset({silenced}))

    async def _take(self, body: bytes, ident: str) -> str:
        self.heard.append((json.loads(body)["type"], ident))
        return "sent" if self.takes else "failed"

    def look(self, value: float, after_ms: int = 15_000) -> list[tuple[str, str]]:
        """What the webhook hears at this look."""
        self.now += after_ms
        self.watch.look({"x": value}, self.now, self.now)
        before = len(self.heard)
        asyncio.run(self._post.tell(self.watch.standings, self.now))
        return self.heard[before:]


FIRING, RESOLVED = "alert.firing", "alert.resolved"


def test_a_change_is_told_once() -> None:
    story = Story()
    assert [story.look(value) for value in (1, 9, 9, 9, 9, 9, 9, 1, 1)] == [
        [], [], [], [], [], [(FIRING, "alert_TooMuch-90000-0")], [], [(RESOLVED, "alert_TooMuch-90000-end")], [],
    ]  # fmt: skip


def test_what_ends_before_it_fires_is_not_told() -> None:
    story = Story()
    assert [story.look(value) for value in (9, 9, 9, 1, 9, 9, 1)] == [[]] * 7


def test_what_was_not_taken_is_told_again_under_the_same_id() -> None:
    story = Story()
    story.look(9)
    story.takes = False
    first = story.look(9, 60_000)
    assert first == [(FIRING, "alert_TooMuch-75000-0")]
    assert story.look(9) == first
    story.takes = True
    assert story.look(9) == first
    assert story.look(9) == []


def test_an_alert_that_goes_on_is_told_again_after_a_while_under_another_id() -> None:
    story = Story()
    story.look(9)
    story.look(9, 60_000)
    assert story.look(9, REPEAT_MS - 1) == []
    assert story.look(9, 1) == [(FIRING, "alert_TooMuch-75000-1")]


def test_what_has_ended_before_anybody_took_it_is_not_told() -> None:
    story = Story()
    story.takes = False
    story.look(9)
    story.look(9, 60_000)
    story.takes = True
    assert story.look(1) == []


def test_what_the_operator_silenced_is_not_told() -> None:
    story = Story(silenced="TooMuch")
    assert story.look(9) == [(FIRING, "alert_AlsoTooMuch-15000-0")]
    assert story.look(9, 120_000) == []
