"""Who waits for what the machine has yet to say: receipts, devices that are being linked, others' way to this one.

Knows:   which event each of them waits for.
Touches: futures, on the event loop's thread only.
Never:   lets anybody wait for a client that has ended.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

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
from .handles import Receipt
from .messages import Tick


class Waiting:
    def __init__(self) -> None:
        self._receipts: WeakValueDictionary[str, Receipt] = WeakValueDictionary()
        self._linking: dict[int, asyncio.Future[None]] = {}
        """Device that is being linked → who waits for it."""
        self._reachable: asyncio.Future[None]

    def begin(self, *, is_reachable: bool) -> None:
        """The client lives on this loop, from now on."""
        self._reachable = asyncio.get_running_loop().create_future()
        if is_reachable:
            self._reachable.set_result(None)

    # --- for what -------------------------------------------------------------------------------

    def receipt(self, message_id: str) -> Receipt | None:
        """The one that somebody holds already."""
        return self._receipts.get(message_id)

    def follow(self, receipt: Receipt) -> Receipt:
        """For as long as somebody holds it."""
        self._receipts[receipt.message_id] = receipt
        return receipt

    def expect(self, device: int) -> None:
        """A device is about to be linked."""
        self._linking.setdefault(device, asyncio.get_running_loop().create_future())

    async def linked(self, device: int) -> None:
        """Until an expected device is linked. Raises Misused if it was not."""
        if (waiting := self._linking.get(device)) is not None:
            await asyncio.shield(waiting)

    async def reachable(self) -> None:
        await asyncio.shield(self._reachable)

    # --- what the machine says ------------------------------------------------------------------

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
            case _:
                pass

    def end(self, error: ClientError) -> None:
        """Nothing more will be told: let go of everyone."""
        for waiting in (*self._linking.values(), self._reachable):
            _settle(waiting, error)
        for receipt in list(self._receipts.values()):
            receipt.abandon(error)

    def _move(self, message_id: str, state: Tick, reason: str = "") -> None:
        if (receipt := self._receipts.get(message_id)) is not None:
            receipt.move(state, reason)


def _settle(waiting: asyncio.Future[None] | None, error: ClientError | None = None) -> None:
    """Let go of whoever waits."""
    if waiting is None or waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)
        waiting.exception()  # if nobody waits any more, nobody has to look
