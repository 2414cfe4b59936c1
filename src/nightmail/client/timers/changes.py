"""The timer of a conversation: set by a message that everybody sees, and the newest one counts.

Knows:   that all devices sort messages alike (`Message.position`), so the last change in a conversation is the same
         on all of them. A change that is not sent yet stands last on its own device; one that failed counts nowhere.
Touches: messages of kind control.
Never:   keeps the timer beside the messages that set it.
"""

from __future__ import annotations

from nightmail.client.errors import Misused
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.own_devices.controls import Control
from nightmail.client.store.port import Store
from nightmail.e2ee.content import LIFE_MS_MAX, Content, decode_content, encode_content
from nightmail.e2ee.errors import Rejected
from nightmail.model.words import Kind, Lane


def change_in(body: bytes) -> int | None:
    """The timer that a message sets, 0 for none; None if it sets no timer."""
    try:
        content = decode_content(body)
    except Rejected:
        return None
    is_change = content.kind is Kind.CONTROL and content.control == Control.TIMER
    return content.life_ms or 0 if is_change else None


def change_body(life_ms: int) -> bytes:
    return encode_content(Content(Kind.CONTROL, control=Control.TIMER, life_ms=life_ms or None))


def timer_in(store: Store, peer: int) -> int:
    """The life of messages in this conversation; 0: they stay."""
    change = store.timer_change(peer)
    return (change_in(change.body) or 0) if change is not None else 0


class TimerChanges:
    def __init__(self, context: Context, outbox: Outbox) -> None:
        self._context, self._outbox = context, outbox

    def timer(self, peer: int) -> int:
        return timer_in(self._context.store, peer)

    def set(self, peer: int, life_ms: int) -> Message:
        """The person sets the timer. Raises Misused if no server would take such a life."""
        self.check(life_ms)
        return self._outbox.compose(peer, change_body(life_ms), Kind.CONTROL, Lane.NORMAL, 0)

    def check(self, life_ms: int) -> None:
        """Raises Misused unless a message may have this life."""
        if not self._is_life(life_ms):
            low, high = self._context.limits.timer_ms_min // 1_000, LIFE_MS_MAX // 86_400_000
            raise Misused(f"a message disappears after {low} seconds to {high} days, or never")

    def is_change(self, body: bytes) -> bool:
        """Whether this body of another device sets a timer that can be used."""
        life_ms = change_in(body)
        return life_ms is not None and self._is_life(life_ms)

    def _is_life(self, life_ms: int) -> bool:
        return not life_ms or self._context.limits.timer_ms_min <= life_ms <= LIFE_MS_MAX
