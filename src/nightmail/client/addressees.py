"""Which account a handle means, as far as this device knows.

Knows:   the handles that a text may mean, and the handles of conversations: each was asked for, or named by a list.
Touches: nothing. Whether the account's list names the handle, `trust/believed_lists.py` checks before it is believed.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.client.store.port import Store
from nightmail.model.handles import spellings
from nightmail.model.ids import account_ids


class Addressee(NamedTuple):
    account: int
    handle: str
    is_known: bool
    """There is a conversation with this handle."""


def addressee_in(store: Store, text: str) -> Addressee:
    """The account that a typed handle means.

    If nothing is known of it: the first of its ids that is not known to be another handle's.
    """
    handles = spellings(text)
    for handle in handles:
        for account in account_ids(handle):
            if store.conversation(account).handle == handle:
                return Addressee(account, handle, is_known=True)
    handle, ids = handles[-1], account_ids(handles[-1])
    free = [account for account in ids if not store.conversation(account).handle]
    return Addressee(free[0] if free else ids[0], handle, is_known=False)
