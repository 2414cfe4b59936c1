"""The rows that a client keeps, as values.

Knows:   what each field means. How a row is stored, each store knows.
Never:   shows a token, a key or content in a repr.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec
from msgspec import Struct

from nightmail.client.messages import Tick
from nightmail.model.records import Envelope
from nightmail.model.spans import Spans
from nightmail.model.words import Lane


class Identity(Struct, frozen=True):
    """Who this device is. The token proves it, and is never shown."""

    handle: str
    account: int
    device: int
    """0: not registered yet. The token is chosen already, so that registering twice gives one device."""
    registration: int
    token: bytes

    def __repr__(self) -> str:
        return f"<identity of {self.handle!r}: device {self.device:x}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("handle", self.handle), ("device", f"{self.device:x}")]


class Cursors(Struct, frozen=True):
    """How far the mailbox is stored here."""

    normal: int = 0
    high: int = 0
    receipts: int = msgspec.field(default=0, name="changes")
    """In the store it has the name that it had in the first release."""

    def of(self, lane: Lane) -> int:
        return self.high if lane is Lane.HIGH else self.normal


class Outgoing(Struct, frozen=True, kw_only=True):
    """A number that waits for its answer: a message, a re-seal, or one that was given up."""

    to: int
    lane: Lane
    n: int
    id: str
    original: str
    """The id of the message it carries: `id`, except for a re-seal."""
    only: int = 0
    """The one device that a re-seal is for; 0: all devices."""
    nonce: bytes
    tag: bytes
    composed_at: int
    void: str = ""
    """Why it was given up, so that its number is voided; empty: it is to be sent."""
    sealed: dict[int, tuple[int, ...]] = {}
    """Device list version → the recipient's devices it was sealed for under it."""
    envelopes: dict[int, Envelope] = {}
    """Device → what was sealed for it: every retry sends the same bytes."""
    content: bytes = b""
    """The content of a control message, which has no message row; empty: the content is that of `original`."""
    targets: tuple[tuple[int, int], ...] = ()
    """In a group: the devices (number, registration) that this is sealed for one by one; empty: it is for everybody."""
    ciphertext: bytes = b""
    """In a group: what was sealed for everybody."""
    epoch: int = 0
    head: bytes = b""
    """Of the group, as `ciphertext` says."""
    has_file: bool = False
    """Its message names a blob: it is sealed for no device that the blob is not for."""

    def __repr__(self) -> str:
        return f"<outgoing {self.n} to {self.to:x}: {self.id}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("to", f"{self.to:x}"), ("n", self.n), ("id", self.id)]

    @property
    def reseal(self) -> bool:
        return self.original != self.id


class ReadMark(IntEnum):
    NONE = 0
    UNREAD = 1
    READING = 2
    """Read here, and the server has not confirmed it yet."""


class MessageNumber(Struct, frozen=True):
    """Which message a number of a stream carried. Receipts and read marks name numbers."""

    by: int
    to: int
    lane: Lane
    n: int
    id: str
    mark: ReadMark = ReadMark.NONE


class Early(Struct, frozen=True):
    """Receipts for numbers of another own device whose copies have not arrived here; or, for numbers of this device,
    failures in an interval that may come again with more numbers in it."""

    by: int
    to: int
    lane: Lane
    device: int
    state: Tick
    reason: str
    at: int
    numbers: Spans


class DeviceList(Struct, frozen=True):
    """Whom a message to an account must be sealed for."""

    account: int
    version: int
    devices: dict[int, int]
    """Device → registration."""


class OwnKeys(Struct, frozen=True):
    """This device's keys, as `e2ee.state` encodes them, and what the server has of them."""

    state: bytes
    published: int = 0
    """Id of the signed prekey that the server has confirmed; 0: it has nothing of ours."""
    tended_at: int = 0
    """When old keys were last renewed and deleted."""
    list_version: int = 0
    """Of the newest device list that was signed here."""
    list_signed: bytes = b""

    def __repr__(self) -> str:
        return "<own keys>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("published", self.published)]


class Trusted(Struct, frozen=True):
    """The newest believed device list of an account, as it was signed."""

    account: int
    signed: bytes
    verified: bool = False
    """The person has compared safety numbers, for this key."""
    held: bool = False
    """The key changed after the person had verified it: nothing is sealed for it until the person accepts it."""
    changed_at: int = 0
    """When this key replaced another; 0: it is the first one."""
    left: dict[int, int] = {}
    """Device → when a list was first seen that no longer names it. Its earlier entries may still come."""
    former: bytes = b""
    """The newest list of the key before this one, as it was signed. What its devices signed may still come."""


class Missed(Struct, frozen=True):
    """An entry that could not be opened, by the id of its message."""

    id: str
    by: int
    at: int
    healed: bool = False
    """It came again, and could be opened."""


class Conversation(Struct, frozen=True):
    peer: int
    handle: str = ""
    """Empty: never learned."""
    seen: int = 0
    """The newest stamp displayed in it."""


class Contact(Struct, frozen=True):
    """What the own devices know about a person. It is not sent to the server."""

    account: int
    handle: str
    name: str = ""
    """The name that the user gave this person."""
    blocked: bool = False
    """The server was told to block this person."""
