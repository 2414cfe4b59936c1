"""Taking receipts: which numbers they are about, what became of those messages, what must be sealed again.

Knows:   that a receipt may come before the message it is about, and may come again.
Touches: own messages, early receipts, the outbox for re-seals.
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.client.events import ReadReceipt
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message, Tick
from nightmail.client.outbox.control_copies import ControlCopies
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.reseals import Reseals
from nightmail.client.outbox.successors import Successors
from nightmail.client.outbox.ticks import RANK, Ticks
from nightmail.client.schedules.early_receipts import EarlyReceipts
from nightmail.client.store.rows import Early, MessageNumber
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.trust.sealer import Sealer
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of
from nightmail.model.rows import PendingReceipt
from nightmail.model.spans import add_span, contains, pairs
from nightmail.model.words import Lane, MessageState, Reason

RESEALABLE = (Reason.UNDECRYPTABLE, Reason.STALE_DEVICES)
"""Failures that sealing again can repair."""


class IncomingReceipts:
    def __init__(
        self, context: Context, sealer: Sealer, ticks: Ticks, outbox: Outbox, control_copies: ControlCopies,
        reseals: Reseals, successors: Successors, deadlines: Deadlines, early_receipts: EarlyReceipts,
    ) -> None:  # fmt: skip
        self._context, self._sealer, self._ticks, self._outbox = context, sealer, ticks, outbox
        self._control_copies, self._reseals, self._successors = control_copies, reseals, successors
        self._deadlines, self._early_receipts = deadlines, early_receipts

    def take(self, receipt: PendingReceipt) -> None:
        by, to, lane, device, state, n = receipt.key
        me = self._context.identity
        if not by and to == me.account:
            self._context.signals.schedules_changed(receipt.numbers)
            return
        if by == me.device:
            self._early_receipts.keep(receipt)
        if is_group(to):
            self._context.signals.group_receipt(receipt)
            return
        if account_of(by) != me.account or state not in (
            MessageState.DELIVERED,
            MessageState.READ,
            MessageState.FAILED,
        ):
            return
        lane, tick = Lane(lane), Tick(state)
        reason = receipt.reason.name.lower() if tick is Tick.FAILED else ""
        found = list(self._find(by, to, lane, receipt.numbers))
        if by == me.device and n < 0:
            found = self._news(receipt, found, lane, tick, reason)
        if by == me.device and (tick is not Tick.FAILED or receipt.reason is Reason.DEVICE_REMOVED):
            for row in found:
                self._control_copies.settled(row.id, device)
        if by != me.device:
            self._keep_early(receipt, found, lane, tick, reason)
        elif tick is Tick.FAILED and receipt.reason in RESEALABLE:
            other_session = True
            if receipt.reason is Reason.STALE_DEVICES:
                # This device may not know of a new own device yet.
                found = found if account_of(device) == me.account else []
            elif found := [row for row in found if self._was_sealed_for(row, device)]:
                other_session = self._sealer.renew(device)
            for row in found:
                if (message := self._context.store.message(row.id)) is None:
                    self._outbox.control_again(row.id, device)
                else:
                    self._reseals.reseal(message, device, receipt.at, reason, other_session=other_session)
            return
        elif tick is Tick.FAILED and receipt.reason is Reason.DEVICE_REMOVED and account_of(device) == to:
            for row in found:
                if (message := self._context.store.message(row.id)) is not None and message.peer == to:
                    self._successors.removed(message, device, receipt.at, reason)
            return
        if account_of(device) == to:
            self._place(found, device, tick, receipt.at, reason)

    def learned(self, row: MessageNumber) -> None:
        """A message that was scheduled has its number. Receipts for it may have come before."""
        if row.by != self._context.identity.device:
            self.catch_up(row)
        for receipt in self._early_receipts.take():
            self.take(receipt)

    def catch_up(self, row: MessageNumber) -> None:
        """A copy of what another own device sent has arrived. Receipts for it may have come before.

        The message itself may have been here already: a new device is told of the timers, which are messages.
        """
        waiting = self._context.store.early(row.by, row.to, row.lane)
        # A failure may have been followed by a re-seal, and *delivered* by *read*.
        for early in sorted(waiting, key=lambda row: RANK[row.state]):
            if contains(early.numbers, row.n):
                self._place([row], early.device, early.state, early.at, early.reason)

    def _news(
        self, receipt: PendingReceipt, found: list[MessageNumber], lane: Lane, tick: Tick, reason: str
    ) -> list[MessageNumber]:
        """The numbers of a shared interval that are new: each failure is taken once.

        Numbers that the interval no longer has were acknowledged.
        """
        by, to, _, device, _, _ = receipt.key
        known = self._early(by, to, lane, device, tick, reason)
        self._context.store.put_early(Early(by, to, lane, device, tick, reason, receipt.at, receipt.numbers))
        return [row for row in found if not contains(known, row.n)]

    def _early(self, by: int, to: int, lane: Lane, device: int, tick: Tick, reason: str) -> list[int]:
        for early in self._context.store.early(by, to, lane):
            if (early.device, early.state, early.reason) == (device, tick, reason):
                return list(early.numbers)
        return []

    def _find(self, by: int, to: int, lane: Lane, spans: list[int]) -> Iterable[MessageNumber]:
        for low, high in pairs(spans):
            yield from self._context.store.numbered(by, to, lane, low, high)

    def _place(self, rows: Iterable[MessageNumber], device: int, tick: Tick, at: int, reason: str) -> None:
        read: list[Message] = []
        for row in rows:
            message = self._context.store.message(row.id)
            if message is None or account_of(device) != message.peer:
                continue
            if self._ticks.place(message, device, tick, at, reason) and tick is Tick.READ:
                read.append(message)
        if read:
            newest = max(read, key=lambda message: message.position)
            ids = tuple(message.id for message in read)
            self._context.tell(ReadReceipt(self._ticks.conversation(newest), newest.id, at, device, ids))

    def _was_sealed_for(self, row: MessageNumber, device: int) -> bool:
        """Whether that device can have had an envelope. If not, it cannot have failed to open it, whatever is said."""
        store, account = self._context.store, account_of(device)
        message = store.message(row.id)
        if message is None:  # a control message, or one whose life is over: of that nothing is sealed again
            return account in (row.to, self._context.identity.account) and not self._deadlines.is_gone(row.id)
        if device in message.places:
            return True
        listed = store.device_list(account) if account in (message.peer, self._context.identity.account) else None
        if listed is not None and device in listed.devices:
            return True
        # The message may not be answered yet.
        return any(device in waiting.envelopes for waiting in store.outgoing() if waiting.original == message.id)

    def _keep_early(
        self, receipt: PendingReceipt, found: list[MessageNumber], lane: Lane, tick: Tick, reason: str
    ) -> None:
        by, to, _, device, _, _ = receipt.key
        wanted = sum(high - low + 1 for low, high in pairs(receipt.numbers))
        if len(found) == wanted:
            return
        spans = self._early(by, to, lane, device, tick, reason)
        for low, high in pairs(receipt.numbers):
            add_span(spans, low, high)
        self._context.store.put_early(Early(by, to, lane, device, tick, reason, receipt.at, spans))
