"""Who may speak for an account."""

from __future__ import annotations

from nightmail.model.ids import SERVER, account_of
from nightmail.model.refusals import AnyRefusal, NotAllowed, UnknownAccount, UnknownDevice
from nightmail.model.rows import Account


def check_rights(by: int, account: Account | None, number: int) -> AnyRefusal | None:
    """Only a device of the account, or the server itself."""
    if by != SERVER and account_of(by) != number:
        return NotAllowed()
    if account is None or (account.closed and not account.devices):
        return UnknownAccount(number)
    if by != SERVER and by not in account.devices:
        return UnknownDevice(by)
    return None
