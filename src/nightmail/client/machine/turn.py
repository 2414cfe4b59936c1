"""What the machine hands to its driver: one value per turn."""

from __future__ import annotations

from typing import NamedTuple

from nightmail.client.events import Event


class Turn(NamedTuple):
    """Everything that led to this is durable. The driver carries it out, `frames` before `hang_up`."""

    frames: list[bytes]
    """Write these to the connection, in order. Without a connection, drop them: the next one asks again."""
    events: list[Event]
    """Tell these to the app, in order."""
    deadline: int | None
    """Call `tick` at this time, unless another turn comes first; None: nothing is due."""
    hang_up: str | None
    """Why the driver must close the connection, after it wrote the frames; None: it stays open. Every turn says so
    until `closed`."""


class Ending(NamedTuple):
    """How a connection ended. It goes to `Route.ended`, which chooses the next attempt."""

    code: int
    retry_ms: int
