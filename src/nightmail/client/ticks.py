"""How far own messages got: pending → sent ✓ → delivered ✓✓ → read, or failed.

Knows:   D1: delivered or read when the first device of the other person is, failed only if all have.
Touches: own messages in the store.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nightmail.model.answers import Accepted
from nightmail.model.ids import account_of

from .events import DeliveryReceipt, MessageFailed, SentAck
from .hub import Hub
from .messages import Message, Place, Tick, conversation_id
from .store import Outgoing


class Ticks:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def conversation(self, message: Message) -> str:
        return conversation_id(self._hub.identity.account, message.peer)

    def sent(self, row: Outgoing, said: Accepted) -> None:
        """The server has it, for these devices."""
        store = self._hub.store
        message = store.message(row.original)
        if row.reseal or message is None:
            return
        # The answer may be to an earlier attempt, which was sealed by an earlier list.
        addressed = row.sealed.get(said.list_version, ())
        places = {device: Place() for device in addressed} | message.places
        message = replace(message, at=said.at, places=places, state=Tick.SENT, reason="")
        self._put(message)
        conversation = store.conversation(message.peer)
        if said.at > conversation.seen:
            store.put_conversation(replace(conversation, seen=said.at))
        self._hub.tell(SentAck(message.id, self.conversation(message), said.at))

    def failed(self, message_id: str, reason: str) -> None:
        """It will not be sent at all; unless a receipt says that it was, and only the answer was lost."""
        message = self._hub.store.message(message_id)
        if message is None or message.state in (Tick.DELIVERED, Tick.READ, Tick.FAILED):
            return
        self._hub.store.put_message(replace(message, state=Tick.FAILED, reason=reason))
        self._hub.tell(MessageFailed(message_id, self.conversation(message), reason, self._hub.now))

    def reseal_failed(self, message_id: str, device: int, reason: str) -> None:
        if (message := self._hub.store.message(message_id)) is not None and account_of(device) == message.peer:
            self.place(message, device, Tick.FAILED, self._hub.now, reason)

    def place(self, message: Message, device: int, state: Tick, at: int, reason: str = "") -> bool:
        """Something became of it on one device. Never backward; whether it was news."""
        before = message.places.get(device, Place())
        # A device that failed may get it yet, by a re-seal; one that has it never loses it again.
        if _RANK[state] <= _RANK[before.state]:
            return False
        place = Place(state, at, reason, before.reseals)
        self._put(replace(message, places={**message.places, device: place}))
        if state is not Tick.READ:
            self._hub.tell(DeliveryReceipt(message.id, self.conversation(message), at, device, state, reason))
        return True

    def failed_on(self, message: Message, device: int, at: int, reason: str) -> bool:
        return self.place(message, device, Tick.FAILED, at, reason)

    def is_lost(self, message: Message) -> bool:
        """No device of the other person has it, or will have it."""
        return _judge(message) is Tick.FAILED

    def addressed(self, message: Message, devices: Iterable[int]) -> Message:
        """It is sealed for these devices, too; or failed, if no device is left."""
        message = replace(message, places={device: Place() for device in devices} | message.places)
        self._put(message)
        return message

    def count_reseal(self, message: Message, device: int) -> bool:
        """One more re-seal for a device; False: that were too many."""
        place = message.places.get(device, Place())
        if place.reseals >= self._hub.limits.reseals:
            return False
        place = replace(place, reseals=place.reseals + 1)
        self._hub.store.put_message(replace(message, places={**message.places, device: place}))
        return True

    def _put(self, message: Message) -> None:
        state = _judge(message)
        if state is Tick.FAILED and message.id in self._hub.store.orphans():
            state = Tick.SENT  # a successor may have it yet
        if state is Tick.FAILED and message.state is not Tick.FAILED:
            reason = next(place.reason for place in message.places.values() if place.state is Tick.FAILED)
            message = replace(message, reason=reason)
            self._hub.tell(MessageFailed(message.id, self.conversation(message), reason, self._hub.now))
        self._hub.store.put_message(replace(message, state=state))


_RANK = {Tick.SENT: 0, Tick.FAILED: 1, Tick.DELIVERED: 2, Tick.READ: 3}


def _judge(message: Message) -> Tick:
    states = {place.state for device, place in message.places.items() if account_of(device) == message.peer}
    if Tick.READ in states:
        return Tick.READ
    if Tick.DELIVERED in states:
        return Tick.DELIVERED
    # Only the device that sent it knows for whom it was sealed: no other may say that all have failed.
    if states == {Tick.FAILED} and message.at:
        return Tick.FAILED
    return Tick.SENT if message.at else message.state
