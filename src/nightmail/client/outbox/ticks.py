"""How far own messages got: pending → sent ✓ → delivered ✓✓ → read, or failed.

Knows:   a message is delivered or read when the first device of the other person has or shows it, and has failed
         only if it failed on all of them.
Touches: own messages in the store.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nightmail.client.events import DeliveryReceipt, MessageFailed, SentAck
from nightmail.client.machine.context import Context
from nightmail.client.messages import DeviceDelivery, Message, Tick, conversation_id
from nightmail.client.store.rows import MessageNumber, Outgoing, ReadMark
from nightmail.client.timers.lives import counted
from nightmail.model.answers import Accepted, GroupAccepted
from nightmail.model.group_chain import is_group
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.words import Lane


class Ticks:
    def __init__(self, context: Context) -> None:
        self._context = context

    def conversation(self, message: Message) -> str:
        return conversation_id(self._context.identity.account, message.peer)

    def sent(self, row: Outgoing, said: Accepted | GroupAccepted) -> None:
        """The server accepted a row."""
        store = self._context.store
        message = store.message(row.original)
        if row.reseal or message is None:
            return
        if isinstance(said, GroupAccepted):
            message = replace(message, group_seq=said.group_seq)
            store.put_numbered(in_group(message))
            addressed: tuple[int, ...] = ()
        else:
            # The answer may be to an earlier attempt, which was sealed by an older list.
            addressed = row.sealed.get(said.list_version, ())
        places = {device: DeviceDelivery() for device in addressed} | message.places
        message = replace(message, at=said.at, places=places, state=Tick.SENT, reason="")
        self._put(counted(self._context, message))
        conversation = store.conversation(message.peer)
        if said.at > conversation.seen:
            store.put_conversation(replace(conversation, seen=said.at))
        self._context.tell(SentAck(message.id, self.conversation(message), said.at))
        if message.group_seq:
            self._context.signals.numbered_in_group(message.peer, message.group_seq)

    def failed(self, message_id: str, reason: str) -> None:
        """The message will not be sent. Ignored if a receipt says that it was: then only the answer was lost."""
        message = self._context.store.message(message_id)
        if message is None or message.state in (Tick.DELIVERED, Tick.READ, Tick.FAILED):
            return
        failed = replace(message, state=Tick.FAILED, reason=reason)
        self._context.store.put_message(counted(self._context, failed))
        self._context.tell(MessageFailed(message_id, self.conversation(message), reason, self._context.now))
        self._context.signals.message_failed(message)

    def reseal_failed(self, message_id: str, device: int, reason: str) -> None:
        if (message := self._context.store.message(message_id)) is not None and account_of(device) == message.peer:
            self.place(message, device, Tick.FAILED, self._context.now, reason)

    def place(self, message: Message, device: int, state: Tick, at: int, reason: str = "") -> bool:
        """The message reached a state on one device. States never go back. Whether this was new."""
        before = message.places.get(device, DeviceDelivery())
        # After a failure a re-seal may still arrive; a device that has the message never loses it again.
        if RANK[state] <= RANK[before.state]:
            return False
        place = DeviceDelivery(state, at, reason, before.reseals)
        self._put(replace(message, places={**message.places, device: place}))
        # Receipts share intervals, so *read* may come before *delivered*. The app is told of both, in their order.
        if state is not Tick.READ or before.state is not Tick.DELIVERED:
            told = Tick.DELIVERED if state is Tick.READ else state
            self._context.tell(DeliveryReceipt(message.id, self.conversation(message), at, device, told, reason))
        return True

    def is_lost(self, message: Message) -> bool:
        """Whether no device of the other person has it, or will have it."""
        return _judge(message) is Tick.FAILED

    def addressed(self, message: Message, devices: Iterable[int]) -> Message:
        """The message is sealed for these devices, too; it has failed if no device is left."""
        message = replace(message, places={device: DeviceDelivery() for device in devices} | message.places)
        self._put(message)
        return message

    def count_reseal(self, message: Message, device: int) -> bool:
        """Count one more re-seal for a device; False if the limit is reached."""
        place = message.places.get(device, DeviceDelivery())
        if place.reseals >= self._context.limits.reseals:
            return False
        place = replace(place, reseals=place.reseals + 1)
        self._context.store.put_message(replace(message, places={**message.places, device: place}))
        return True

    def _put(self, message: Message) -> None:
        state = _judge(message)
        if state is Tick.FAILED and message.id in self._context.store.orphans():
            state = Tick.SENT  # a successor may still get it
        if state is Tick.FAILED and message.state is not Tick.FAILED:
            reason = next(place.reason for place in message.places.values() if place.state is Tick.FAILED)
            message = replace(message, reason=reason)
            self._context.tell(MessageFailed(message.id, self.conversation(message), reason, self._context.now))
        if message.is_erased and state in (Tick.DELIVERED, Tick.READ):
            self._context.store.drop_message(message.id)  # only its fate was left, and it arrived
        else:
            self._context.store.put_message(replace(message, state=state))


RANK = {Tick.SENT: 0, Tick.FAILED: 1, Tick.DELIVERED: 2, Tick.READ: 3}
"""A later state replaces those below it."""


def in_group(message: Message, mark: ReadMark = ReadMark.NONE) -> MessageNumber:
    """The row that finds a message of a group by its number there. As its author stands the group, whose messages
    have one numbering."""
    return MessageNumber(message.peer << DEVICE_BITS, message.peer, Lane.NORMAL, message.group_seq, message.id, mark)


def _judge(message: Message) -> Tick:
    if is_group(message.peer):
        # What became of it is told for all members at once (`groups/seen_by.py`).
        return max(message.state, Tick.SENT) if message.at else message.state
    states = {place.state for device, place in message.places.items() if account_of(device) == message.peer}
    if Tick.READ in states:
        return Tick.READ
    if Tick.DELIVERED in states:
        return Tick.DELIVERED
    # Only the device that sent it knows for which devices it was sealed, so only it may say that all failed.
    if states == {Tick.FAILED} and message.at:
        return Tick.FAILED
    return Tick.SENT if message.at else message.state
