"""Control messages in a group, and their data.

Knows:   the forms, as docs/e2ee.md has them, and their bounds: whatever passes can be stored.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from nightmail.client.own_devices.controls import Control, control
from nightmail.client.store.group_rows import HeadAt
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.groups.chain import GroupWelcome
from nightmail.e2ee.groups.sender_keys import KEY_ID_BYTES, HandedChain, decode_handed
from nightmail.model.group_chain import HEAD_BYTES
from nightmail.model.ids import MESSAGE_ID, MESSAGE_ID_CHARS

NAME_CHARS = 100
PICTURE_BYTES = 32 * 1024
HEADS_MAX = 16
"""Earlier places in the chain that a welcome names."""
DEPARTED_MAX = 64
"""People who have left that a welcome names."""
WANTED_MAX = 64
"""Messages that one control message asks for."""
NUMBER_END = 1 << 62

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class GroupStart(Struct, frozen=True, array_like=True):
    """Where a device begins in a group, and what its members call it."""

    welcome: bytes
    """`e2ee.group_chain.GroupWelcome`."""
    index: int
    """Of the change that the welcome stands at."""
    name: str
    picture: bytes
    named_at: int = 0
    pictured_at: int = 0
    heads: tuple[HeadAt, ...] = ()
    """The chain after the changes before it, oldest first: what was written there may still come."""
    departed: tuple[tuple[int, int], ...] = ()
    """(Account, index of the change that ended its membership) of those who left last: likewise."""

    def __repr__(self) -> str:
        return "<welcome to a group>"

    @property
    def start(self) -> GroupWelcome:
        return GroupWelcome.decode(self.welcome)

    def check(self) -> None:
        """Raises BadEncoding."""
        _ = self.start
        if not is_name(self.name) or len(self.picture) > PICTURE_BYTES:
            raise BadEncoding("control message", "a group's name or picture")
        if len(self.heads) > HEADS_MAX or any(len(at.head) != HEAD_BYTES for at in self.heads):
            raise BadEncoding("control message", "heads of a group's chain")
        numbers = [self.index, self.named_at, self.pictured_at]
        numbers += [number for at in self.heads for number in (at.index, at.seq)]
        numbers += [number for gone in self.departed for number in gone]
        if len(self.departed) > DEPARTED_MAX:
            raise BadEncoding("control message", "people who have left a group")
        if any(not 0 <= number < NUMBER_END for number in numbers):
            raise BadEncoding("control message", "a number that is none")


class Wanted(Struct, frozen=True, array_like=True):
    """What a device lacks of another one's."""

    key_id: bytes = b""
    """Of the chain whose key is missing; empty: none is."""
    ids: tuple[str, ...] = ()
    """Messages that it could not open."""
    welcome: bool = False
    """It does not know the group, or no longer."""

    def check(self) -> None:
        if len(self.key_id) not in (0, KEY_ID_BYTES) or len(self.ids) > WANTED_MAX:
            raise BadEncoding("control message", "what is wanted")
        if any(len(ident) > MESSAGE_ID_CHARS or not MESSAGE_ID.match(ident) for ident in self.ids):
            raise BadEncoding("control message", "a message under no id")


_welcome = msgspec.msgpack.Decoder(GroupStart).decode
_welcomes = msgspec.msgpack.Decoder(list[GroupStart]).decode
_wanted = msgspec.msgpack.Decoder(Wanted).decode
_text = msgspec.msgpack.Decoder(str).decode


def is_name(name: str) -> bool:
    """Whether a group may have this name. It is shown to people: in a terminal, a control character could write
    anything."""
    return len(name) <= NAME_CHARS and (not name or name.isprintable())


def key(handed: bytes) -> bytes:
    """`handed` is what `sender_keys.hand_on` made."""
    return control(Control.GROUP_KEY, handed)


def key_of(data: bytes) -> HandedChain:
    return decode_handed(data)


def welcome(said: GroupStart) -> bytes:
    return control(Control.GROUP_WELCOME, _encode(said))


def welcome_of(data: bytes) -> GroupStart:
    said = _decoded(_welcome, data, "a welcome")
    said.check()
    return said


def wanted(said: Wanted) -> bytes:
    return control(Control.GROUP_WANTED, _encode(said))


def wanted_of(data: bytes) -> Wanted:
    said = _decoded(_wanted, data, "what is wanted")
    said.check()
    return said


def name(text: str) -> bytes:
    return control(Control.GROUP_NAME, _encode(text))


def name_of(data: bytes) -> str:
    text = _decoded(_text, data, "a name")
    if not is_name(text):
        raise BadEncoding("control message", "a group's name")
    return text


def picture(data: bytes) -> bytes:
    return control(Control.GROUP_PICTURE, data)


def picture_of(data: bytes) -> bytes:
    if len(data) > PICTURE_BYTES:
        raise BadEncoding("control message", "a group's picture")
    return data


def groups(said: list[GroupStart]) -> bytes:
    return control(Control.GROUPS, _encode(said))


def groups_of(data: bytes) -> list[GroupStart]:
    found = _decoded(_welcomes, data, "groups")
    for each in found:
        each.check()
    return found


def _decoded(decode: Any, data: bytes, what: str) -> Any:
    try:
        return decode(data)
    except ValueError:  # msgspec's DecodeError is one
        raise BadEncoding("control message", what) from None
