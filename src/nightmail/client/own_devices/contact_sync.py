"""Contacts, their names and blocks, and the handles of people: the same on all devices of the account.

Knows:   when each contact was changed, and on which device. The newest change wins, by (time, device).
Touches: contacts and the handles of conversations; one errand per contact, for its newest change, and one per device
         that was linked here recently; the outbox.
Never:   tells the server a name; or lets another device fill this one with more contacts than the limit.

A change that another device sealed before it knew of a device that was linked here may come after that device got all
contacts. So the device that linked it passes such changes on, for as long as one can come.

A change is later than every change of the same contact that its device knew, whatever the clocks say. A contact that
was deleted leaves its errand behind, until an older change can no longer come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from nightmail.client.events import ContactsChanged
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.model.ids import account_of

from .controls import ContactChange, ContactsPart, contacts, contacts_of, cut, size_of_item

ERRAND = "contact "
NEWCOMER = "contacts passed on to "
PART_BYTES = 100
"""What a control message takes around its changes."""

_encode = msgspec.msgpack.Encoder().encode


class Version(NamedTuple):
    at: int = 0
    by: int = 0


_version = msgspec.msgpack.Decoder(Version).decode
_time = msgspec.msgpack.Decoder(int).decode


class ContactSync:
    def __init__(self, context: Context, e2ee: E2eeSealer, outbox: Outbox) -> None:
        self._context, self._e2ee, self._outbox = context, e2ee, outbox

    # --- what the person does -------------------------------------------------------------------

    def put(self, row: Contact) -> None:
        """The person changed a contact here, or made one."""
        self._change(ContactChange(row.account, row.handle, row.name, row.blocked, deleted=False))

    def drop(self, account: int) -> None:
        """The person deleted a contact here."""
        self._change(ContactChange(account, "", "", blocked=False, deleted=True))

    def learn(self, account: int, handle: str) -> None:
        """The person named an account by this handle."""
        if self._learn(account, handle, replaces=True):
            self._tell([(account, handle)])

    def _change(self, change: ContactChange) -> None:
        at = max(self._context.now, self._newest(change.account).at + 1)
        change = replace(change, at=at, by=self._context.identity.device)
        self._apply(change)
        self._tell([change])

    # --- other devices --------------------------------------------------------------------------

    def take(self, by: int, data: bytes) -> None:
        """Another own device says what was changed. Raises BadEncoding."""
        part, own, store = contacts_of(data), self._context.identity.account, self._context.store
        room = self._context.limits.contacts - len(store.errands(ERRAND))
        news: list[ContactChange] = []
        for change in part.changes:
            if account_of(change.by) != own or (change.at, change.by) <= self._newest(change.account):
                continue
            is_new = store.errand(_name(change.account)) is None
            if not is_new or room > 0:
                room -= is_new
                self._apply(change)
                news.append(change)
        handles = [(account, handle) for account, handle in part.handles.items() if self._learn(account, handle)]
        if news or handles:
            changed = {change.account for change in news} | {account for account, _ in handles}
            self._context.tell(ContactsChanged(tuple(sorted(changed))))
            self._pass_on((*news, *handles), by)

    def send_all(self, device: int) -> None:
        """A device was linked here: it gets every contact, and every handle that is known."""
        self._send(self._all(), device)
        self._context.store.put_errand(f"{NEWCOMER}{device:016x}", _encode(self._context.now))

    def _pass_on(self, items: Sequence[ContactChange | tuple[int, str]], by: int) -> None:
        """Tell the devices that were linked here recently, which the device `by` may not have known of."""
        for name in self._context.store.errands(NEWCOMER):
            device = int(name.removeprefix(NEWCOMER), 16)
            if device != by and device in self._others():
                self._send(items, device)

    def forget(self) -> None:
        """Once a day: no change can still come that is older than a contact's deletion long ago, or than a list."""
        store, oldest = self._context.store, self._context.now - self._context.limits.remember_ms
        for name in store.errands(ERRAND):
            account = int(name.removeprefix(ERRAND), 16)
            if store.contact(account) is None and self._newest(account).at < oldest:
                store.drop_errand(name)
        for name in store.errands(NEWCOMER):
            if (since := store.errand(name)) is not None and _time(since) < oldest:
                store.drop_errand(name)

    def _all(self) -> Iterator[ContactChange | tuple[int, str]]:
        store = self._context.store
        for row in store.contacts():
            at, by = self._newest(row.account)
            # A contact from before contacts were shared has no time: any change of it is newer.
            yield ContactChange(
                row.account, row.handle, row.name, row.blocked, deleted=False,
                at=max(at, 1), by=by or self._context.identity.device,
            )  # fmt: skip
        for row in store.conversations():
            if row.handle:
                yield row.peer, row.handle

    def _tell(self, items: Iterable[ContactChange | tuple[int, str]]) -> None:
        # A device that is being linked does not know the others yet: what it says waits in the outbox.
        if self._e2ee.awaits_provisioning or self._others():
            self._send(items)

    def _others(self) -> set[int]:
        """The other devices of this account."""
        me = self._context.identity
        listed = self._e2ee.believed.of(me.account)
        return {address.device for address in listed.devices} - {me.device} if listed else set()

    def _send(self, items: Iterable[ContactChange | tuple[int, str]], only: int = 0) -> None:
        room = self._e2ee.fits(self._context.body_bytes) - PART_BYTES
        for some in cut(items, room, size_of_item):
            part = ContactsPart.of(some)
            self._outbox.control(self._context.identity.account, contacts(part), only=only)

    # --- the rows -------------------------------------------------------------------------------

    def _newest(self, account: int) -> Version:
        state = self._context.store.errand(_name(account))
        return _version(state) if state else Version()

    def _apply(self, change: ContactChange) -> None:
        store = self._context.store
        if change.deleted:
            store.drop_contact(change.account)
        else:
            store.put_contact(Contact(change.account, change.handle, change.name, change.blocked))
        store.put_errand(_name(change.account), _encode(Version(change.at, change.by)))

    def _learn(self, account: int, handle: str, *, replaces: bool = False) -> bool:
        """Whether the handle was not known; or, if it `replaces` a known one, is another one."""
        store = self._context.store
        conversation = store.conversation(account)
        if conversation.handle == handle or (conversation.handle and not replaces):
            return False
        store.put_conversation(replace(conversation, handle=handle))
        return True


def is_noted(store: Store, account: int) -> bool:
    """Whether a change of this contact is known, also that it was deleted."""
    return store.errand(_name(account)) is not None


def _name(account: int) -> str:
    return f"{ERRAND}{account:016x}"
