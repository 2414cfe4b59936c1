"""The JSON bodies of what the operator sees of a node. `schemas.py` says what holds for all of them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nightmail.api.schedule_schemas import ScheduleShown, ScheduleStateName
from nightmail.api.times import Milliseconds, Time

SpanName = Literal["15m", "6h", "24h", "7d"]


class HistoryShown(Struct, frozen=True):
    """Samples, oldest first. The server holds them in memory: a restart begins with none."""

    last: int
    """The number of the newest sample; asked with `after=last`, the next question brings only newer ones."""
    times: list[int]
    """In milliseconds since 1970, by the machine's clock."""
    columns: dict[str, list[float | None]]
    """A name of `Figures` → one value for each of the times; null: nothing was measured."""


class TotalsShown(Struct, frozen=True):
    """Since the process started."""

    accepted: int
    delivered: int
    failed: int
    refused: int
    """Connections and requests that came too often."""


class OverviewShown(Struct, frozen=True):
    """What an operator wants to know of a node at a glance."""

    node: str
    version: str
    at: Milliseconds
    at_rfc3339: Time
    started_at: Milliseconds
    started_at_rfc3339: Time
    ready: bool
    not_ready: list[str]
    """Why no messages are taken."""
    totals: TotalsShown
    dead_letters: int
    """Those that nobody has settled."""
    recent: HistoryShown
    """A sample for each second of the last 15 minutes, or for those after the number that was asked with."""


class ClockBrief(Struct, frozen=True):
    state: Literal["believed", "ahead", "behind"]
    ahead_ms: int
    """The machine's clock minus the time that the server goes by."""


class StorageShown(Struct, frozen=True):
    """The health of the data folder."""

    folder: str
    disk_free_bytes: int
    disk_total_bytes: int
    tight: bool
    """Space has run out: only acknowledgements are taken."""
    why_tight: str
    log_bytes: int
    log_segments: int
    rows_bytes: int
    rows_in_memory: int
    offset: int
    """The newest record that is folded."""
    pointer: int
    """The newest record that a checkpoint has."""
    unsaved_rows: int
    """Rows and lines that only the log has."""
    unsaved_bytes: int
    checkpoints: int
    """Since the process started."""
    checkpoint_at: Milliseconds
    """When the newest one was taken; 0: none yet."""
    checkpoint_ms: int
    """How long the newest one took."""
    commits_failed: int
    troubles: int
    """Times that storage kept failing."""
    records_poisoned: int
    fold: int
    checked_at: Milliseconds
    """When the whole folder was looked at, before this start."""
    checked_ms: int
    clock: ClockBrief


class ScheduleCountsShown(Struct, frozen=True):
    """How many scheduled messages are in each state, as of the newest checkpoint."""

    counts: dict[ScheduleStateName, int]
    complete: bool
    """False: there are more than were counted."""


class AccountScheduleShown(Struct, frozen=True):
    account: str
    handle: str
    """Empty: the account is closed."""
    schedule: ScheduleShown


class AllSchedulesShown(Struct, frozen=True, omit_defaults=True):
    """Of all accounts, as of the newest checkpoint, in the order of their accounts. Never with content."""

    schedules: list[AccountScheduleShown]
    """A page may be short, or empty, and yet not be the last."""
    next_page: str = ""
    """Left out: this is the last one."""
