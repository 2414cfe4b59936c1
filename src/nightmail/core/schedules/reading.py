"""What an account may ask about its schedules: one, some by their serials, or a page of those in one state.

Knows:   the rows of one account.
Never:   changes a row, or shows content.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nightmail.core.rights import check_rights
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.answers import Said, ScheduleFate, SchedulesFound
from nightmail.model.effects import Answer
from nightmail.model.ids import account_of
from nightmail.model.records import SchedulesAsked
from nightmail.model.rows import Kept, Need
from nightmail.model.schedule_rows import (
    NO_STATE,
    PAGE_STATES,
    AccountSchedules,
    Schedule,
    SchedulePage,
    ScheduleState,
    id_number,
)

LISTED_MAX = 64
"""Schedules in one answer."""
PAGES_MAX = 16
"""Pages of states that one question looks through."""


class ScheduleSeen(Struct, frozen=True):
    serial: int
    schedule: Schedule
    """Only to be read."""


class ScheduleListing(Struct, frozen=True):
    schedules: list[ScheduleSeen]
    """Newest first."""
    before: int
    """Ask again with this; 0: there are no more. A listing may be short, or empty, and yet not be the last."""


# --- one --------------------------------------------------------------------------------------


def needs_one(state: ShardState, account: int, ident: str) -> list[Need]:
    missing: list[Need] = []
    number = id_number(ident)
    if not missing_pair(state.schedule_names, Kept.SCHEDULE_NAME, account, number, missing) and (
        name := state.schedule_names[account, number]
    ):
        missing_pair(state.schedules, Kept.SCHEDULE, account, name.serial, missing)
    return missing


def one(state: ShardState, account: int, ident: str) -> ScheduleSeen | None:
    name = state.schedule_names[account, id_number(ident)]
    if name is None or name.name != ident:
        return None
    return _seen(state, account, name.serial)


# --- some -------------------------------------------------------------------------------------


def needs_some(state: ShardState, account: int, serials: Sequence[int]) -> list[Need]:
    missing: list[Need] = []
    for serial in serials[:LISTED_MAX]:
        missing_pair(state.schedules, Kept.SCHEDULE, account, serial, missing)
    return missing


def some(state: ShardState, account: int, serials: Sequence[int]) -> list[ScheduleSeen]:
    """Those that are not forgotten. News of schedules (`PendingReceipt` by nobody) name serials."""
    found = (_seen(state, account, serial) for serial in serials[:LISTED_MAX])
    return [seen for seen in found if seen]


def needs_asked(state: ShardState, by: int, asked: SchedulesAsked) -> list[Need]:
    account = account_of(by)
    missing = needs_some(state, account, asked.serials)
    missing_row(state.accounts, Kept.ACCOUNT, account, missing)
    return missing


def step_asked(state: ShardState, by: int, via: int, asked: SchedulesAsked) -> None:
    """A device asks through the log: so the answer is never older than the news that made it ask."""
    account = account_of(by)
    said: Said | None = check_rights(by, state.accounts[account], account)
    if said is None:
        said = SchedulesFound(tuple(_fate(seen) for seen in some(state, account, asked.serials)))
    state.effects.append(Answer(via, said))


def _fate(seen: ScheduleSeen) -> ScheduleFate:
    s = seen.schedule
    return ScheduleFate(seen.serial, s.id, s.by, s.state, s.is_stale, s.deliver_at, s.error, s.n, s.at, s.group_seq)


# --- a page -----------------------------------------------------------------------------------


def needs_listing(state: ShardState, account: int, wanted: ScheduleState | None, before: int = 0) -> list[Need]:
    missing: list[Need] = []
    if missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing):
        return missing
    own = state.account_schedules[account] or AccountSchedules()
    for page in _pages(own, before):
        missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, page, missing)
    if not missing:
        for serial in _find(state, account, own, wanted, before)[0]:
            missing_pair(state.schedules, Kept.SCHEDULE, account, serial, missing)
    return missing


def listing(state: ShardState, account: int, wanted: ScheduleState | None, before: int = 0) -> ScheduleListing:
    """Schedules below the serial `before` (0: the newest) in one state, or in any."""
    own = state.account_schedules[account] or AccountSchedules()
    serials, further = _find(state, account, own, wanted, before)
    return ScheduleListing([seen for serial in serials if (seen := _seen(state, account, serial))], further)


def _pages(own: AccountSchedules, before: int) -> list[int]:
    newest = min(before - 1, own.last) if before else own.last
    if newest < own.first:
        return []
    pages = range(newest // PAGE_STATES, own.first // PAGE_STATES - 1, -1)
    return list(pages[:PAGES_MAX])


def _find(
    state: ShardState, account: int, own: AccountSchedules, wanted: ScheduleState | None, before: int
) -> tuple[list[int], int]:
    newest = min(before - 1, own.last) if before else own.last
    found: list[int] = []
    for page in _pages(own, before):
        states = (state.schedule_pages[account, page] or SchedulePage()).states
        for serial in range(min(newest, (page + 1) * PAGE_STATES - 1), max(own.first, page * PAGE_STATES) - 1, -1):
            present = states[serial % PAGE_STATES]
            if present == wanted if wanted else present != NO_STATE:
                if len(found) == LISTED_MAX:
                    return found, found[-1]
                found.append(serial)
        lowest = page * PAGE_STATES
        if lowest <= own.first:
            return found, 0
    pages = _pages(own, before)
    return found, pages[-1] * PAGE_STATES if pages else 0


def _seen(state: ShardState, account: int, serial: int) -> ScheduleSeen | None:
    schedule = state.schedules[account, serial]
    return ScheduleSeen(serial, schedule) if schedule else None


STEPS: Steps = {5: {SchedulesAsked: (needs_asked, step_asked)}}
