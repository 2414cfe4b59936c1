"""The life of one message: what was said outside and inside its seal, its deadline, and what is left of it.

Knows:   that 0 is no timer, and not the shortest one.
Never:   moves a deadline: the first count holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from nightmail.client.messages import Message, Tick
from nightmail.e2ee.content import LIFE_MS_MAX

if TYPE_CHECKING:
    from nightmail.client.machine.context import Context


class Life(NamedTuple):
    ms: int
    differs: bool = False
    """The server said another one than its author sealed."""


def agreed(outside_ms: int, inside_ms: int | None, *, is_reseal: bool) -> Life:
    """The life of a message that arrived. The shorter one counts.

    `inside_ms` is None if the content cannot be read: then nothing can differ. The server holds a re-seal only for
    what is left, so there the outside may be shorter; on the device the whole life begins with reading.
    """
    outside_ms = min(outside_ms, LIFE_MS_MAX)
    if inside_ms is None or outside_ms == inside_ms:
        return Life(outside_ms)
    if is_reseal and 0 < outside_ms < inside_ms:
        return Life(inside_ms)
    return Life(min(outside_ms or inside_ms, inside_ms or outside_ms), differs=True)


def counted(context: Context, message: Message) -> Message:
    """The message, whose life begins now: it was read, or an own one was sent or has failed."""
    if not message.life_ms or message.deadline or message.is_erased:
        return message
    return replace(message, deadline=context.life_clock.time() + message.life_ms)


def has_begun(message: Message) -> bool:
    """Whether its life is counted: it was read, or an own one was sent or has failed."""
    return message.state is Tick.READ or (message.own and (bool(message.at) or message.state is Tick.FAILED))


def left_ms(context: Context, message: Message) -> int:
    """What is left of the life of an own message that has a timer."""
    if message.is_erased:
        return 0
    return max(0, message.deadline - context.life_clock.time()) if message.deadline else message.life_ms
