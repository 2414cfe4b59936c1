"""What devices say to each other behind the person's back: which control messages there are, and their data.

Knows:   the forms, as docs/e2ee.md has them. Numbers are never used again for another.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
from msgspec import Struct

from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.errors import Malformed
from nightmail.model.words import Kind

from .messages import Message, Tick


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

    @classmethod
    def of(cls, m: Message) -> Past:
        return cls(m.id, m.peer, m.by, m.own, m.at, m.body, m.kind, m.life_ms, m.state, m.reason)

    def message(self) -> Message:
        return Message(**{name: getattr(self, name) for name in self.__struct_fields__})

    def __repr__(self) -> str:
        return f"<past {self.id}>"


class Part(Struct, frozen=True, array_like=True):
    """A part of a history: the `number`-th of `count`, from 1."""

    number: int
    count: int
    handles: dict[int, str]
    """Account → what it is called, as far as the old device knows."""
    messages: tuple[Past, ...]


_encode = msgspec.msgpack.Encoder().encode
_ids = msgspec.msgpack.Decoder(list[str]).decode
_part = msgspec.msgpack.Decoder(Part).decode


def control(number: Control, data: bytes) -> bytes:
    """As it is sealed."""
    return encode_content(Content(Kind.CONTROL, data=data, control=number))


def read(ids: list[str]) -> bytes:
    return control(Control.READ, _encode(ids))


def history(part: Part) -> bytes:
    return control(Control.HISTORY, _encode(part))


def read_of(data: bytes) -> list[str]:
    try:
        return _ids(data)
    except msgspec.DecodeError:
        raise Malformed("control message", "what was read") from None


def part_of(data: bytes) -> Part:
    try:
        return _part(data)
    except msgspec.DecodeError:
        raise Malformed("control message", "a part of a history") from None
