"""Whom a word on the command line means, and what somebody is called there.

Knows:   handles, names that this device gave, and account numbers in hex.
"""

from __future__ import annotations

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.model.ids import account_id

from .profiles import handle_of, known
from .saying import plain


def whom(client: Client, word: str) -> str | int:
    """The handle or account that somebody typed. A name that this device gave comes first, whoever has it as a handle.

    Raises Misused if two people are called so.
    """
    named = [contact for contact in client.people.all() if contact.name.casefold() == word.casefold()]
    if len(named) > 1:
        raise Misused(f"{len(named)} people are called {word!r} here: say a handle")
    if named:
        return named[0].handle or named[0].account
    # An account that only its number is known of: so it was shown, and so it may be typed.
    numbers = {f"{each.peer:x}": each.peer for each in client.conversations() if not each.handle}
    return numbers.get(word, word)


class Names:
    """What to call people, for as long as a command runs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # A server tells accounts, not names; those of this machine's profiles are no secret here.
        self._here = {account_id(handle_of(each)): handle_of(each) for each in known()}

    def of(self, account: int) -> str:
        called = self._client.people.called(account)
        return plain(self._here.get(account, called) if called == f"{account:x}" else called)
