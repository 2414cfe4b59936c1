"""An account's groups, on the account's shard: may it be added, and which devices do they know of?

Knows:   the account, and the groups that it is in.
Touches: the row of its groups, and the due rows; through `tell`, the groups' shards.

A group must know its members' devices, so it is told of every change. An account whose devices change all the time
would keep every author of its groups busy: beyond `relistings` in an hour, what has changed is told at its end, once.
Nothing is refused for that, because a stolen device must go at any time.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.due import HOUR_MS
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.group_rows import AccountGroups
from nightmail.model.records import MemberAnswered, MemberAsked, MemberGone, MemberListed, Relisted
from nightmail.model.rows import Account, DueFor, DueItem, Kept, Need
from nightmail.model.words import Lane

# --- joining and leaving ----------------------------------------------------------------------


def needs_groups(state: ShardState, _by: int, body: MemberAsked | MemberGone) -> list[Need]:
    missing: list[Need] = []
    _needs_groups(state, body.account, missing)
    return missing


def _needs_groups(state: ShardState, account: int, missing: list[Need]) -> None:
    missing_row(state.accounts, Kept.ACCOUNT, account, missing)
    missing_row(state.account_groups, Kept.ACCOUNT_GROUPS, account, missing)


def step_asked(state: ShardState, _by: int, _via: int, asked: MemberAsked) -> None:
    number, group = asked.account, asked.group
    account = state.accounts[number]
    mine = state.account_groups[number] or AccountGroups()
    joins = account is not None and _may_join(state, account, mine, asked)
    revision, devices = (account.revision, tuple(account.listed)) if account is not None and joins else (0, ())
    if joins:
        if not mine.groups:
            mine.told = revision
        mine.groups[group] = asked.ask
        state.account_groups.put(number, mine, state.offset)
    state.tell(group, MemberAnswered(group, number, asked.ask, joins, revision, devices, asked.adder))


def _may_join(state: ShardState, account: Account, mine: AccountGroups, asked: MemberAsked) -> bool:
    if account.closed or asked.adder in account.blocked:
        return False
    return asked.group in mine.groups or len(mine.groups) < state.shard.limits.account_groups


def step_gone(state: ShardState, _by: int, _via: int, gone: MemberGone) -> None:
    """What the group has asked before was heard before."""
    mine = state.account_groups[gone.account]
    if mine is not None and mine.groups.pop(gone.group, None):
        state.account_groups.put(gone.account, mine, state.offset)


# --- other devices ----------------------------------------------------------------------------


def needs_relisted(state: ShardState, _by: int, relisted: Relisted) -> list[Need]:
    missing: list[Need] = []
    _needs_groups(state, relisted.account, missing)
    if not missing and (until := _waits_until(state, relisted)):
        due.needs_schedule(state, until, 1, missing)
    return missing


def step_relisted(state: ShardState, _by: int, _via: int, relisted: Relisted) -> None:
    number = relisted.account
    account, mine = state.accounts[number], state.account_groups[number]
    if account is None or mine is None:
        return
    if until := _waits_until(state, relisted):
        mine.waits = True
        due.schedule(state, until, DueItem(0, Lane.NORMAL, number, DueFor.RELISTING))
    elif _is_news(account, mine, relisted):
        _tell(state, number, account, mine, relisted)
    if relisted.fired and not until:
        mine.waits = False
    state.account_groups.put(number, mine, state.offset)


def _is_news(account: Account, mine: AccountGroups, relisted: Relisted) -> bool:
    """Whether its groups must hear of it now. While it waits for the end of the hour, they hear of it then."""
    if not mine.groups or account.revision == mine.told:
        return False
    return relisted.fired or not mine.waits or _ends(account, relisted)


def _ends(account: Account, relisted: Relisted) -> bool:
    return relisted.again or account.closed


def _waits_until(state: ShardState, relisted: Relisted) -> int:
    """The moment at which the account's groups are told; 0: at once, or there is nothing to tell."""
    account, mine = state.accounts[relisted.account], state.account_groups[relisted.account]
    if account is None or mine is None or _ends(account, relisted) or not _is_news(account, mine, relisted):
        return 0
    since, count = mine.tellings
    if count < state.shard.limits.relistings or state.elapsed >= since + HOUR_MS:
        return 0
    return due.moment_of(state, state.now + since + HOUR_MS - state.elapsed)


def _tell(state: ShardState, number: int, account: Account, mine: AccountGroups, relisted: Relisted) -> None:
    devices = tuple(account.listed)
    for group, ask in mine.groups.items():
        listed = MemberListed(group, number, ask, account.revision, devices, relisted.again, account.closed)
        state.tell(group, listed)
    mine.told = account.revision
    since, count = mine.tellings
    mine.tellings = (since, count + 1) if state.elapsed < since + HOUR_MS else (state.elapsed, 1)
    if _ends(account, relisted):
        mine.groups.clear()


STEPS: Steps = {
    4: {
        MemberAsked: (needs_groups, step_asked),
        MemberGone: (needs_groups, step_gone),
        Relisted: (needs_relisted, step_relisted),
    }
}
