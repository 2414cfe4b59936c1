"""The port to the store: what must survive on the device.

There is one transaction at a time. Everything that is written belongs to it until `commit` makes it durable as a
whole, or `rollback` drops it. Reads see what was written, committed or not. The machine commits before it lets
anything out, so a store need not know which part wrote what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from nightmail.client.messages import Message, Position
from nightmail.model.words import Lane

from .changes_port import ChangeStore
from .groups_port import GroupStore
from .rows import (
    Contact,
    Conversation,
    Cursors,
    DeviceList,
    Early,
    Identity,
    MessageNumber,
    Missed,
    Outgoing,
    OwnKeys,
    ReadMark,
    Trusted,
)
from .schedules_port import ScheduleStore


class Store(GroupStore, ScheduleStore, ChangeStore, Protocol):
    # --- the transaction
    @property
    def dirty(self) -> bool:
        """Something was written since the last commit."""
        ...

    def commit(self) -> None:
        """Everything is durable when this returns. Raises StoreFailed: use this store no more, open it again, and read
        what is durable."""
        ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    # --- this device
    def identity(self) -> Identity | None: ...

    def put_identity(self, identity: Identity) -> None: ...

    def cursors(self) -> Cursors: ...

    def put_cursors(self, cursors: Cursors) -> None: ...

    def next_sequence(self) -> int:
        """A number that no message id of this device has had before."""
        ...

    # --- sending
    def last_number(self, to: int, lane: Lane) -> int:
        """The newest number of this stream; 0: none."""
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
        """Delete it from the history and from the search index."""
        ...

    def ended(self, by: int) -> list[Message]:
        """Messages whose deadline is not after `by`, the earliest first."""
        ...

    def next_deadline(self) -> int | None:
        """The earliest deadline of all messages."""
        ...

    def timer_change(self, peer: int) -> Message | None:
        """The control message that stands last in a conversation, of those that have not failed."""
        ...

    def search(self, terms: Sequence[str], peer: int | None, limit: int) -> list[Message]:
        """The newest messages in whose text each of the terms (`search.terms_of`) begins a word, newest first.

        In scripts without spaces each of them stands anywhere.
        """
        ...

    def history(self, peer: int, limit: int, before: Position | None = None) -> list[Message]:
        """The newest messages of a conversation that stand before a position, oldest first."""
        ...

    def numbered(self, by: int, to: int, lane: Lane, low: int, high: int) -> list[MessageNumber]: ...

    def put_numbered(self, row: MessageNumber) -> None: ...

    def marked(self, mark: ReadMark, by_account: int | None = None) -> list[MessageNumber]:
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
        """Sequence numbers that could not be opened, until an ack that lists them is answered; ascending."""
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
        """The accounts of which a list was ever believed; ascending."""
        ...

    def claims(self) -> dict[int, int]:
        """Device → the number of the open claim for its keys."""
        ...

    def put_claim(self, device: int, request: int) -> None: ...

    def drop_claim(self, device: int) -> None: ...

    def missed(self) -> list[Missed]:
        """Entries that could not be opened, the oldest first."""
        ...

    def put_missed(self, row: Missed) -> None: ...

    def drop_missed(self, before: int) -> None:
        """Delete those from before that time."""
        ...

    def find_missed(self, message_id: str) -> Missed | None: ...

    def orphans(self) -> list[str]:
        """Own messages all of whose devices were removed: a successor may get them."""
        ...

    def put_orphan(self, message_id: str) -> None: ...

    def drop_orphan(self, message_id: str) -> None: ...

    def errand(self, name: str) -> bytes | None:
        """The state of something that must go on after a restart; the part that does it knows the form."""
        ...

    def put_errand(self, name: str, state: bytes) -> None: ...

    def drop_errand(self, name: str) -> None: ...

    def errands(self, prefix: str) -> list[str]:
        """The names that begin with this, in order."""
        ...
