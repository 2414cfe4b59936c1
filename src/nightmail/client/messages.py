"""A message as a person sees it, and how far it got. Values only.

Never:   shows a body in a repr: what is printed by accident must not be content.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from msgspec import Struct

from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.groups.sealing import conversation_of
from nightmail.e2ee.streams.media import MediaPointer, decode_pointer
from nightmail.model.group_chain import is_group
from nightmail.model.ids import MessageId
from nightmail.model.words import Kind

Position: TypeAlias = tuple[int, int, int, str]
"""Where a message stands in its conversation: (stamp, the id's time, the id's sequence, id)."""

UNSTAMPED = (1 << 62) - 1
"""A message without a stamp comes after every message with one."""

UNCOUNTED = 1
"""The deadline of a message whose life a former version did not count: it is counted from the next start on."""


class Tick(IntEnum):
    """How far a message got. The numbers above 0 are those of `model.words.MessageState`."""

    PENDING = 0
    SENT = 1
    DELIVERED = 2
    READ = 3
    FAILED = 4


class DeviceDelivery(Struct, frozen=True, array_like=True):
    """What became of an own message on one device of the other person."""

    state: Tick = Tick.SENT
    at: int = 0
    reason: str = ""
    reseals: int = 0


class Message(Struct, frozen=True, kw_only=True):
    """One message of one conversation, ours or theirs."""

    id: str
    peer: int
    """The account at the other end, or the group."""
    by: int
    """The device that wrote it."""
    own: bool
    """Written by this account, on whichever device."""
    at: int = 0
    """When the server took it, in milliseconds since 1970; 0: not yet."""
    body: bytes
    """A content, as `e2ee/content.py` encodes it."""
    kind: Kind = Kind.TEXT
    life_ms: int = 0
    """Delete it this long after it was read, or an own one after it was sent; 0: never."""
    deadline: int = 0
    """When this device deletes it, by its `LifeClock`; 0: never, or not counted yet."""
    state: Tick = Tick.PENDING
    """How far an own message got. Another person's is SENT, and READ after it was marked so here."""
    reason: str = ""
    """Why it failed."""
    places: dict[int, DeviceDelivery] = {}
    """Of an own message: device of the other person → what became of it there."""
    handle: str = ""
    """The peer's handle, as their signed device list names it; `unnamed` until a list that names it is believed. In a
    group: the author's."""
    group_seq: int = 0
    """Its number in the group; 0: it has none yet, or is not in a group."""

    @property
    def group(self) -> int | None:
        """The group that it was written in; None: it is between two people."""
        return self.peer if is_group(self.peer) else None

    @property
    def content(self) -> Content:
        return decode_content(self.body)

    @property
    def text(self) -> str:
        """Its text; empty if it has none."""
        return self.content.text or ""

    @property
    def reply_to_message_id(self) -> str:
        """The id of the message it answers; empty: none."""
        return self.content.reply_to or ""

    @property
    def media(self) -> MediaPointer | None:
        """The file that it carries; None: it carries none, or one that cannot be understood."""
        if self.kind is not Kind.MEDIA:
            return None
        try:
            return decode_pointer(self.data)
        except Rejected:
            return None

    @property
    def data(self) -> bytes:
        """What a media pointer carries."""
        return self.content.data or b""

    @property
    def timer_ms(self) -> int | None:
        """The timer that it sets in its conversation, 0 for none; None: it is an ordinary message."""
        return self.content.life_ms or 0 if self.kind is Kind.CONTROL else None

    @property
    def is_erased(self) -> bool:
        """An own message whose life is over before any device was known to have it: only its fate is left."""
        return self.own and self.body == erased_body(self.kind)

    @property
    def is_past(self) -> bool:
        """It belongs into a backup: it is not waiting to be sent, and does not disappear."""
        return not self.life_ms and (bool(self.at) or self.state is Tick.FAILED)

    @property
    def position(self) -> Position:
        """All devices of both people sort by this, and so see the same order."""
        parsed = MessageId.parse(self.id)
        return self.at or UNSTAMPED, parsed.at_ms, parsed.sequence, self.id

    def __repr__(self) -> str:
        whose = "own" if self.own else "their"
        return f"<{whose} message {self.id}: {self.state.name.lower()}, {len(self.body)} bytes>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("state", self.state.name.lower())]


def erased_body(kind: Kind) -> bytes:
    """The body of a message whose content was deleted."""
    return encode_content(Content(kind))


def unnamed(account: int) -> str:
    """How an account is shown as long as no believed list has named its handle. Never a handle: it has spaces."""
    return f"unknown account {account:x}"


def conversation_id(one: int, other: int) -> str:
    """The pair of two accounts, the same from both sides; or the group that `other` is."""
    if is_group(other):
        return conversation_of(other)
    return f"{min(one, other):x}-{max(one, other):x}"


def answers_last(messages: Sequence[Message]) -> list[Message]:
    """The same messages, with each reply after the message it answers, whatever the stamps say."""
    there = {message.id for message in messages}
    shown: dict[str, Message] = {}
    early: dict[str, list[Message]] = {}
    """Message → replies to it that stood before it."""
    for message in messages:
        question = message.reply_to_message_id
        if question in there and question not in shown and question != message.id:
            early.setdefault(question, []).append(message)
            continue
        ready = [message]
        while ready:
            next_one = ready.pop(0)
            shown[next_one.id] = next_one
            ready[:0] = early.pop(next_one.id, [])
    # What is left are replies in a circle, which no honest client writes.
    return [*shown.values(), *(message for left in early.values() for message in left)]
