"""Rows that several records of groups need."""

from __future__ import annotations

from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.rows import Kept, Need


def needs_roster(state: ShardState, group: int, missing: list[Need]) -> None:
    missing_row(state.groups, Kept.GROUP, group, missing)
    missing_row(state.rosters, Kept.ROSTER, group, missing)


def needs_member(state: ShardState, group: int, account: int, missing: list[Need]) -> None:
    missing_pair(state.members, Kept.MEMBER, group, account, missing)
