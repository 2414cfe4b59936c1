"""Control messages between the devices of one account, and their data. No person sees them.

Knows:   the forms, as docs/e2ee.md has them. A number is never used again for another control message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import TypeVar

import msgspec
from msgspec import Struct

from nightmail.client.messages import Message, Tick
from nightmail.client.store.rows import Contact, Trusted
from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.note import NONCE_BYTES
from nightmail.model.ids import MessageId
from nightmail.model.words import Kind, Lane

Item = TypeVar("Item")

BACKUPS_MAX, LINEAGE_BYTES = 64, 16
NAME_CHARS = 256
"""The longest name or handle of a contact."""


class Control(IntEnum):
    """TIMER and those in a group are to everybody who reads the conversation. All others are from one device of an
    account to another of the same account; from other accounts they are ignored."""

    PROVISION = 1
    """To a new device: the key of its account (`e2ee/provision.py`)."""
    READ = 2
    """To all devices: these messages were read."""
    HISTORY = 3
    """To the device that the account moves to: a part of the old one's history."""
    MOVED = 4
    """From that device: it has all parts."""
    READY = 5
    """From that device, in both lanes: from now on everything is sealed for it, too."""
    CONTACTS = 6
    """To all devices: contacts that were changed; to a new device: all of them."""
    TIMER = 7
    """In a conversation, to everybody: its timer is another one (`client/timers/changes.py`). It is shown."""
    TIMERS = 8
    """To a new device: the newest change of the timer of each conversation."""
    GROUP_KEY = 9
    """In a group, to single devices: the chain that opens what the sender writes (`client/groups/controls.py`)."""
    GROUP_WELCOME = 10
    """In a group, to a newcomer's devices: where to begin."""
    GROUP_WANTED = 11
    """In a group, to one device: a key, messages or a welcome that are missing."""
    GROUP_NAME = 12
    """In a group, to everybody: its name is another one."""
    GROUP_PICTURE = 13
    """In a group, to everybody: likewise, its picture."""
    GROUPS = 14
    """To a new device of one's own: where each group stands."""
    SCHEDULES = 15
    """To all devices: a message for later; to a new device: all of them."""
    BACKUPS = 16
    """To all devices: a backup was made; to a new device: the newest ones that are known."""


class SharedSchedule(Struct, frozen=True, array_like=True):
    """A message for later that the server has taken."""

    id: str
    to: int
    kind: Kind
    body: bytes
    life_ms: int
    nonce: bytes
    made_at: int
    deliver_at: int
    serial: int
    by: int

    def __repr__(self) -> str:
        return f"<shared schedule {self.id}>"

    def check(self) -> None:
        """Raises BadEncoding unless it can be stored as it is."""
        numbers = [self.to, self.life_ms, self.made_at, self.deliver_at, self.serial - 1, self.by]
        if any(not 0 <= number < 1 << 62 for number in numbers) or len(self.nonce) != NONCE_BYTES:
            raise BadEncoding("control message", "a schedule that is none")
        try:
            MessageId.parse(self.id)
        except ValueError:
            raise BadEncoding("control message", "a schedule under no id") from None
        decode_content(self.body)


class PastMessage(Struct, frozen=True, array_like=True):
    """One message of a history."""

    id: str
    peer: int
    by: int
    own: bool
    at: int
    body: bytes
    kind: Kind
    life_ms: int
    state: Tick
    reason: str
    unread: tuple[Lane, int] | None = None
    """Lane and number of a message that was not read yet: its read mark will name these."""
    deadline: int = 0
    """When the old device deletes it."""
    group_seq: int = 0
    """Its number in its group; 0: it is in none."""

    @classmethod
    def of(cls, m: Message, unread: tuple[Lane, int] | None = None) -> PastMessage:
        return cls(
            m.id, m.peer, m.by, m.own, m.at, m.body, m.kind, m.life_ms, m.state, m.reason, unread, m.deadline,
            m.group_seq,
        )  # fmt: skip

    def message(self) -> Message:
        return Message(**{name: getattr(self, name) for name in self.__struct_fields__ if name != "unread"})

    def __repr__(self) -> str:
        return f"<past message {self.id}>"


class PastGroup(Struct, frozen=True, array_like=True):
    """What a history needs to know of a group. Nothing in it opens or seals anything."""

    group: int
    standing: int
    """A `GroupStanding`."""
    name: str
    picture: bytes
    joined_at: int

    def __repr__(self) -> str:
        return f"<past group {self.group:x}>"


class HistoryPart(Struct, frozen=True, array_like=True):
    """A part of a history: the `number`-th of `count`, from 1."""

    number: int
    count: int
    first: int
    """How many parts, from number 1 on, say whom the old device trusts and knows. 0: these came before."""
    handles: dict[int, str]
    """Account → handle, as far as the old device knows."""
    trusted: tuple[Trusted, ...]
    contacts: tuple[Contact, ...]
    messages: tuple[PastMessage, ...]

    @classmethod
    def of(
        cls, number: int, count: int, first: int, items: Iterable[tuple[int, str] | Trusted | Contact | PastMessage]
    ) -> HistoryPart:
        handles: dict[int, str] = {}
        trusted: list[Trusted] = []
        contacts: list[Contact] = []
        messages: list[PastMessage] = []
        for item in items:
            match item:
                case Trusted():
                    trusted.append(item)
                case Contact():
                    contacts.append(item)
                case PastMessage():
                    messages.append(item)
                case account, handle:
                    handles[account] = handle
        return cls(number, count, first, handles, tuple(trusted), tuple(contacts), tuple(messages))

    def check(self) -> None:
        """Raises BadEncoding unless it can be stored as it is."""
        numbers = [self.number - 1, self.count - self.number, self.first, self.count, *self.handles]
        for row in self.trusted:
            numbers += [row.account, row.changed_at, *row.left, *row.left.values()]
        numbers += [contact.account for contact in self.contacts]
        for past in self.messages:
            numbers += [past.peer, past.by, past.at, past.life_ms, past.deadline, past.group_seq]
            numbers += past.unread or ()
            try:
                MessageId.parse(past.id)
            except ValueError:
                raise BadEncoding("part of a history", "a message under no id") from None
            decode_content(past.body)
        if any(not 0 <= number < 1 << 62 for number in numbers):
            raise BadEncoding("part of a history", "a number that is none")


class TimerSet(Struct, frozen=True, array_like=True):
    """The message that set the timer of a conversation."""

    peer: int
    id: str
    at: int
    life_ms: int


class ContactChange(Struct, frozen=True, array_like=True):
    """A contact as it is since the device `by` changed it."""

    account: int
    handle: str
    name: str
    blocked: bool
    deleted: bool
    at: int = 0
    by: int = 0

    def __repr__(self) -> str:
        return f"<change of contact {self.account:x}>"


class ContactsPart(Struct, frozen=True, array_like=True):
    changes: tuple[ContactChange, ...]
    handles: dict[int, str] = {}
    """Account → handle."""

    @classmethod
    def of(cls, items: Iterable[ContactChange | tuple[int, str]]) -> ContactsPart:
        changes: list[ContactChange] = []
        handles: dict[int, str] = {}
        for item in items:
            match item:
                case ContactChange():
                    changes.append(item)
                case account, handle:
                    handles[account] = handle
        return cls(tuple(changes), handles)

    def check(self) -> None:
        """Raises BadEncoding unless it can be stored as it is."""
        numbers, texts = [*self.handles], [*self.handles.values()]
        for change in self.changes:
            numbers += [change.account, change.at, change.by]
            texts += [change.handle, change.name]
        if any(not 0 < number < 1 << 62 for number in numbers) or any(len(text) > NAME_CHARS for text in texts):
            raise BadEncoding("control message", "a contact that is none")


_encode = msgspec.msgpack.Encoder().encode
_some = msgspec.msgpack.Decoder(list[int]).decode
_ids = msgspec.msgpack.Decoder(list[str]).decode
_part = msgspec.msgpack.Decoder(HistoryPart).decode
_timers = msgspec.msgpack.Decoder(list[TimerSet]).decode
_schedules = msgspec.msgpack.Decoder(list[SharedSchedule]).decode
_contacts = msgspec.msgpack.Decoder(ContactsPart).decode
_backups = msgspec.msgpack.Decoder(list[tuple[bytes, int, int]]).decode


def control(number: Control, data: bytes) -> bytes:
    """The content of a control message, as it is sealed."""
    return encode_content(Content(Kind.CONTROL, data=data, control=number))


def read(ids: list[str]) -> bytes:
    return control(Control.READ, _encode(ids))


def numbers(number: Control, said: list[int]) -> bytes:
    """A control message that consists of a few numbers."""
    return control(number, _encode(said))


def size_of_item(item: object) -> int:
    return len(_encode(item))


def cut(items: Iterable[Item], room: int, size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The same items in lists of at most `room` bytes each; one that is longer stands alone."""
    held: list[Item] = []
    size = 0
    for item in items:
        length = size_of(item)
        if held and size + length > room:
            yield held
            held, size = [], 0
        held.append(item)
        size += length
    if held:
        yield held


def contacts(part: ContactsPart) -> bytes:
    return control(Control.CONTACTS, _encode(part))


def contacts_of(data: bytes) -> ContactsPart:
    try:
        part = _contacts(data)
    except msgspec.DecodeError:
        raise BadEncoding("control message", "contacts") from None
    part.check()
    return part


def timers(changes: list[TimerSet]) -> bytes:
    return control(Control.TIMERS, _encode(changes))


def timers_of(data: bytes) -> list[TimerSet]:
    try:
        changes = _timers(data)
        for change in changes:
            MessageId.parse(change.id)
    except ValueError:  # msgspec's DecodeError is one
        raise BadEncoding("control message", "timers") from None
    if any(not 0 <= number < 1 << 62 for change in changes for number in (change.peer, change.at, change.life_ms)):
        raise BadEncoding("control message", "a number that is none")
    return changes


def schedules(said: list[SharedSchedule]) -> bytes:
    return control(Control.SCHEDULES, _encode(said))


def schedules_of(data: bytes) -> list[SharedSchedule]:
    try:
        said = _schedules(data)
    except ValueError:  # msgspec's DecodeError is one
        raise BadEncoding("control message", "schedules") from None
    for each in said:
        each.check()
    return said


def backups(said: list[tuple[bytes, int, int]]) -> bytes:
    """Backups, each as its lineage, when it was made, and by which device."""
    return control(Control.BACKUPS, _encode(said))


def backups_of(data: bytes) -> list[tuple[bytes, int, int]]:
    try:
        said = _backups(data)
    except msgspec.DecodeError:
        raise BadEncoding("control message", "backups") from None
    if len(said) > BACKUPS_MAX or any(
        len(lineage) != LINEAGE_BYTES or not 0 < at < 1 << 62 or not 0 < by < 1 << 62 for lineage, at, by in said
    ):
        raise BadEncoding("control message", "a backup that is none")
    return said


def history(part: HistoryPart) -> bytes:
    return control(Control.HISTORY, _encode(part))


def read_of(data: bytes) -> list[str]:
    try:
        return _ids(data)
    except msgspec.DecodeError:
        raise BadEncoding("control message", "what was read") from None


def numbers_of(data: bytes, count: int) -> list[int]:
    try:
        said = _some(data)
    except msgspec.DecodeError:
        said = []
    if len(said) != count or any(not 0 <= number < 1 << 62 for number in said):
        raise BadEncoding("control message", f"{count} numbers")
    return said


def part_of(data: bytes) -> HistoryPart:
    try:
        part = _part(data)
    except msgspec.DecodeError:
        raise BadEncoding("control message", "a part of a history") from None
    part.check()
    return part
