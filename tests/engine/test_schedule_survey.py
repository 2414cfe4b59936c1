"""All schedules of a node, in pieces, without reading more than the bounds allow."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from nightmail.engine import schedule_survey
from nightmail.engine.ports import EngineError
from nightmail.engine.schedule_survey import ScheduleSurvey
from nightmail.model.rows import Kept
from nightmail.model.schedule_rows import CallTarget, Schedule, SchedulePage, ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyedSchedule, SurveyPage
from nightmail.model.words import Kind

PENDING, FAILED = ScheduleState.PENDING, ScheduleState.FAILED


def a_schedule(serial: int, state: ScheduleState) -> Schedule:
    return Schedule(f"1:1:{serial}:x", 0, b"", Kind.TEXT, 0, CallTarget("http://x/"), 1, 2, 3, None, state)


class ListedRows:
    """Rows in a list, in the order of their keys."""

    def __init__(self, rows: dict[tuple[Kept, int, int], bytes]) -> None:
        self.rows, self.fails = rows, False

    def scan(self, kind: Kept, after: tuple[int, int], limit: int) -> list[tuple[int, int, bytes]]:
        if self.fails:
            raise EngineError("the disk fails")
        found = [(a, b, data) for (of, a, b), data in sorted(self.rows.items()) if of is kind and (a, b) > after]
        return found[:limit]


def at_once(work: Callable[[], None]) -> None:
    work()


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> ListedRows:
    """Two accounts; every third schedule has failed. Few rows are read at once, and few are shown."""
    monkeypatch.setattr(schedule_survey, "PIECE", 4)
    monkeypatch.setattr(schedule_survey, "SHOWN_MAX", 3)
    monkeypatch.setattr(schedule_survey, "LOOKED_MAX", 8)
    made: dict[tuple[Kept, int, int], bytes] = {}
    for account in (5, 7):
        page = SchedulePage()
        for serial in range(1, 11):
            state = PENDING if serial % 3 else FAILED
            made[Kept.SCHEDULE, account, serial] = msgspec.msgpack.encode(a_schedule(serial, state))
            page.states[serial] = state
        made[Kept.SCHEDULE_PAGE, account, 0] = msgspec.msgpack.encode(page)
    return ListedRows(made)


def pages(rows: ListedRows, state: ScheduleState | None) -> list[list[tuple[int, int]]]:
    """(account, serial) of each schedule, page by page."""
    survey, found, after = ScheduleSurvey(rows, at_once, at_once), list[SurveyPage | None](), (0, 0)
    while True:
        survey.page(state, after, found.append)
        last = found[-1]
        assert last is not None
        after = last.after
        if not any(after):
            return [[(each.account, each.serial) for each in page.schedules] for page in found if page]


def test_states_are_counted_over_all_accounts(rows: ListedRows) -> None:
    found: list[ScheduleCounts | None] = []
    ScheduleSurvey(rows, at_once, at_once).count(found.append)
    assert found == [ScheduleCounts({**dict.fromkeys(ScheduleState, 0), PENDING: 14, FAILED: 6}, is_complete=True)]


def test_more_pages_than_are_counted_are_told_of(rows: ListedRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_survey, "PAGES_COUNTED", 1)
    found: list[ScheduleCounts | None] = []
    ScheduleSurvey(rows, at_once, at_once).count(found.append)
    assert found == [ScheduleCounts({**dict.fromkeys(ScheduleState, 0), PENDING: 7, FAILED: 3}, is_complete=False)]


@pytest.mark.parametrize("state", [None, PENDING, FAILED, ScheduleState.CANCELLED])
def test_every_schedule_of_a_state_is_on_one_page(rows: ListedRows, state: ScheduleState | None) -> None:
    every = [(account, serial) for account in (5, 7) for serial in range(1, 11)]
    states = {True: FAILED, False: PENDING}
    wanted = [key for key in every if state in (None, states[key[1] % 3 == 0])]
    found = pages(rows, state)
    assert [key for page in found for key in page] == wanted
    assert max(map(len, found)) <= 3


def test_a_schedule_is_shown_as_it_is_stored(rows: ListedRows) -> None:
    found: list[SurveyPage | None] = []
    ScheduleSurvey(rows, at_once, at_once).page(FAILED, (5, 6), found.append)
    first = SurveyedSchedule(5, 9, a_schedule(9, FAILED))
    assert found == [SurveyPage([first, SurveyedSchedule(7, 3, a_schedule(3, FAILED))], (7, 4))]


def test_a_failing_disk_is_an_answer(rows: ListedRows) -> None:
    rows.fails = True
    found: list[object] = []
    survey = ScheduleSurvey(rows, at_once, at_once)
    survey.count(found.append)
    survey.page(None, (0, 0), found.append)
    assert found == [None, None]
