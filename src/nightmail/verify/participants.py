"""The people of a chaos run: real clients on profiles of their own, closed and opened again as life has it.

Knows:   one device's profile, and the address it connects to.
Touches: the client, through what everybody may use.
Never:   helps a client along: whatever it keeps, it keeps in its profile.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nightmail.client import Client
from nightmail.client.errors import ClientError
from nightmail.client.events import DeliveryReceipt, Ended, MessageFailed, ReadReceipt, SentAck
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Message, Tick
from nightmail.model.words import Lane
from nightmail.testing import RegisteredDevice
from nightmail.wire.closing import CloseCode

from .ledger import Ledger

IMPATIENT = ClientLimits(backoff_ms_max=2_000, retry_ms_max=5_000)
"""A run lasts minutes, not days: nobody waits longer than this between two attempts."""

PAGE = 500


class Participant:
    """One device and whoever holds it."""

    def __init__(
        self, number: int, device: RegisteredDevice, url: str, ledger: Ledger, limits: ClientLimits = IMPATIENT
    ) -> None:
        self.number, self.device, self._url, self._ledger, self._limits = number, device, url, ledger, limits
        self._client: Client | None = None
        self._turning = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.reopened = 0

    # --- life -----------------------------------------------------------------------------------

    async def open(self) -> None:
        async with self._turning:
            if self._client is None:
                self._client = await self._listening().__aenter__()

    async def close(self) -> None:
        async with self._turning:
            client, self._client = self._client, None
            if client is not None:
                await client.close()

    async def reopen(self, after_s: float = 0) -> None:
        """Close the app, and open it again a while later."""
        await self.close()
        await asyncio.sleep(after_s)
        self.reopened += 1
        await self.open()

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.close()

    def _listening(self) -> Client:
        client = Client(self.device.profile, [self._url], limits=self._limits)
        ledger, number = self._ledger, self.number

        @client.on(Message)
        def shown(message: Message) -> None:
            ledger.was_shown(number, message)

        @client.on(SentAck)
        def sent(event: SentAck) -> None:
            ledger.was_sent(event.message_id)

        @client.on(DeliveryReceipt)
        def delivered(event: DeliveryReceipt) -> None:
            if event.state is not Tick.FAILED:
                ledger.was_delivered(number, event.message_id)

        @client.on(ReadReceipt)
        def read(event: ReadReceipt) -> None:
            for message_id in event.messages:
                ledger.was_delivered(number, message_id)

        @client.on(MessageFailed)
        def failed(event: MessageFailed) -> None:
            ledger.has_failed(event.message_id, event.reason)

        @client.on(Ended)
        def ended(event: Ended) -> None:
            if event.code != CloseCode.DISPLACED:
                return  # a server that does not know the device any more: opening the app again would not help
            # Another connection took this one's place. A person would open the app again.
            task = asyncio.ensure_future(self.reopen())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        del shown, sent, delivered, read, failed, ended
        return client

    # --- what a person does ---------------------------------------------------------------------

    async def write(self, handle: str, person: int, lane: Lane, padding: int) -> bool:
        """Write a message, as the next of this lane and conversation. False: the app is closed."""
        async with self._turning:
            client = self._client
            if client is None:
                return False
            label = self._ledger.next_label(self.number, person, lane)
            # If it ends meanwhile, what the profile holds at the end tells whether the message was taken.
            with suppress(ClientError):
                receipt = await client.send(handle, label.text(padding), lane=lane)
                self._ledger.wrote(receipt.message_id, label)
        return True

    def history(self) -> list[Message]:
        """Everything in the profile, in the order of display, conversation by conversation."""
        client = self._client
        assert client is not None
        found: list[Message] = []
        for conversation in client.conversations():
            pages: list[list[Message]] = []
            before: Message | None = None
            while page := client.history(conversation.peer, PAGE, before):
                pages.append(page)
                before = page[0]
            found += [message for page in reversed(pages) for message in page]
        return found
