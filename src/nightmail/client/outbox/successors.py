"""Messages that were sent to devices which are gone: sealed again for the devices that took their place.

Knows:   the orphans: own messages all of whose devices were removed before they had them.
Touches: one row per orphan, so that a restart only delays it.
Never:   seals a message for a device that it was sealed for before; or lets it fail while there may be a successor.
"""

from __future__ import annotations

from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.messages import Message, Tick
from nightmail.client.store.rows import DeviceList
from nightmail.client.trust.device_lists import DeviceLists

from .outbox import Outbox
from .ticks import Ticks


class Successors:
    def __init__(self, context: Context, lists: DeviceLists, ticks: Ticks, outbox: Outbox) -> None:
        self._context, self._lists, self._ticks, self._outbox = context, lists, ticks, outbox
        self.retry = Retry(context, self._look_for_all)

    def removed(self, message: Message, device: int, at: int, reason: str) -> None:
        """A device was removed before it had this message. If it was the last one, look for its successors."""
        store = self._context.store
        store.put_orphan(message.id)  # so that it does not count as failed before the new list was seen
        self._ticks.place(message, device, Tick.FAILED, at, reason)
        after = store.message(message.id)
        # Until the server answers, it is not known for which other devices it took the message.
        if after is None or (after.at and not self._ticks.is_lost(after)):
            store.drop_orphan(message.id)
        else:
            self._look(message.peer)

    def connected(self) -> None:
        self.retry.reset()
        self._look_for_all()

    def _look_for_all(self) -> None:
        for peer in {message.peer for message in self._orphans()}:
            self._look(peer)

    def _look(self, peer: int) -> None:
        if self._context.online:
            self._lists.forget(peer)
            self._lists.want(peer, (self, peer), self._found, self.retry.later)

    def _found(self, listed: DeviceList) -> None:
        """The list is here: for which of its devices was the message never sealed?"""
        self.retry.reset()
        for message in self._orphans():
            if message.peer != listed.account:
                continue
            if not message.at and self._is_unanswered(message):
                self.retry.later()
                continue
            self._context.store.drop_orphan(message.id)
            if not message.at or not self._ticks.is_lost(message):
                continue  # it was given up; or another device had it after all
            fresh = [device for device in listed.devices if device not in message.places]
            # Without any, the message has failed after all.
            message = self._ticks.addressed(message, fresh)
            for device in fresh:
                self._outbox.reseal(message, device)

    def _is_unanswered(self, message: Message) -> bool:
        """Also if it was given up meanwhile: the answer to its void says whether the server had taken it before."""
        return any(row.original == message.id and not row.reseal for row in self._context.store.outgoing())

    def _orphans(self) -> list[Message]:
        store = self._context.store
        return [message for ident in store.orphans() if (message := store.message(ident)) is not None]
