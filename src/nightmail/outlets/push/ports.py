"""Who makes pushes. `PushWaker` decides which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from nightmail.model.push_rows import PushSeen
from nightmail.model.records.pushes import PushOutcome


class PushResult(Struct, frozen=True, gc=False):
    outcome: PushOutcome
    error: str = ""
    """A word for the operator: `http_503`, `timeout`. Dead letters are grouped by it."""
    retry_after_ms: int = 0
    """The provider asks for this much time before the next push. How much it gets is decided elsewhere."""


class Pusher(Protocol):
    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        """Wake the device, silently. `done` is called once, on the node's thread; never, if the node ends before."""
        ...
