"""Which calls begin when: the one way out of the node, for codes and for scheduled messages alike.

Knows:   the calls that wait and that are under way, and how calls have ended so far.
Touches: the outlet, from the node's own thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from nightmail.model.records.schedules import CallOutcome

from . import outcomes
from .addresses import BadTarget, origin_of
from .outcomes import CallResult
from .places import PlaceLimits, Places
from .ports import Outlet, WebhookCall

Done: TypeAlias = Callable[[CallResult], None]


class _Waiting(Struct, frozen=True):
    call: WebhookCall
    done: Done


class _UnderWay(Struct, frozen=True):
    origin: str
    was_proven: bool
    done: Done


class Dispatch:
    """Used on the node's thread. Tell it the time with `tick`, at least once a second."""

    def __init__(self, outlet: Outlet, limits: PlaceLimits, pace: Callable[[], int]) -> None:
        self._outlet, self._pace, self._patience_ms = outlet, pace, limits.unproven_wait_ms
        self._not_ready_at = -limits.unproven_wait_ms
        self.places: Places[_Waiting] = Places(limits)
        self._under_way: dict[int, _UnderWay] = {}
        self._next = 0
        self.ended: Counter[CallOutcome] = Counter()
        outlet.attend(self._on_ended)

    def submit(self, call: WebhookCall, done: Done) -> None:
        """Make a call when there is a place for it. `done` is told once how it ended."""
        try:
            origin = origin_of(call.url)
        except BadTarget:
            self._end(done, outcomes.BAD_TARGET)
            return
        self.places.add(origin, _Waiting(call, done), self._pace())
        self._hand_out()

    def tick(self) -> None:
        now = self._pace()
        if not self._outlet.is_ready:
            self._not_ready_at = now
        # Where nobody makes calls, no receiver is to blame for those that wait.
        if not self.places.waiting or now - self._not_ready_at < self._patience_ms:
            return
        for waiting in list(self.places.overdue(now)):
            self._end(waiting.done, outcomes.NO_PLACE)
        self._hand_out()

    def _hand_out(self) -> None:
        """Begin what may begin."""
        ready: list[tuple[int, WebhookCall]] = []
        for origin, was_proven, waiting in self.places.take():
            self._next += 1
            self._under_way[self._next] = _UnderWay(origin, was_proven, waiting.done)
            ready.append((self._next, waiting.call))
        if ready:
            self._outlet.begin(ready)

    def _on_ended(self, ended: Sequence[tuple[int, CallResult]]) -> None:
        for number, result in ended:
            under_way = self._under_way.pop(number)
            self.places.leave(under_way.origin, was_proven=under_way.was_proven, answered=result.answered)
            self._end(under_way.done, result)
        self._hand_out()

    def _end(self, done: Done, result: CallResult) -> None:
        self.ended[result.outcome] += 1
        done(result)
