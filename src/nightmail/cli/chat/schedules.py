"""What the chat window shows of messages for later, and asks of the client about them.

Knows:   which ones somebody is cancelling in this window. Everything else is read from the client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from msgspec import Struct

from nightmail.cli.errors import REASONS
from nightmail.cli.output import clock, plain_body
from nightmail.cli.schedule_words import state_words
from nightmail.cli.times import time_or_delay
from nightmail.client import Client, Content, ScheduledMessage
from nightmail.client.errors import Misused
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind

from .lines import LaterLine, Notice

_OPEN = (ScheduleState.PENDING, ScheduleState.PROCESSING)
CANCELLING = "cancelling"
EXCERPT = 40
"""Characters of a message that are quoted when it has failed."""


class ScheduledSummary(Struct, frozen=True):
    """A message for later, as a row of the list."""

    id: str
    name: str
    """Of the conversation."""
    at: str
    state: str
    text: str
    """Empty once it was delivered or cancelled."""
    is_open: bool


class ChatSchedules:
    def __init__(self, client: Client, name: Callable[[int], str]) -> None:
        self._client, self._name = client, name
        self._cancelling: set[str] = set()

    # --- reading --------------------------------------------------------------------------------

    def peers(self) -> list[int]:
        """Where something will be delivered, or could not be."""
        return list(dict.fromkeys(each.peer for each in self._client.scheduled() if not _is_past(each)))

    def lines(self, peer: int, shown: Collection[str]) -> list[LaterLine]:
        """What will be delivered to a conversation, by its time. `shown` are the ids of messages that stand in it: on
        another own device, a message may have come before the word that it was delivered."""
        return [
            LaterLine(each.id, each.text, f"at {clock(each.deliver_at)}{', queued' if each.is_queued else ''}")
            for each in self._client.scheduled()
            if each.peer == peer and each.state in _OPEN and each.id not in shown
        ]

    def notices(self, peer: int) -> list[Notice]:
        """What could not be delivered. It stays in the conversation for as long as the client lists it."""
        return [
            Notice(each.deliver_at, _failed_words(each), grave=True)
            for each in self._client.scheduled()
            if each.peer == peer and each.state is ScheduleState.FAILED
        ]

    def rows(self) -> list[ScheduledSummary]:
        """All conversations: what is still to come first, by its time; then what has ended, the newest first."""
        listed = self._client.scheduled()
        coming = [each for each in listed if each.state in _OPEN]
        ended = [each for each in reversed(listed) if each.state not in _OPEN]
        return [self._row(each) for each in (*coming, *ended)]

    def _row(self, message: ScheduledMessage) -> ScheduledSummary:
        is_open = message.state in _OPEN
        state = CANCELLING if is_open and message.id in self._cancelling else state_words(message)
        if message.state is ScheduleState.FAILED:
            state += f": {REASONS.get(message.reason, message.reason)}"
        return ScheduledSummary(
            message.id, self._name(message.peer), clock(message.deliver_at), state, message.text, is_open
        )  # fmt: skip

    # --- actions --------------------------------------------------------------------------------

    async def schedule(self, to: str | int, content: Content, typed: str) -> None:
        """Have a message delivered at the time that was typed. It is durable when this returns. Raises Misused, BadTime
        and what sending raises."""
        try:
            when = time_or_delay(typed)
        except ValueError as error:
            raise Misused(str(error)) from None
        if isinstance(when, datetime):
            await self._client.schedule(to, content, at=when)
        else:
            await self._client.schedule(to, content, delay=when)

    async def cancel(self, message_id: str) -> None:
        """Returns when it is certain that it is never delivered. Raises NotCancelled."""
        self._cancelling.add(message_id)
        try:
            await self._client.cancel(message_id)
        finally:
            self._cancelling.discard(message_id)


def text_content(text: str, reply_to: str, mentions: Collection[int] = ()) -> Content:
    return Content(Kind.TEXT, text, reply_to=reply_to or None, mentions=tuple(mentions))


def _is_past(message: ScheduledMessage) -> bool:
    return message.state in (ScheduleState.DELIVERED, ScheduleState.CANCELLED)


def _failed_words(message: ScheduledMessage) -> str:
    text = plain_body(message.text).replace("\n", " ")
    said = f" “{text[:EXCERPT]}{'…' if len(text) > EXCERPT else ''}”" if text else ""
    return f"Your message for {clock(message.deliver_at)}{said} failed: {REASONS.get(message.reason, message.reason)}."
