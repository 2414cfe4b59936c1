"""Callers that wait for an event: for a receipt, for a device to be linked, for this device to become reachable, for
an answer of the server.

Knows:   which event each of them waits for.
Touches: futures, on the event loop's thread only.
Never:   lets a caller wait for a client that has ended.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from nightmail.model.schedule_rows import ScheduleState

from .errors import ClientError, Misused
from .events import (
    DeliveryReceipt,
    DeviceLinked,
    DeviceNotLinked,
    Event,
    MessageFailed,
    Reachable,
    ReadReceipt,
    SentAck,
)
from .messages import Tick
from .receipt import Receipt
from .schedule_errors import NotCancelled
from .schedule_events import CancelRefused, ScheduleChanged


class Waiters:
    def __init__(self) -> None:
        self._receipts: WeakValueDictionary[str, Receipt] = WeakValueDictionary()
        self._linking: dict[int, asyncio.Future[None]] = {}
        """Device that is being linked → the future of those who wait for it."""
        self._reachable: asyncio.Future[None]
        self._cancelling: dict[str, list[asyncio.Future[None]]] = {}
        """Message for later → those who wait until it is cancelled."""
        self._answers: set[asyncio.Future[Any]] = set()
        """What the server was asked for, and has not answered."""

    def begin(self, *, is_reachable: bool) -> None:
        """The client runs on this loop from now on."""
        self._reachable = asyncio.get_running_loop().create_future()
        if is_reachable:
            self._reachable.set_result(None)

    # --- what to wait for -----------------------------------------------------------------------

    def receipt(self, message_id: str) -> Receipt | None:
        """The receipt of a message, if the app still holds one."""
        return self._receipts.get(message_id)

    def follow(self, receipt: Receipt) -> Receipt:
        """Update a receipt for as long as the app holds it."""
        self._receipts[receipt.message_id] = receipt
        return receipt

    def expect(self, device: int) -> None:
        """A device is about to be linked."""
        self._linking.setdefault(device, asyncio.get_running_loop().create_future())

    async def linked(self, device: int) -> None:
        """Wait until an expected device is linked. Raises Misused if it was not."""
        if (waiting := self._linking.get(device)) is not None:
            await asyncio.shield(waiting)

    async def reachable(self) -> None:
        await asyncio.shield(self._reachable)

    def answer(self) -> asyncio.Future[Any]:
        """A future for an answer of the server. If the client ends first, it raises the reason."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)
        return answer

    def cancelled(self, message_id: str) -> asyncio.Future[None]:
        """A future that is done when a message for later is cancelled, and raises NotCancelled if that is too late."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._cancelling.setdefault(message_id, []).append(waiting)
        waiting.add_done_callback(lambda _: self._no_longer(message_id, waiting))
        return waiting

    def _no_longer(self, message_id: str, waiting: asyncio.Future[None]) -> None:
        others = [each for each in self._cancelling.pop(message_id, []) if each is not waiting]
        if others:
            self._cancelling[message_id] = others

    # --- what happens ---------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        match event:
            case SentAck():
                self._move(event.message_id, Tick.SENT)
            case DeliveryReceipt() if event.state is not Tick.FAILED:
                self._move(event.message_id, event.state)
            case ReadReceipt():
                for message_id in event.messages:
                    self._move(message_id, Tick.READ)
            case MessageFailed():
                self._move(event.message_id, Tick.FAILED, event.reason)
            case DeviceLinked():
                _settle(self._linking.pop(event.device, None))
            case DeviceNotLinked():
                _settle(self._linking.pop(event.device, None), Misused(f"the device was not linked: {event.why}"))
            case Reachable():
                _settle(self._reachable)
            case ScheduleChanged():
                self._schedule_changed(event)
            case CancelRefused():
                self._cancel_ended(event.message_id, NotCancelled(event.message_id, event.reason))
            case _:
                pass

    def _schedule_changed(self, event: ScheduleChanged) -> None:
        match event.state:
            case ScheduleState.CANCELLED:
                self._cancel_ended(event.message_id, None)
                self._move(event.message_id, Tick.FAILED, event.reason or "cancelled")
            case ScheduleState.FAILED:
                self._cancel_ended(event.message_id, NotCancelled(event.message_id, "already_ended"))
                self._move(event.message_id, Tick.FAILED, event.reason)
            case ScheduleState.DELIVERED:
                self._cancel_ended(event.message_id, NotCancelled(event.message_id, "already_sent"))
            case ScheduleState.PENDING | ScheduleState.PROCESSING:
                pass

    def _cancel_ended(self, message_id: str, error: ClientError | None) -> None:
        for waiting in self._cancelling.get(message_id, []):
            _settle(waiting, error)

    def end(self, error: ClientError) -> None:
        """No more events will come: wake every caller with the error."""
        cancelling = [waiting for some in self._cancelling.values() for waiting in some]
        for waiting in (*self._linking.values(), self._reachable, *self._answers, *cancelling):
            _settle(waiting, error)
        for receipt in list(self._receipts.values()):
            receipt.abandon(error)

    def _move(self, message_id: str, state: Tick, reason: str = "") -> None:
        if (receipt := self._receipts.get(message_id)) is not None:
            receipt.move(state, reason)


def _settle(waiting: asyncio.Future[None] | None, error: ClientError | None = None) -> None:
    """Wake the callers that wait for this."""
    if waiting is None or waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)
        waiting.exception()  # marks it as seen: perhaps nobody waits any more
