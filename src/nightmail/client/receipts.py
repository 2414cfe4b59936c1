"""Taking in receipts: which numbers they speak of, what became of those messages, what must be sealed again.

Knows:   that a receipt may come before the message it is about, and may come again.
Touches: own messages, early receipts, the outbox for re-seals.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.model.ids import account_of
from nightmail.model.rows import Change
from nightmail.model.spans import add_span, contains, pairs
from nightmail.model.words import Lane, Reason, State

from .events import ReadReceipt
from .hub import Hub
from .mending import Mending
from .messages import Message, Tick
from .outbox import Outbox
from .sealer import Sealer
from .store import Early, Numbered
from .successors import Successors
from .ticks import Ticks

MENDABLE = (Reason.UNDECRYPTABLE, Reason.STALE_DEVICES)
"""Failures that sealing again can help against."""


class Receipts:
    def __init__(
        self, hub: Hub, sealer: Sealer, ticks: Ticks, outbox: Outbox, mending: Mending, successors: Successors
    ) -> None:  # fmt: skip
        self._hub, self._sealer, self._ticks, self._outbox = hub, sealer, ticks, outbox
        self._mending, self._successors = mending, successors

    def take(self, change: Change) -> None:
        by, to, lane, device, state, n = change.key
        me = self._hub.identity
        if account_of(by) != me.account or state not in (State.DELIVERED, State.READ, State.FAILED):
            return
        lane, tick = Lane(lane), Tick(state)
        reason = change.reason.name.lower() if tick is Tick.FAILED else ""
        found = list(self._find(by, to, lane, change.numbers))
        if by == me.device and n < 0:
            found = self._news(change, found, lane, tick, reason)
        if by == me.device and (tick is not Tick.FAILED or change.reason is Reason.DEVICE_REMOVED):
            for row in found:
                self._outbox.spoken.settled(row.id, device)
        if by != me.device:
            self._keep_early(change, found, lane, tick, reason)
        elif tick is Tick.FAILED and change.reason in MENDABLE:
            anew = True
            if change.reason is Reason.STALE_DEVICES:
                # Of a new own device this one may not have heard yet.
                found = found if account_of(device) == me.account else []
            elif found := [row for row in found if self._was_sealed_for(row, device)]:
                anew = self._sealer.renew(device)
            for row in found:
                if (message := self._hub.store.message(row.id)) is None:
                    self._outbox.say_again(row.id, device)
                else:
                    self._mending.mend(message, device, change.at, reason, anew=anew)
            return
        elif tick is Tick.FAILED and change.reason is Reason.DEVICE_REMOVED and account_of(device) == to:
            for row in found:
                if (message := self._hub.store.message(row.id)) is not None and message.peer == to:
                    self._successors.removed(message, device, change.at, reason)
            return
        if account_of(device) == to:
            self._place(found, device, tick, change.at, reason)

    def catch_up(self, message: Message, row: Numbered) -> None:
        """A copy of what another own device sent has arrived: some receipts for it may have come before."""
        for early in self._hub.store.early(row.by, row.to, row.lane):
            if contains(early.numbers, row.n):
                self._place([row], early.device, early.state, early.at, early.reason)

    def _news(self, change: Change, found: list[Numbered], lane: Lane, tick: Tick, reason: str) -> list[Numbered]:
        """Of a shared interval what it did not have when it came before: each failure is taken once.

        What it no longer has, the server knows to be heard.
        """
        by, to, _, device, _, _ = change.key
        heard = self._early(by, to, lane, device, tick, reason)
        self._hub.store.put_early(Early(by, to, lane, device, tick, reason, change.at, change.numbers))
        return [row for row in found if not contains(heard, row.n)]

    def _early(self, by: int, to: int, lane: Lane, device: int, tick: Tick, reason: str) -> list[int]:
        for early in self._hub.store.early(by, to, lane):
            if (early.device, early.state, early.reason) == (device, tick, reason):
                return list(early.numbers)
        return []

    def _find(self, by: int, to: int, lane: Lane, spans: list[int]) -> Iterable[Numbered]:
        for low, high in pairs(spans):
            yield from self._hub.store.numbered(by, to, lane, low, high)

    def _place(self, rows: Iterable[Numbered], device: int, tick: Tick, at: int, reason: str) -> None:
        read: list[Message] = []
        for row in rows:
            message = self._hub.store.message(row.id)
            if message is None or account_of(device) != message.peer:
                continue
            if self._ticks.place(message, device, tick, at, reason) and tick is Tick.READ:
                read.append(message)
        if read:
            newest = max(read, key=lambda message: message.position)
            ids = tuple(message.id for message in read)
            self._hub.tell(ReadReceipt(self._ticks.conversation(newest), newest.id, at, device, ids))

    def _was_sealed_for(self, row: Numbered, device: int) -> bool:
        """Whether that device may have had an envelope at all: nobody else failed to open it, whatever is said."""
        store, account = self._hub.store, account_of(device)
        message = store.message(row.id)
        if message is None:
            return account in (
                row.to,
                self._hub.identity.account,
            )  # a word from device to device: whoever said it knows
        if device in message.places:
            return True
        listed = store.device_list(account) if account in (message.peer, self._hub.identity.account) else None
        if listed is not None and device in listed.devices:
            return True
        # Not answered yet, or not for this device.
        return any(device in waiting.envelopes for waiting in store.outgoing() if waiting.original == message.id)

    def _keep_early(self, change: Change, found: list[Numbered], lane: Lane, tick: Tick, reason: str) -> None:
        by, to, _, device, _, _ = change.key
        wanted = sum(high - low + 1 for low, high in pairs(change.numbers))
        if len(found) == wanted:
            return
        spans = self._early(by, to, lane, device, tick, reason)
        for low, high in pairs(change.numbers):
            add_span(spans, low, high)
        self._hub.store.put_early(Early(by, to, lane, device, tick, reason, change.at, spans))
