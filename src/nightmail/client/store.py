"""What must survive on the device, and the port to whatever keeps it.

There is one transaction at a time: everything that is written belongs to it until `commit` makes it
durable as a whole, or `rollback` drops it. Reads see what was written, committed or not. The machine
commits before it lets anything out; a store therefore needs no notion of who wrote what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol

from msgspec import Struct

from nightmail.model.records import Envelope
from nightmail.model.spans import Spans
from nightmail.model.words import Lane

from .messages import Message, Position, Tick


class Identity(Struct, frozen=True):
    """Who this device is. The token proves it, and is shown to nobody."""

    handle: str
    account: int
    device: int
    """0: not registered yet, but the token is chosen, so that asking twice gives one device."""
    registration: int
    token: bytes

    def __repr__(self) -> str:
        return f"<identity of {self.handle!r}: device {self.device:x}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("handle", self.handle), ("device", f"{self.device:x}")]


class Cursors(Struct, frozen=True):
    """How far the mailbox is safe here."""

    normal: int = 0
    high: int = 0
    changes: int = 0

    def of(self, lane: Lane) -> int:
        return self.high if lane is Lane.HIGH else self.normal


class Outgoing(Struct, frozen=True, kw_only=True):
    """A number that waits for its answer: a message, a re-seal, or one that was given up."""

    to: int
    lane: Lane
    n: int
    id: str
    original: str
    """The message it carries: `id`, except for a re-seal."""
    only: int = 0
    """A re-seal is for this device alone; 0: for all."""
    nonce: bytes
    tag: bytes
    composed_at: int
    void: str = ""
    """Why it was given up: its number is voided. Empty: it is to be sent."""
    sealed: dict[int, tuple[int, ...]] = {}
    """Device list version → the recipient's devices it was sealed for under it."""
    envelopes: dict[int, Envelope] = {}
    """Device → what was sealed for it: every retry says the same bytes."""
    content: bytes = b""
    """Of a control message, which no message in the store stands for; empty: that of `original`."""

    def __repr__(self) -> str:
        return f"<outgoing {self.n} to {self.to:x}: {self.id}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("to", f"{self.to:x}"), ("n", self.n), ("id", self.id)]

    @property
    def reseal(self) -> bool:
        return self.original != self.id


class Mark(IntEnum):
    NONE = 0
    UNREAD = 1
    READING = 2
    """Read here, and the server has not confirmed that it knows."""


class Numbered(Struct, frozen=True):
    """Which message a number of a stream carried. Receipts and read marks speak in numbers."""

    by: int
    to: int
    lane: Lane
    n: int
    id: str
    mark: Mark = Mark.NONE


class Early(Struct, frozen=True):
    """Receipts for numbers of another own device whose copies have not arrived here; or, of this device, failures
    of an interval that may come again with more numbers in it."""

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
    """When old keys were last renewed and let go."""
    list_version: int = 0
    """Of the newest device list that was signed here."""
    list_signed: bytes = b""

    def __repr__(self) -> str:
        return "<own keys>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("published", self.published)]


class Trusted(Struct, frozen=True):
    """The newest device list of an account that was believed, as it was signed."""

    account: int
    signed: bytes
    verified: bool = False
    """The person has compared safety numbers, for this key."""
    held: bool = False
    """The key changed after it was verified: nothing is sealed for it until the person accepts it."""
    changed_at: int = 0
    """When this key took the place of another; 0: it is the first one."""
    left: dict[int, int] = {}
    """Device → when a list was first seen that no longer names it: what it sent before may still come."""


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
    """What this device knows of a person, and nobody else does."""

    account: int
    handle: str
    name: str = ""
    """What the person is called here."""
    blocked: bool = False
    """The server was told so."""


class Store(Protocol):
    # --- the transaction
    @property
    def dirty(self) -> bool:
        """Something was written since the last commit."""
        ...

    def commit(self) -> None:
        """Durable as a whole when this returns. Raises StoreFailed: take nothing more, open anew, and see what is."""
        ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    # --- this device
    def identity(self) -> Identity | None: ...

    def put_identity(self, identity: Identity) -> None: ...

    def cursors(self) -> Cursors: ...

    def put_cursors(self, cursors: Cursors) -> None: ...

    def next_sequence(self) -> int:
        """A number that no message id of this device had before."""
        ...

    # --- sending
    def last_number(self, to: int, lane: Lane) -> int:
        """The newest number given to a message in this stream; 0: none."""
        ...

    def put_last_number(self, to: int, lane: Lane, n: int) -> None: ...

    def outgoing(self) -> list[Outgoing]:
        """Everything that waits for an answer, by stream and number."""
        ...

    def put_outgoing(self, row: Outgoing) -> None: ...

    def drop_outgoing(self, to: int, lane: Lane, n: int) -> None: ...

    # --- messages
    def message(self, message_id: str) -> Message | None: ...

    def put_message(self, message: Message) -> None: ...

    def drop_message(self, message_id: str) -> None:
        """It is gone from the history and from what can be searched."""
        ...

    def search(self, terms: Sequence[str], peer: int | None, limit: int) -> list[Message]:
        """The newest messages in whose text each of the terms (`words.terms_of`) begins a word, newest first.

        In scripts without spaces each of them stands anywhere.
        """
        ...

    def history(self, peer: int, limit: int, before: Position | None = None) -> list[Message]:
        """The newest messages of a conversation that stand before a position, oldest first."""
        ...

    def numbered(self, by: int, to: int, lane: Lane, low: int, high: int) -> list[Numbered]: ...

    def put_numbered(self, row: Numbered) -> None: ...

    def marked(self, mark: Mark, by_account: int | None = None) -> list[Numbered]:
        """Everything with this mark, of one author account or of all, by (by, lane, n)."""
        ...

    def conversation(self, peer: int) -> Conversation: ...

    def conversations(self) -> list[Conversation]:
        """The newest first."""
        ...

    def put_conversation(self, row: Conversation) -> None: ...

    def contact(self, account: int) -> Contact | None: ...

    def contacts(self) -> list[Contact]:
        """By account."""
        ...

    def put_contact(self, row: Contact) -> None: ...

    def drop_contact(self, account: int) -> None: ...

    # --- receiving
    def unopened(self, lane: Lane) -> list[int]:
        """Sequence numbers that could not be opened, until the server is known to know; ascending."""
        ...

    def put_unopened(self, lane: Lane, seq: int) -> None: ...

    def drop_unopened(self, lane: Lane, seqs: Iterable[int]) -> None: ...

    def early(self, by: int, to: int, lane: Lane) -> Sequence[Early]: ...

    def put_early(self, row: Early) -> None: ...

    # --- devices of others
    def device_list(self, account: int) -> DeviceList | None: ...

    def put_device_list(self, row: DeviceList) -> None: ...

    # --- sealing
    def own_keys(self) -> OwnKeys | None: ...

    def put_own_keys(self, row: OwnKeys) -> None: ...

    def peer(self, device: int) -> bytes | None:
        """The sessions with a device, as `e2ee.state` encodes them."""
        ...

    def put_peer(self, device: int, state: bytes) -> None: ...

    def drop_peer(self, device: int) -> None: ...

    def peers(self, account: int | None = None) -> list[int]:
        """The devices there are sessions with, of one account or of all."""
        ...

    def trusted(self, account: int) -> Trusted | None: ...

    def put_trusted(self, row: Trusted) -> None: ...

    def trusted_accounts(self) -> list[int]:
        """Of whom a list was ever believed; ascending."""
        ...

    def claims(self) -> dict[int, int]:
        """Device → the number of the request for its keys that is not answered yet."""
        ...

    def put_claim(self, device: int, request: int) -> None: ...

    def drop_claim(self, device: int) -> None: ...

    def missed(self) -> list[Missed]:
        """What could not be opened, the oldest first."""
        ...

    def put_missed(self, row: Missed) -> None: ...

    def drop_missed(self, before: int) -> None:
        """Forget what was missed before that time."""
        ...

    def find_missed(self, message_id: str) -> Missed | None: ...

    def orphans(self) -> list[str]:
        """Own messages all of whose devices were removed: a successor may want them."""
        ...

    def put_orphan(self, message_id: str) -> None: ...

    def drop_orphan(self, message_id: str) -> None: ...

    def errand(self, name: str) -> bytes | None:
        """Something that is half done and must go on after a restart, in the words of whoever does it."""
        ...

    def put_errand(self, name: str, state: bytes) -> None: ...

    def drop_errand(self, name: str) -> None: ...

    def errands(self, prefix: str) -> list[str]:
        """The names that begin so, in order."""
        ...
