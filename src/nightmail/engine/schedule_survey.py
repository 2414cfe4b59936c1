"""All scheduled messages of a node, for its operator: how many are in each state, and a page of them.

Knows:   the rows as of the newest checkpoint. What is newer than that is not seen yet.
Touches: rows, by reading them on another thread than the loop's.
Never:   reads content, or more rows for one question than its bounds allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import msgspec

from nightmail.model.rows import Kept
from nightmail.model.schedule_rows import NO_STATE, Schedule, SchedulePage, ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyedSchedule, SurveyPage

from .ports import EngineError, Post
from .worker import Execute

T = TypeVar("T")

PAGES_COUNTED = 8_192
"""Two million schedules. Beyond them the counts are those of the first."""
LOOKED_MAX = 4_096
"""Schedules that one question for a page looks at."""
SHOWN_MAX = 64
PIECE = 256
"""Rows that are read at once."""

_decode_page = msgspec.msgpack.Decoder(SchedulePage).decode
_decode_schedule = msgspec.msgpack.Decoder(Schedule).decode


class ScannedRows(Protocol):
    def scan(self, kind: Kept, after: tuple[int, int], limit: int) -> list[tuple[int, int, bytes]]:
        """Rows of one kind behind a key, in the order of their keys. Raises EngineError."""
        ...


class ScheduleSurvey:
    def __init__(self, rows: ScannedRows, execute: Execute, post: Post) -> None:
        self._rows, self._execute, self._post = rows, execute, post

    def count(self, then: Callable[[ScheduleCounts | None], None]) -> None:
        """None: it could not be read."""

        def counted() -> ScheduleCounts:
            found: Counter[int] = Counter()
            pages = 0
            for _, _, data in self._scan(Kept.SCHEDULE_PAGE, (0, 0), PAGES_COUNTED):
                found.update(_decode_page(data).states)
                pages += 1
            found.pop(NO_STATE, None)
            by_state = {state: found[state] for state in ScheduleState}
            return ScheduleCounts(by_state, is_complete=pages < PAGES_COUNTED)

        self._ask(counted, then)

    def page(
        self, wanted: ScheduleState | None, after: tuple[int, int], then: Callable[[SurveyPage | None], None]
    ) -> None:
        """Those in one state, or in any, behind the key `after`."""

        def looked() -> SurveyPage:
            shown: list[SurveyedSchedule] = []
            last, looked_at = after, 0
            for account, serial, data in self._scan(Kept.SCHEDULE, after, LOOKED_MAX):
                last, looked_at = (account, serial), looked_at + 1
                schedule = _decode_schedule(data)
                if wanted is None or schedule.state is wanted:
                    shown.append(SurveyedSchedule(account, serial, schedule))
                if len(shown) == SHOWN_MAX:
                    break
            is_last = looked_at < LOOKED_MAX and len(shown) < SHOWN_MAX
            return SurveyPage(shown, (0, 0) if is_last else last)

        self._ask(looked, then)

    def _scan(self, kind: Kept, after: tuple[int, int], most: int) -> Iterator[tuple[int, int, bytes]]:
        while most > 0:
            found = self._rows.scan(kind, after, min(PIECE, most))
            yield from found
            if len(found) < PIECE:
                return
            after, most = (found[-1][0], found[-1][1]), most - len(found)

    def _ask(self, look: Callable[[], T], then: Callable[[T | None], None]) -> None:
        def answer() -> None:
            try:
                found = look()
            except EngineError:
                self._post(lambda: then(None))
            else:
                self._post(lambda: then(found))

        self._execute(answer)
