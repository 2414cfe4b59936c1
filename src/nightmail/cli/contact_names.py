"""Which account a typed name means, and which name an account is shown by.

Knows:   handles, the names that this device gave to contacts, and account numbers in hex.
"""

from __future__ import annotations

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.messages import unnamed
from nightmail.client.store.rows import Contact
from nightmail.model.handles import spellings

from .output import plain

MARKS = "✓✔✗⚠"
"""Shown beside names, so no name may hold one."""


def resolve(client: Client, typed: str) -> str | int:
    """The handle or account number that was typed. A contact's name wins over the handle of a stranger.

    Raises Misused if several accounts that this device knows can be meant.
    """
    if not typed.strip():
        raise Misused("a name cannot be empty")
    contacts = client.people.all()
    handles = {each.peer: each.handle for each in client.conversations()}
    handles |= {contact.account: contact.handle or handles.get(contact.account, "") for contact in contacts}
    numbers = {f"{account:x}": account for account in handles}
    if typed in numbers:
        return handles[numbers[typed]] or numbers[typed]
    meant = {contact.account for contact in contacts if contact.name.casefold() == typed.casefold()}
    if meant:
        meant |= {account for account, handle in handles.items() if handle and handle in spellings(typed)}
    if len(meant) > 1:
        candidates = ", ".join(sorted(f"{handles[each] or 'unknown handle'} (account {each:x})" for each in meant))
        raise Misused(f"{plain(typed)!r} can mean several contacts: {candidates}; give the number of the account")
    return next((handles[account] or account for account in meant), typed)


class ContactNames:
    """Account → the name to show."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def of(self, account: int) -> str:
        """Its name; with its handle or number, if another account that this device knows is shown by the same name."""
        handles = {row.peer: row.handle for row in self._client.conversations()}
        contacts = {row.account: row for row in self._client.people.all()}
        names = {each: self._name(each, contacts.get(each), handles.get(each, "")) for each in (*handles, *contacts)}
        name = names.pop(account, None) or self._name(account, None, "")
        if name.casefold() not in {other.casefold() for other in names.values()}:
            return name
        contact = contacts.get(account)
        handle = plain((contact.handle if contact else "") or handles.get(account, ""))
        return f"{name} ({handle if handle and handle != name else f'{account:x}'})"

    def _name(self, account: int, contact: Contact | None, handle: str) -> str:
        known = (contact.name or contact.handle) if contact else ""
        name = plain(known or handle or unnamed(account))
        return "".join("�" if char in MARKS else char for char in name)
