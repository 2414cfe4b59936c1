"""What was sent to devices that are gone: whoever came in their place gets it, sealed again.

Knows:   the orphans: own messages all of whose devices were removed before they had it.
Touches: one row per orphan, so that it is looked after again after a restart.
Never:   seals a message for a device that it was sealed for before; or lets it fail while somebody may be there.
"""

from __future__ import annotations

from .again import Again
from .hub import Hub
from .lists import Lists
from .messages import Message
from .outbox import Outbox
from .store import DeviceList
from .ticks import Ticks


class Successors:
    def __init__(self, hub: Hub, lists: Lists, ticks: Ticks, outbox: Outbox) -> None:
        self._hub, self._lists, self._ticks, self._outbox = hub, lists, ticks, outbox
        self._again = Again(hub, self._look_for_all)
        outbox.streams.on_removed = self.removed

    def removed(self, message: Message, device: int, at: int, reason: str) -> None:
        """A device is gone and did not have this message. If it was the last one, its successors are looked for."""
        store = self._hub.store
        store.put_orphan(message.id)  # so that it does not count as failed before somebody has looked
        self._ticks.failed_on(message, device, at, reason)
        after = store.message(message.id)
        # While the server's answer is not here, nobody knows for whom else it was taken.
        if after is None or (after.at and not self._ticks.is_lost(after)):
            store.drop_orphan(message.id)
        else:
            self._look(message.peer)

    def connected(self) -> None:
        self._again.connected()

    def lost(self) -> None:
        self._again.lost()

    def deadline(self) -> int | None:
        return self._again.due

    def tick(self) -> None:
        self._again.tick()

    def _look_for_all(self) -> None:
        for peer in {message.peer for message in self._orphans()}:
            self._look(peer)

    def _look(self, peer: int) -> None:
        if self._hub.online:
            self._lists.forget(peer)
            self._lists.want(peer, (self, peer), self._found, self._again.later)

    def _found(self, listed: DeviceList) -> None:
        """The list is here: whom of it was the message never sealed for?"""
        self._again.succeeded()
        for message in self._orphans():
            if message.peer != listed.account:
                continue
            if not message.at and self._is_unanswered(message):
                self._again.later()
                continue
            self._hub.store.drop_orphan(message.id)
            if not message.at or not self._ticks.is_lost(message):
                continue  # it was given up; or somebody else had it after all
            fresh = [device for device in listed.devices if device not in message.places]
            # Without any, it has failed after all.
            message = self._ticks.addressed(message, fresh)
            for device in fresh:
                self._outbox.reseal(message, device)

    def _is_unanswered(self, message: Message) -> bool:
        """Also if it was given up meanwhile: what its void is answered tells whether it was taken before."""
        return any(row.original == message.id and not row.reseal for row in self._hub.store.outgoing())

    def _orphans(self) -> list[Message]:
        store = self._hub.store
        return [message for ident in store.orphans() if (message := store.message(ident)) is not None]
