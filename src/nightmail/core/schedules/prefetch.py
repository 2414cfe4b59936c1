"""The rows of many schedules that are due, named together: each would be asked for by itself otherwise.

Knows:   what firing a schedule looks at.
Never:   decides anything: a row that is not named here is asked for by the record that needs it.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.ids import account_of, shard_of
from nightmail.model.rows import DueFor, DueItem, Kept, Need, RowKey
from nightmail.model.schedule_rows import PAGE_STATES, PairContent, PairTarget, Schedule

SCHEDULE = DueFor.SCHEDULE


def needs_due(state: ShardState, items: Iterable[DueItem], missing: list[Need]) -> None:
    """First the schedules and what stands under their accounts, then what they are for.

    Where a row that is asked for last is in memory, the others are, too, most of the time: then nobody looks for them.
    """
    schedules, streams = state.schedules.rows, state.streams.rows
    wanted: dict[Need, None] = {}
    """Many schedules of one account need the same rows."""
    for item in items:
        if item.what is not SCHEDULE:
            continue
        account, serial = key = item.device, item.seq
        if key not in schedules:
            here: list[Need] = [RowKey(Kept.SCHEDULE, account, serial)]
            missing_row(state.accounts, Kept.ACCOUNT, account, here)
            missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, here)
            missing_pair(state.schedule_pages, Kept.SCHEDULE_PAGE, account, serial // PAGE_STATES, here)
            wanted.update(dict.fromkeys(here))
        elif (schedule := schedules[key]) is not None and type(schedule.target) is PairTarget:
            to = schedule.target.to
            is_here = state.shards == 1 or shard_of(to, state.shards) == state.index
            if is_here and (schedule.by, to) not in streams and schedule.state.is_open:
                wanted.update(dict.fromkeys(_needs_firing(state, account, to, schedule)))
    missing += wanted


def _needs_firing(state: ShardState, account: int, to: int, schedule: Schedule) -> list[Need]:
    missing: list[Need] = [RowKey(Kept.STREAM, schedule.by, to)]
    for device in row.devices if (row := state.accounts.rows.get(account)) else ():
        missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    missing_row(state.accounts, Kept.ACCOUNT, to, missing)
    for envelope in schedule.content.envelopes if isinstance(schedule.content, PairContent) else ():
        if account_of(envelope.device) == to:
            missing_row(state.mailboxes, Kept.MAILBOX, envelope.device, missing)
    return missing
