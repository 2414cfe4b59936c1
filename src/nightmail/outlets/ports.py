"""What makes calls: a thread of the node, or processes of their own. `Dispatch` decides which calls begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from .outcomes import CallResult


class WebhookCall(Struct, frozen=True):
    """To be made once. `id` is the same for a repeat, so that the receiver can tell it from another call."""

    id: str
    url: str
    body: bytes
    secret: bytes
    content_type: str = "application/json"
    private: bool = False
    """The operator has set this address, and allows that it is private."""
    headers: tuple[tuple[str, str], ...] = ()
    """All there are, in place of the signature and the content type: for what is no webhook."""


Ended: TypeAlias = Callable[[Sequence[tuple[int, CallResult]]], None]
"""Told which calls have ended, and how, on the thread of those who began them."""


class Outlet(Protocol):
    """Makes each call at once. The caller bounds how many are under way."""

    def attend(self, ended: Ended) -> None:
        """Called once, before anything else."""
        ...

    def begin(self, calls: Sequence[tuple[int, WebhookCall]]) -> None:
        """Make these calls, each under a number that no other call under way has. Each ends exactly once."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether there is anybody who makes calls. Otherwise those that begin wait for somebody."""
        ...

    def close(self) -> None:
        """Calls under way are given up, and are not told to have ended."""
        ...
