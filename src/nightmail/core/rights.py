"""Who may speak for an account."""

from __future__ import annotations

from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import Blocked, Closed, Listed, PinSet, ReceiptsSet
from nightmail.model.refusals import AnyRefusal, NotAllowed, UnknownAccount, UnknownDevice
from nightmail.model.rows import Account, Kept, Need

from .state import ShardState, missing_row


def needs_account(state: ShardState, _by: int, body: Listed | Closed | Blocked | ReceiptsSet | PinSet) -> list[Need]:
    """All that a record needs that changes nothing but its account."""
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, body.account, missing)
    return missing


def check_rights(by: int, account: Account | None, number: int) -> AnyRefusal | None:
    """Only a device of the account, or the server itself."""
    if by != SERVER and account_of(by) != number:
        return NotAllowed()
    if account is None or (account.closed and not account.devices):
        return UnknownAccount(number)
    if by != SERVER and by not in account.devices:
        return UnknownDevice(by)
    return None


def check_listed(state: ShardState, by: int, account: Account | None) -> AnyRefusal | None:
    """Since fold 2, a device that the list does not name changes nothing about the account's other devices.

    An empty list names nobody: then any device may publish the next one, or the account could never be reached again.
    """
    if by == SERVER or account is None or not account.listed or by in account.listed or state.shard.fold < 2:
        return None
    return NotAllowed()
