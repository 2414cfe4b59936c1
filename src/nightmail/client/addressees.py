"""Which account a handle means, and which group a name, as far as this device knows.

Knows:   the handles that a text may mean, and the handles of conversations: each was asked for, or named by a list.
Touches: nothing. Whether the account's list names the handle, `trust/believed_lists.py` checks before it is believed.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.client.group_errors import NoSuchGroup
from nightmail.client.store.group_rows import GroupStanding
from nightmail.client.store.port import Store
from nightmail.model.handles import spellings
from nightmail.model.ids import account_ids

GROUP = "group:"
"""What a text begins with that names a group."""


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


# --- groups -------------------------------------------------------------------------------------


def is_group_text(text: str) -> bool:
    """Whether a text names a group, and not a person."""
    return text.startswith(GROUP)


def group_in_text(store: Store, text: str) -> int:
    """The group that a text means: its name or its hexadecimal number, perhaps after "group:". Raises NoSuchGroup."""
    name = text.removeprefix(GROUP)
    rows = [row for row in store.groups() if row.standing is not GroupStanding.MAKING]
    named = [row for row in rows if row.name == name]
    # A group that was left stays in the history, and gives way to one of the same name.
    named = [row for row in named if row.standing is GroupStanding.JOINED] or named
    if len(named) == 1:
        return named[0].group
    numbered = [row.group for row in rows if f"{row.group:x}" == name.lower()]
    if numbered:
        return numbered[0]
    raise NoSuchGroup(name, len(named))
