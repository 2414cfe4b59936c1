"""The row that a client keeps of a message for later, as a value.

Knows:   what each field means.
Never:   shows content in a repr.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from nightmail.model.schedule_rows import GroupContent, PairContent, ScheduleState
from nightmail.model.words import Kind


class ScheduledRow(Struct, frozen=True, kw_only=True):
    """A message that this account has scheduled into a conversation. It is here before anything of it leaves."""

    id: str
    to: int
    """An account, or a group."""
    kind: Kind
    body: bytes
    """Its content; empty once it has ended, unless it has failed."""
    life_ms: int
    nonce: bytes
    """Of its tag: whichever device seals it, the tag is the same."""
    made_at: int
    deliver_at: int
    by: int
    """The device that sealed it last."""
    state: ScheduleState = ScheduleState.PENDING
    reason: str = ""
    """A word: why it has failed."""
    serial: int = 0
    """The server's number of it; 0: the server has not said that it has it."""
    asked_at: int = 0
    """When it left this device for the first time: from then on the server may have it."""
    content: PairContent | GroupContent | None = None
    """What was sealed, until the server has answered: every retry sends the same bytes."""
    sealed_for: tuple[int, ...] = ()
    """The recipient's devices that this device has sealed it for last."""
    is_stale: bool = False
    """It is to be sealed again."""
    has_news: bool = False
    """The server is to be asked how far it has come."""
    cancelling: bool = False
    """The person has taken it back, and the server has not answered."""
    ended_at: int = 0
    """0: it has not ended."""

    def __repr__(self) -> str:
        return f"<scheduled {self.id}: {self.state.name.lower()}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("state", self.state.name.lower())]
