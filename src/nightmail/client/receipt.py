"""What `send` returns: a receipt that the app can wait for."""

from __future__ import annotations

import asyncio

from .errors import DeliveryFailed
from .messages import Tick


class Receipt:
    """How far one message got. The app may drop it at any time: the message goes on without it."""

    def __init__(self, message_id: str, state: Tick = Tick.PENDING, reason: str = "") -> None:
        self.message_id = message_id
        self.state = state
        self.reason = reason
        self._waiters: list[tuple[Tick, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"<receipt of {self.message_id}: {self.state.name.lower()}>"

    async def sent(self) -> None:
        """Wait until the server has it for good. Raises DeliveryFailed."""
        await self._wait(Tick.SENT)

    async def delivered(self) -> None:
        """Wait until the first device of the other person has it. Raises DeliveryFailed."""
        await self._wait(Tick.DELIVERED)

    async def read(self) -> None:
        """Wait until it was read; forever, if the other person keeps that private. Raises DeliveryFailed."""
        await self._wait(Tick.READ)

    async def _wait(self, wanted: Tick) -> None:
        if not self._settled(wanted):
            waiter = (wanted, asyncio.get_running_loop().create_future())
            self._waiters.append(waiter)
            try:
                await waiter[1]
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        if self.state is Tick.FAILED:
            raise DeliveryFailed(self.message_id, self.reason)

    def _settled(self, wanted: Tick) -> bool:
        return self.state >= wanted  # FAILED is the highest: it settles every wait

    def move(self, state: Tick, reason: str = "") -> None:
        """For the client: the message got this far."""
        # A message that was given up may turn out to be sent: the only way out of FAILED.
        if state <= self.state and not (self.state is Tick.FAILED and state is Tick.SENT):
            return
        if self.state in (Tick.DELIVERED, Tick.READ) and state is Tick.FAILED:
            return
        self.state, self.reason = state, reason
        self._wake(None)

    def abandon(self, error: BaseException) -> None:
        """For the client: no more news will come."""
        self._wake(error)

    def _wake(self, error: BaseException | None) -> None:
        for waiter in list(self._waiters):
            wanted, future = waiter
            if error is None and not self._settled(wanted):
                continue
            self._waiters.remove(waiter)
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
