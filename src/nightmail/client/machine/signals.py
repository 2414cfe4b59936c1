"""What parts of the machine tell each other, and ask of each other, across rooms.

A part that is built early cannot hold a part that is built later. It calls a signal instead; `parts.py` implements
this protocol and says in one place which parts hear each signal, and in which order.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from nightmail.client.media.addressing import Addressing
from nightmail.client.messages import Message
from nightmail.client.outbox.stream import OutgoingStream
from nightmail.client.store.rows import DeviceList, Outgoing
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.content import Content
from nightmail.model.answers import Said
from nightmail.model.records import GroupSealed, GroupSent, GroupVoided
from nightmail.model.refusals import StaleGroup
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.spans import Spans
from nightmail.wire.items import Devices


class Signals(Protocol):
    # --- lists and keys
    def believe(self, item: Devices) -> DeviceList | None:
        """The server sent a device list. Whom to seal for by it; None: it is not believed, or not yet."""
        ...

    def key_changed(self, account: int) -> None:
        """An account has another key than before."""
        ...

    def unblocked(self, account: int) -> None:
        """What waited for an account's list, for its keys or for the person's consent can go on."""
        ...

    def keys_published(self) -> None:
        """The server has this device's keys."""
        ...

    def own_list_published(self) -> None:
        """The server has a signed list of this account that names devices which were to be linked."""
        ...

    # --- messages
    def number_answered(self, stream: OutgoingStream, n: int, round_: int, said: Said, *, is_void: bool) -> None:
        """The server answered a number of a stream; `round_` is the one in which it was sent. `is_void`: it was told
        that the number is given up."""
        ...

    def message_stored(self, message: Message) -> None:
        """A message that arrived is in the store."""
        ...

    def control_received(self, entry: Entry, content: Content) -> None:
        """Another device of this account sent a control message. May raise `e2ee.errors.Rejected`."""
        ...

    def control_accepted(self, row: Outgoing) -> None:
        """The server took a control message for the first time; perhaps it was written before a restart."""
        ...

    def numbered_in_group(self, group: int, number: int) -> None:
        """The server took an own message to a group, under this number."""
        ...

    def recipient_removed(self, message: Message, device: int, at: int, reason: str) -> None:
        """A device of the other person was removed before it had this message."""
        ...

    def message_ended(self, message: Message) -> None:
        """The life of a message is over: what belongs to it goes, too."""
        ...

    def message_failed(self, message: Message) -> None:
        """An own message will not be sent."""
        ...

    def addressing(self, row: Outgoing, devices: Collection[int]) -> Addressing:
        """A row that names a blob is about to be sealed for these devices: is the blob for them?"""
        ...

    # --- groups
    def prepare_for_group(self, stream: OutgoingStream) -> None:
        """A stream to a group is about to be sent: what it needs may be put before it."""
        ...

    def record_for_group(self, stream: OutgoingStream, row: Outgoing) -> GroupSent | GroupSealed | GroupVoided | None:
        """What to send of a row to a group; None: something must come first, and the stream goes on by itself."""
        ...

    def group_is_stale(self, group: int, said: StaleGroup) -> None:
        """The server says that a group has changed since a message to it was sealed."""
        ...

    def is_member(self, group: int) -> bool:
        """Whether this account is in a group, by all that this device knows."""
        ...

    def number_was_used(self, to: int) -> None:
        """The server has taken a number of this device that this store does not know: it is an older copy of itself."""
        ...

    def group_receipt(self, receipt: PendingReceipt) -> None:
        """The server says what became of messages in a group."""
        ...

    def group_goes_on(self, group: int) -> None:
        """What is written to a group may go on: members, lists or keys are here."""
        ...

    # --- messages for later
    def schedule_taken(self, row: ScheduledRow) -> None:
        """The server has taken a message for later."""
        ...

    def schedules_changed(self, serials: Spans) -> None:
        """The server says that something became of the account's schedules with these serials."""
        ...

    # --- own devices
    def pending_device_gone(self, device: int) -> None:
        """The server no longer has a device that was to be linked."""
        ...

    def device_revoked(self, device: int) -> None:
        """The server has revoked a device, as this one asked."""
        ...

    def account_received(self, by: int) -> None:
        """Another device handed the account over to this one."""
        ...

    def moved_from(self, device: int) -> None:
        """The account has moved here from that device, which is about to be revoked."""
        ...

    def awaits_trust(self) -> bool:
        """Whether the old device has yet to say whose keys it trusts."""
        ...

    # --- time
    def day_passed(self) -> None:
        """Once a day: delete what is no longer needed."""
        ...
