"""What goes into a backup: everything a person would miss, and nothing that only this device may have.

Knows:   which rows those are. A row that changes while it is gathered is noted by the store, and saved the next time.
Touches: nothing; it reads a store, a page at a time.
Never:   takes a message with a timer, or one that still waits to be sent; nor keys, sessions, chains or the outbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from nightmail.client.messages import Message
from nightmail.client.own_devices.controls import PastGroup, PastMessage, cut, size_of_item
from nightmail.client.store.changes_port import Change, Saved
from nightmail.client.store.group_rows import GroupRow
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact, Conversation, ReadMark, Trusted
from nightmail.model.words import Lane

from .forms import BackupPart

PAGE = 500
PART_BYTES = 64 * 1024


class DroppedContact(Struct, frozen=True, array_like=True):
    """A contact that was deleted since the last backup."""

    account: int


Item: TypeAlias = "Conversation | Trusted | Contact | DroppedContact | PastGroup | PastMessage"


class Gathering:
    """Gathers once. `messages` counts how many it has come to."""

    def __init__(self, store: Store, settings: dict[str, float]) -> None:
        self._store, self._settings = store, settings
        self._unread: dict[str, tuple[Lane, int]] = {}
        self.messages = 0

    def everything(self) -> Iterator[BackupPart]:
        return self._parts(self._all())

    def changed(self, changes: Iterable[Change]) -> Iterator[BackupPart]:
        return self._parts(item for change in changes if (item := self._item(change)) is not None)

    def _parts(self, items: Iterable[Item]) -> Iterator[BackupPart]:
        yield BackupPart(settings=self._settings)
        self._unread = {row.id: (row.lane, row.n) for row in self._store.marked(ReadMark.UNREAD)}
        for some in cut(items, PART_BYTES, size_of_item):
            yield _part(some)

    def _all(self) -> Iterator[Item]:
        store = self._store
        for account in store.trusted_accounts():
            if (row := store.trusted(account)) is not None:
                yield row
        yield from store.contacts()
        yield from store.conversations()
        for group in store.groups():
            yield _past_group(group)
        last = ""
        while page := store.messages_after(last, PAGE):
            last = page[-1].id
            for message in page:
                if (past := self._past(message)) is not None:
                    yield past

    def _item(self, change: Change) -> Item | None:
        store, kind = self._store, change.kind
        if kind is Saved.MESSAGE:
            message = store.message(change.key)
            return self._past(message) if message is not None else None
        number = int(change.key)
        match kind:
            case Saved.CONVERSATION:
                return store.conversation(number)
            case Saved.CONTACT:
                return store.contact(number) or DroppedContact(number)
            case Saved.TRUSTED:
                return store.trusted(number)
            case Saved.GROUP:
                group = store.group(number)
                return _past_group(group) if group is not None else None

    def _past(self, message: Message) -> PastMessage | None:
        if not message.is_past:
            return None
        self.messages += 1
        return PastMessage.of(message, self._unread.get(message.id))


def _past_group(row: GroupRow) -> PastGroup:
    return PastGroup(row.group, row.standing, row.name, row.picture, row.joined_at)


def _part(items: Iterable[Item]) -> BackupPart:
    conversations, trusted, contacts = list[Conversation](), list[Trusted](), list[Contact]()
    dropped, groups, messages = list[int](), list[PastGroup](), list[PastMessage]()
    for item in items:
        match item:
            case PastMessage():
                messages.append(item)
            case Conversation():
                conversations.append(item)
            case Trusted():
                trusted.append(item)
            case Contact():
                contacts.append(item)
            case PastGroup():
                groups.append(item)
            case DroppedContact():
                dropped.append(item.account)
    return BackupPart(
        tuple(conversations), tuple(trusted), tuple(contacts), tuple(dropped), tuple(groups), tuple(messages)
    )  # fmt: skip
