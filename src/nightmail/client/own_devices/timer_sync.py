"""A new device is told the timers of all conversations. Later changes reach it as messages.

Knows:   the control message TIMERS.
Touches: messages of kind control; the outbox. The inbox stores a change and tells the app of it.
Never:   takes a change that its device could not have sent, or one that would make a message of nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.client.machine.context import Context
from nightmail.client.messages import Message, Tick
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.timers.changes import TimerChanges, change_body, change_in
from nightmail.model.ids import MessageId, account_of
from nightmail.model.words import Kind

from .controls import TimerSet, timers, timers_of

CHANGES = 500
"""How many changes one control message names."""


class TimerSync:
    def __init__(
        self, context: Context, outbox: Outbox, changes: TimerChanges, show: Callable[[Message], None]
    ) -> None:  # fmt: skip
        self._context, self._outbox, self._changes, self._show = context, outbox, changes, show

    def send_all(self, device: int) -> None:
        """A device was linked here."""
        sets: list[TimerSet] = []
        for conversation in self._context.store.conversations():
            change = self._context.store.timer_change(conversation.peer)
            # One that is not sent yet will be sealed for the new device, too.
            if change is not None and change.at:
                sets.append(TimerSet(change.peer, change.id, change.at, change_in(change.body) or 0))
        for at in range(0, len(sets), CHANGES):
            some = sets[at : at + CHANGES]
            self._outbox.control(self._context.identity.account, timers(some), only=device)

    def take(self, by: int, data: bytes) -> None:
        """The device that linked this one says how the timers stand. Raises BadEncoding."""
        store, own = self._context.store, self._context.identity.account
        for change in timers_of(data):
            body, author = change_body(change.life_ms), MessageId.parse(change.id).device
            is_theirs = account_of(author) in (own, change.peer)
            if is_theirs and change.at and self._changes.is_change(body) and store.message(change.id) is None:
                self._show(
                    Message(
                        id=change.id, peer=change.peer, by=author, own=account_of(author) == own, at=change.at,
                        body=body, kind=Kind.CONTROL, state=Tick.SENT,
                    )
                )  # fmt: skip
