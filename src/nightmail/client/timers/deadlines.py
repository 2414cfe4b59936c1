"""Deletes messages at their deadline: from the history, and with that from search, quotes and previews.

Knows:   what must stay: the ids of what is gone, so that a copy which comes late is not shown again; and of an own
         message, until a device of the other person has it, that it was sent, so that its author can learn that it
         failed.
Touches: messages; one errand for each that is gone.
Never:   leaves a message to be shown whose deadline has passed: the driver ticks before the app can look.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from nightmail.client.events import Disappeared
from nightmail.client.machine.context import Context
from nightmail.client.messages import UNCOUNTED, Message, Tick, conversation_id, erased_body

from .lives import counted

GONE = "gone "
"""Errands: a message that was deleted here."""

_encode = msgspec.msgpack.Encoder().encode
_time = msgspec.msgpack.Decoder(int).decode


class Deadlines:
    def __init__(self, context: Context) -> None:
        self._context = context

    def deadline(self) -> int | None:
        clock, due = self._context.life_clock, self._context.store.next_deadline()
        return None if due is None else clock.by_clock(min(due, clock.save_due))

    def tick(self) -> None:
        store, clock = self._context.store, self._context.life_clock
        due = store.next_deadline()
        if due is None:
            return
        time = clock.time()
        if due == UNCOUNTED:
            for message in store.ended(UNCOUNTED):
                store.put_message(counted(self._context, replace(message, deadline=0)))
        gone: dict[int, list[str]] = {}
        for message in store.ended(time):
            self._end(message)
            gone.setdefault(message.peer, []).append(message.id)
        for peer, ids in gone.items():
            conversation = conversation_id(self._context.identity.account, peer)
            self._context.tell(Disappeared(conversation, tuple(ids)))
        if time >= clock.save_due:
            clock.save()

    def committing(self) -> None:
        """Something is about to be committed: the time goes with it while a life is counted."""
        if self._context.store.next_deadline() is not None:
            self._context.life_clock.save()

    def is_gone(self, message_id: str) -> bool:
        """Whether it was here, and its life is over."""
        return self._context.store.errand(f"{GONE}{message_id}") is not None

    def forget(self) -> None:
        """Once a day: what has not come again by now will not come."""
        store, oldest = self._context.store, self._context.now - self._context.limits.remember_ms
        for name in store.errands(GONE):
            if _time(store.errand(name) or b"\0") < oldest:
                store.drop_errand(name)

    def _end(self, message: Message) -> None:
        store, me = self._context.store, self._context.identity
        self._context.signals.message_ended(message)
        if message.by == me.device and message.state not in (Tick.DELIVERED, Tick.READ):
            store.put_message(replace(message, body=erased_body(message.kind), deadline=0))
        else:
            store.drop_message(message.id)
            store.put_errand(f"{GONE}{message.id}", _encode(self._context.now))
