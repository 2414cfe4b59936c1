"""Contacts: the names that the user gave to other people, and who is blocked.

Knows:   names are sealed for the own devices, and nobody else has them; the server does the blocking, and is told
         first. It learns by id whom a person saves, and keeps more room for them.
Touches: the rows of contacts, in a turn of the machine, which tells the other own devices
         (`own_devices/contact_sync.py`).
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.link.driver import Driver
from nightmail.client.link.http import Http
from nightmail.client.own_devices.controls import NAME_CHARS
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact

from .addressees import addressee_in
from .errors import Misused
from .messages import unnamed


def handle_in(store: Store, account: int) -> str:
    """The handle of an account, to be shown."""
    return store.conversation(account).handle or unnamed(account)


class Contacts:
    def __init__(self, store: Store, driver: Driver, http: Http) -> None:
        self._store, self._driver, self._http = store, driver, http

    def all(self) -> list[Contact]:
        """Sorted by name."""
        return sorted(self._store.contacts(), key=lambda row: (row.name or row.handle).casefold())

    def get(self, person: str | int) -> Contact:
        """A contact; an empty one if the person is not a contact."""
        if isinstance(person, str):
            account, handle, _ = addressee_in(self._store, person)
        else:
            account, handle = person, self._store.conversation(person).handle
        return self._store.contact(account) or Contact(account, handle)

    def called(self, person: str | int) -> str:
        """The name, or the handle, to be shown."""
        contact = self.get(person)
        return contact.name or contact.handle or handle_in(self._store, contact.account)

    async def name(self, person: str | int, name: str) -> Contact:
        """Give a person a name on all own devices; also makes them a contact. Raises Misused."""
        name = " ".join(name.split())
        if len(name) > NAME_CHARS:
            raise Misused(f"the name of a contact has at most {NAME_CHARS} characters")
        return await self._put(replace(self.get(person), name=name))

    async def forget(self, person: str | int) -> bool:
        """Delete a contact. A blocked person stays blocked, and so stays in the list. False if there was no contact."""
        contact = self.get(person)
        if self._store.contact(contact.account) is None:
            return False
        if contact.blocked:
            await self._put(replace(contact, name=""))
            return True
        with self._driver.working() as machine:
            machine.drop_contact(contact.account, self._driver.clock())
        await self._driver.committed()
        return True

    async def block(self, person: str | int, *, on: bool = True) -> Contact:
        """Their messages no longer arrive, and they are not told. Raises HttpError; nothing has changed then."""
        contact = self.get(person)
        if not contact.handle:
            raise Misused("only somebody whose handle is known can be blocked")
        if on:
            await self._http.account(contact.handle)  # the server would also block a handle that nobody has
        await self._http.block(contact.handle, on=on)
        if not on and self._store.contact(contact.account) is None:
            return contact
        return await self._put(replace(contact, blocked=on))

    async def _put(self, row: Contact) -> Contact:
        with self._driver.working() as machine:
            machine.put_contact(row, self._driver.clock())
        await self._driver.committed()
        return row
