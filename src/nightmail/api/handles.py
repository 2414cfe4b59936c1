"""Which account a handle is, as a request writes it.

Knows:   the handles that a text may mean, and the ids that each of them may have.
Touches: the rows of accounts, by `DeskClient`.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.model.handles import normal_handle, spellings
from nightmail.model.ids import account_ids
from nightmail.model.refusals import HandleTaken

from .desk_client import DeskClient
from .problems import malformed, refused


class Named(NamedTuple):
    """A handle as it is kept, and the account that has it or would have it."""

    handle: str
    account: int


class Handles:
    def __init__(self, desk: DeskClient) -> None:
        self._desk = desk

    async def name(self, text: str) -> Named:
        """The account of a handle, registered or not. Raises a Problem if it cannot be a handle."""
        for handle in spellings(text):
            account, owner = await self._place(handle)
            if owner == handle:
                return Named(handle, account)
        try:
            handle = normal_handle(text)
        except ValueError as error:
            raise malformed(str(error)) from None
        account, _ = await self._place(handle)
        if not account:
            raise refused(HandleTaken(handle))
        return Named(handle, account)

    async def _place(self, handle: str) -> tuple[int, str]:
        """The first id of a handle that no other handle has, and who has it; 0: others have all of them.

        A row stays for ever, so a handle that is registered has the first id that was free then.
        """
        for account in account_ids(handle):
            owner = await self._desk.row(account, lambda row: row.handle if row else "")
            if owner in ("", handle):
                return account, owner
        return 0, ""
