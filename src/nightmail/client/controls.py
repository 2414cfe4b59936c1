"""What devices say to each other behind the person's back: which control messages there are, and their data.

Knows:   the forms, as docs/e2ee.md has them. Numbers are never used again for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec
from msgspec import Struct

from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.errors import Malformed
from nightmail.model.ids import MessageId
from nightmail.model.words import Kind, Lane

from .messages import Message, Tick
from .store import Contact, Trusted


class Control(IntEnum):
    """All are from a device of an account to another of the same account; from others they are passed over."""

    PROVISION = 1
    """To a new device: whose it is (`e2ee/provision.py`)."""
    READ = 2
    """To all: these messages were read."""
    HISTORY = 3
    """To the device that the account moves to: a part of what the old one has."""
    MOVED = 4
    """From it: all parts are here."""
    READY = 5
    """From it, in both lanes: whatever is filed from now on is sealed for it, too."""


class Past(Struct, frozen=True, array_like=True):
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
    """Lane and number of one that was not read yet: the mark for it will speak of that."""

    @classmethod
    def of(cls, m: Message, unread: tuple[Lane, int] | None = None) -> Past:
        return cls(m.id, m.peer, m.by, m.own, m.at, m.body, m.kind, m.life_ms, m.state, m.reason, unread)

    def message(self) -> Message:
        return Message(**{name: getattr(self, name) for name in self.__struct_fields__ if name != "unread"})

    def __repr__(self) -> str:
        return f"<past {self.id}>"


class Part(Struct, frozen=True, array_like=True):
    """A part of a history: the `number`-th of `count`, from 1."""

    number: int
    count: int
    ahead: int
    """So many, from the first on, say whom the old device trusts and knows. 0: this is not one of the first."""
    handles: dict[int, str]
    """Account → what it is called, as far as the old device knows."""
    trusted: tuple[Trusted, ...]
    contacts: tuple[Contact, ...]
    messages: tuple[Past, ...]

    @classmethod
    def of(
        cls, number: int, count: int, ahead: int, items: Iterable[tuple[int, str] | Trusted | Contact | Past]
    ) -> Part:
        handles: dict[int, str] = {}
        trusted: list[Trusted] = []
        contacts: list[Contact] = []
        messages: list[Past] = []
        for item in items:
            match item:
                case Trusted():
                    trusted.append(item)
                case Contact():
                    contacts.append(item)
                case Past():
                    messages.append(item)
                case account, handle:
                    handles[account] = handle
        return cls(number, count, ahead, handles, tuple(trusted), tuple(contacts), tuple(messages))

    def check(self) -> None:
        """Raises Malformed unless it can be stored as it is."""
        numbers = [self.number - 1, self.count - self.number, self.ahead, self.count, *self.handles]
        for row in self.trusted:
            numbers += [row.account, row.changed_at, *row.left, *row.left.values()]
        numbers += [contact.account for contact in self.contacts]
        for past in self.messages:
            numbers += [past.peer, past.by, past.at, past.life_ms, *(past.unread or ())]
            try:
                MessageId.parse(past.id)
            except ValueError:
                raise Malformed("part of a history", "a message under no id") from None
            decode_content(past.body)
        if any(not 0 <= number < 1 << 62 for number in numbers):
            raise Malformed("part of a history", "a number that is none")


_encode = msgspec.msgpack.Encoder().encode
_some = msgspec.msgpack.Decoder(list[int]).decode
_ids = msgspec.msgpack.Decoder(list[str]).decode
_part = msgspec.msgpack.Decoder(Part).decode


def control(number: Control, data: bytes) -> bytes:
    """As it is sealed."""
    return encode_content(Content(Kind.CONTROL, data=data, control=number))


def read(ids: list[str]) -> bytes:
    return control(Control.READ, _encode(ids))


def words(number: Control, said: list[int]) -> bytes:
    """One that says nothing but a few numbers."""
    return control(number, _encode(said))


def size_of_item(item: object) -> int:
    return len(_encode(item))


def history(part: Part) -> bytes:
    return control(Control.HISTORY, _encode(part))


def read_of(data: bytes) -> list[str]:
    try:
        return _ids(data)
    except msgspec.DecodeError:
        raise Malformed("control message", "what was read") from None


def numbers_of(data: bytes, count: int) -> list[int]:
    try:
        said = _some(data)
    except msgspec.DecodeError:
        said = []
    if len(said) != count or any(not 0 <= number < 1 << 62 for number in said):
        raise Malformed("control message", f"{count} numbers")
    return said


def part_of(data: bytes) -> Part:
    try:
        part = _part(data)
    except msgspec.DecodeError:
        raise Malformed("control message", "a part of a history") from None
    part.check()
    return part
