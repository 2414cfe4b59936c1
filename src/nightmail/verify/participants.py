"""The devices of a chaos run: real clients with profiles of their own, which are closed and opened again.

Knows:   the profile of one device, and the addresses it connects to.
Touches: the client, through its public API.
Never:   keeps state for a client: everything a client remembers is in its profile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from nightmail.client import Client
from nightmail.client.errors import ClientError
from nightmail.client.events import DeliveryReceipt, Ended, MessageFailed, ReadReceipt, SentAck
from nightmail.client.group_events import GroupReceipt
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Message, Tick
from nightmail.model.words import Lane
from nightmail.testing import RegisteredDevice
from nightmail.wire.closing import CloseCode

from .ledger import Ledger

IMPATIENT = ClientLimits(backoff_ms_max=2_000, retry_ms_max=5_000)
"""Short pauses between attempts, because a run lasts minutes, not days."""

PAGE = 500


class Participant:
    """One device, with a client that may be closed and opened again."""

    def __init__(
        self,
        number: int,
        device: RegisteredDevice,
        urls: Sequence[str],
        ledger: Ledger,
        limits: ClientLimits = IMPATIENT,
    ) -> None:
        self.number, self.device, self._urls, self._ledger, self._limits = number, device, urls, ledger, limits
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.reopened = 0

    # --- life -----------------------------------------------------------------------------------

    async def open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await self._listening().__aenter__()

    async def close(self) -> None:
        async with self._opening:
            client, self._client = self._client, None
            if client is not None:
                await client.close()

    async def reopen(self, after_s: float = 0) -> None:
        """Close the client, and open it again after a while."""
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
        client = Client(self.device.profile, self._urls, limits=self._limits)
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

        @client.on(GroupReceipt)
        def delivered_in_group(event: GroupReceipt) -> None:
            if event.delivered:
                ledger.was_delivered(number, event.message_id)

        @client.on(MessageFailed)
        def failed(event: MessageFailed) -> None:
            ledger.has_failed(event.message_id, event.reason)

        @client.on(Ended)
        def ended(event: Ended) -> None:
            if event.code != CloseCode.DISPLACED:
                return  # the server does not know the device any more: opening the client again would not help
            # Another connection replaced this one. A user would open the app again.
            task = asyncio.ensure_future(self.reopen())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        del shown, sent, delivered, read, delivered_in_group, failed, ended
        return client

    # --- writing and reading --------------------------------------------------------------------

    async def write(self, to: str | int, number: int, lane: Lane, padding: int) -> bool:
        """Send the next message of this lane and conversation: to a handle or a group, which the ledger knows by
        `number`. False if the client is closed."""
        async with self._opening:
            client = self._client
            if client is None:
                return False
            label = self._ledger.next_label(self.number, number, lane)
            # If the client ends meanwhile, its profile tells at the end whether the message was queued.
            with suppress(ClientError):
                receipt = await client.send(to, label.text(padding), lane=lane)
                self._ledger.wrote(receipt.message_id, label)
        return True

    def history(self) -> list[Message]:
        """All messages of the profile in display order, conversation by conversation."""
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
