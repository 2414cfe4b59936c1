"""Which account or group a typed name means, and which name each is shown by.

Knows:   handles, the names that this device gave to contacts, the names of groups, and numbers of both in hex.
Never:   asks the server what a name means: it does not know the names of groups and contacts, and must not learn them.
"""

from __future__ import annotations

from nightmail.client import Client, Message
from nightmail.client.addressees import GROUP, is_group_text
from nightmail.client.errors import Misused
from nightmail.client.groups.group import Group
from nightmail.client.messages import unnamed
from nightmail.client.store.rows import Contact
from nightmail.model.group_chain import is_group
from nightmail.model.handles import spellings
from nightmail.model.ids import account_of
from nightmail.model.roster import Role

from .output import plain

MARKS = "✓✔✗⚠"
"""Shown beside names, so no name may hold one."""


def resolve(client: Client, typed: str) -> str | int:
    """The handle or account number that was typed. A contact's name wins over the handle of a stranger.

    Raises Misused if several accounts that this device knows can be meant.
    """
    if not typed.strip():
        raise Misused("a name cannot be empty")
    if is_group_text(typed):
        raise Misused(f"{plain(typed)!r} is a group, and a person is meant here")
    contacts, handles = client.people.all(), _handles(client)
    numbers = {f"{account:x}": account for account in handles}
    if typed in numbers:
        return handles[numbers[typed]] or numbers[typed]
    meant = _contacts_called(contacts, typed)
    if meant:
        meant |= {account for account, handle in handles.items() if handle and handle in spellings(typed)}
    if len(meant) > 1:
        candidates = ", ".join(sorted(f"{handles[each] or 'unknown handle'} (account {each:x})" for each in meant))
        raise Misused(f"{plain(typed)!r} can mean several contacts: {candidates}; give the number of the account")
    return next((handles[account] or account for account in meant), typed)


def resolve_group(client: Client, typed: str) -> Group:
    """The group that was typed: its name or its number, perhaps after "group:". Raises NoSuchGroup, Misused."""
    named = _groups_called(client, typed.removeprefix(GROUP))
    if len(named) > 1:
        raise Misused(f"several groups are called {plain(typed)!r}: give {_numbers(named)}")
    return named[0] if named else client.group(typed)


def resolve_any(client: Client, typed: str) -> str | int | Group:
    """The person or the group that was typed. Raises NoSuchGroup, and Misused if several can be meant."""
    if is_group_text(typed):
        return resolve_group(client, typed)
    groups = _groups_called(client, typed)
    if not groups:
        return resolve(client, typed)
    handles = _handles(client)
    people = _contacts_called(client.people.all(), typed)
    people |= {account for account, handle in handles.items() if handle and handle in spellings(typed)}
    if people:
        raise Misused(
            f"{plain(typed)!r} can mean a person or a group: give the number of the account "
            f"({', '.join(sorted(f'{account:x}' for account in people))}), or {_numbers(groups)}"
        )
    return resolve_group(client, typed)


def resolve_people(client: Client, typed: tuple[str, ...]) -> list[str | int]:
    """Several people. Raises Misused if one is named twice."""
    people, accounts = list[str | int](), set[int]()
    for word in typed:
        person = resolve(client, word)
        account = client.people.get(person).account
        if account in accounts:
            raise Misused(f"{plain(word)!r} is named twice")
        if account == client.identity.account:
            raise Misused(f"{plain(word)!r} is you")
        people.append(person)
        accounts.add(account)
    return people


def _handles(client: Client) -> dict[int, str]:
    """The accounts that this device knows, and their handles."""
    handles = {each.peer: each.handle for each in client.conversations() if not is_group(each.peer)}
    return handles | {each.account: each.handle or handles.get(each.account, "") for each in client.people.all()}


def _contacts_called(contacts: list[Contact], typed: str) -> set[int]:
    return {contact.account for contact in contacts if contact.name.casefold() == typed.casefold()}


def _groups_called(client: Client, typed: str) -> list[Group]:
    """A group that was left stays in the history, and gives way to one of the same name."""
    names = client.group_names()
    named = [client.group(group) for group in sorted(names) if names[group].casefold() == typed.casefold()]
    return [group for group in named if group.is_joined] or named


def _numbers(groups: list[Group]) -> str:
    return " or ".join(f"group:{group.id:x}" for group in groups)


class ContactNames:
    """Account → the name to show."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def of(self, peer: int) -> str:
        """Its name; with its handle or number, if another account that this device knows is shown by the same name."""
        if is_group(peer):
            return self._group(peer)
        handles = _handles(self._client)
        contacts = {row.account: row for row in self._client.people.all()}
        names = {each: self._name(each, contacts.get(each), handles.get(each, "")) for each in handles}
        name = names.pop(peer, None) or self._name(peer, None, "")
        if name.casefold() not in {other.casefold() for other in names.values()}:
            return name
        contact = contacts.get(peer)
        handle = plain((contact.handle if contact else "") or handles.get(peer, ""))
        return f"{name} ({handle if handle and handle != name else f'{peer:x}'})"

    def or_you(self, account: int) -> str:
        return "you" if account == self._client.identity.account else self.of(account)

    def role(self, group: int, account: int) -> Role | None:
        """What somebody is in a group now."""
        members = self._client.group(group).members
        return next((member.role for member in members if member.account == account), None)

    def author(self, message: Message) -> str:
        """Of a message of somebody else."""
        return self.of(message.peer if message.group is None else account_of(message.by))

    def whose(self, message: Message) -> str:
        """Whose message it is, among messages of all conversations: the author, and the group; or whom it is to."""
        if message.group is None or message.own:
            return self.of(message.peer)
        return f"{self.author(message)} in {self.of(message.peer)}"

    def _name(self, account: int, contact: Contact | None, handle: str) -> str:
        known = (contact.name or contact.handle) if contact else ""
        return _unmarked(known or handle or unnamed(account))

    def _group(self, group: int) -> str:
        """Its name; with its number, if another group has the same."""
        names = self._client.group_names()
        name = names.pop(group, "")
        is_unique = name and name.casefold() not in {other.casefold() for other in names.values()}
        shown = _unmarked(name or "unnamed group")
        return shown if is_unique else f"{shown} ({group:x})"


def _unmarked(name: str) -> str:
    return "".join("�" if char in MARKS else char for char in plain(name))
