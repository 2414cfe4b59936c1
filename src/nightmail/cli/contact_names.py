"""Which account a typed name means, and which name an account is shown by.

Knows:   handles, the names that this device gave to contacts, and account numbers in hex.
"""

from __future__ import annotations

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.model.ids import account_id

from .output import plain
from .profiles import handle_of, known


def resolve(client: Client, typed: str) -> str | int:
    """The handle or account number that was typed. A contact's name wins over an equal handle.

    Raises Misused if several contacts have this name.
    """
    named = [contact for contact in client.people.all() if contact.name.casefold() == typed.casefold()]
    if len(named) > 1:
        raise Misused(f"{len(named)} contacts are called {typed!r}: use a handle")
    if named:
        return named[0].handle or named[0].account
    # An account whose handle is unknown is shown by its number, so its number can be typed.
    numbers = {f"{each.peer:x}": each.peer for each in client.conversations() if not each.handle}
    return numbers.get(typed, typed)


class ContactNames:
    """Account → the name to show. Reads the machine's profiles once, when it is created."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # The server tells account numbers, not handles. The handles of this machine's own profiles are known here.
        self._local = {account_id(handle_of(each)): handle_of(each) for each in known()}

    def of(self, account: int) -> str:
        called = self._client.people.called(account)
        return plain(self._local.get(account, called) if called == f"{account:x}" else called)
