"""What the delivery log tells about one message: its whole life, without content."""

from __future__ import annotations

from msgspec import Struct

from .words import MessageState


class Event(Struct, frozen=True):
    """One thing that happened to a message, on one device (0: at the server)."""

    at: int
    device: int
    what: str
    """accepted, copied, blocked, delivered, read, `failed:{reason}`, or deleted (from the server).

    And how it was routed to the device: filed as its entry `seq` while it was connected (`online:{seq}`) or away
    (`queued:{seq}`).
    """


class Trace(Struct):
    """Everything the delivery log knows about one message id."""

    id: str
    events: list[Event]
    states: dict[int, MessageState]
    """Device → what became of it there. Of a message in the log of a large group: the log itself, under the device 0 of
    the group, and the devices that have fetched it."""
    group: int = 0
    """The group that it was sent to, if any."""
