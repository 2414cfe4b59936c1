"""A message for later, as an app sees it. Values only."""

from __future__ import annotations

from msgspec import Struct

from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.content import Content, decode_content
from nightmail.model.group_chain import is_group
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind


class ScheduledMessage(Struct, frozen=True):
    id: str
    peer: int
    """The account or the group that it is for."""
    handle: str
    """Of the person, or the name of the group."""
    body: bytes
    """Its content, encoded; empty once it was delivered or cancelled."""
    kind: Kind
    life_ms: int
    made_at: int
    deliver_at: int
    """Milliseconds since 1970."""
    state: ScheduleState
    reason: str
    """A word: why it has failed."""
    is_queued: bool
    """The server does not have it, as far as this device knows."""
    is_stale: bool
    """Its time has come, and it is to be sealed again first."""

    @classmethod
    def of(cls, row: ScheduledRow, handle: str) -> ScheduledMessage:
        return cls(
            row.id, row.to, handle, row.body, row.kind, row.life_ms, row.made_at, row.deliver_at, row.state,
            row.reason, not row.serial and not row.ended_at, row.is_stale,
        )  # fmt: skip

    @property
    def group(self) -> int | None:
        """The group that it is for; None: it is for a person."""
        return self.peer if is_group(self.peer) else None

    @property
    def content(self) -> Content | None:
        """None: it was delivered or cancelled, and is no longer here."""
        return decode_content(self.body) if self.body else None

    @property
    def text(self) -> str:
        """Its text; empty if it has none, or none any more."""
        return (self.content.text or "") if self.content else ""

    def __repr__(self) -> str:
        return f"<scheduled message {self.id}: {self.state.name.lower()}>"
