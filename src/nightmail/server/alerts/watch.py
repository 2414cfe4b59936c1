"""Which alerts are firing, and since when.

Knows:   the table, what was sampled in the longest of its windows, and each alert's state.
Touches: nothing: it is handed the samples, and both times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .conditions import History, Samples, is_met
from .table import ALERTS, Alert

State: TypeAlias = Literal["ok", "pending", "firing"]
"""pending: the condition is met, but not for long enough yet."""


class AlertStanding(Struct):
    """One alert, as it stands."""

    alert: Alert
    state: State = "ok"
    since: int = 0
    """When it came into this state, by the wall clock; 0: it has never left it."""
    value: float | None = None
    """What is compared with the threshold; None: there is too little to judge."""
    met_from: int = 0
    """Since when its condition is met, by time that never jumps."""


class AlertWatch:
    def __init__(self, alerts: Sequence[Alert] = ALERTS) -> None:
        self.standings = [AlertStanding(alert) for alert in alerts]
        self.looked_at = 0
        """When it was last looked, by the wall clock; 0: not yet."""
        self.series = frozenset(series for alert in alerts for series in alert.condition.series())
        self._history = History(1000 * max(alert.condition.window_s for alert in alerts))

    def look(self, samples: Samples, now: int, at: int) -> None:
        """Judge every alert. `now` never jumps; `at` is the wall clock."""
        self._history.add(now, {series: samples[series] for series in self.series if series in samples})
        self.looked_at = at
        for standing in self.standings:
            self._judge(standing, now, at)

    def _judge(self, standing: AlertStanding, now: int, at: int) -> None:
        condition = standing.alert.condition
        standing.value = condition.value(self._history)
        if not is_met(condition, standing.value):
            state: State = "ok"
        elif standing.state == "ok":
            standing.met_from = now
            state = "pending" if standing.alert.for_s else "firing"
        else:
            state = "firing" if now - standing.met_from >= standing.alert.for_s * 1000 else standing.state
        if state != standing.state:
            standing.state, standing.since = state, at
