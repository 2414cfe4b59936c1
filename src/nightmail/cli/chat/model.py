"""What the chat window shows, as values.

Knows:   the connection, the conversations, the message being answered, and drafts.
Never:   reads a clock, a store or a terminal: everything is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.events import (
    Connected,
    Disconnected,
    Ended,
    Event,
    Retrying,
    SentAck,
    WaitingForNetwork,
)

from .lines import Notice


class ConnectionState(Enum):
    CONNECTING = "connecting"
    ONLINE = "online"
    OFFLINE = "offline"
    ENDED = "ended"


class Status(Struct, frozen=True):
    state: ConnectionState = ConnectionState.CONNECTING
    retry_ms: int = 0
    waiting: frozenset[str] = frozenset()
    """Ids of messages that have waited for the network for a while."""
    why: str = ""

    def after(self, event: Event) -> Status:
        match event:
            case Connected():
                return replace(self, state=ConnectionState.ONLINE, retry_ms=0, why="")
            case Disconnected():
                return replace(self, state=ConnectionState.OFFLINE)
            case Retrying():
                return replace(self, state=ConnectionState.OFFLINE, retry_ms=event.in_ms, why=event.why)
            case WaitingForNetwork():
                return replace(self, waiting=self.waiting | set(event.message_ids))
            case SentAck():
                return replace(self, waiting=self.waiting - {event.message_id})
            case Ended():
                return replace(self, state=ConnectionState.ENDED, why=event.sentence)
            case _:
                return self

    @property
    def words(self) -> str:
        match self.state:
            case ConnectionState.CONNECTING:
                said = "connecting"
            case ConnectionState.ONLINE:
                said = "online"
            case ConnectionState.OFFLINE:
                said = f"offline: {self.why}" if self.why else "offline"
                said += f", trying again in {self.retry_ms / 1000:.0f} s" if self.retry_ms >= 500 else ""
            case ConnectionState.ENDED:
                said = f"ended: {self.why}"
        if self.waiting:
            said += f" · {len(self.waiting)} waiting for the network"
        return said


class ConversationSummary(Struct, frozen=True):
    """A conversation, as a row of the list."""

    peer: int
    name: str
    at: int = 0
    preview: str = ""
    unread: int = 0
    verified: bool = False
    held: bool = False
    """The key changed after it was verified: messages wait until the user accepts it."""
    blocked: bool = False
    failed: bool = False
    """The newest message is an own one, and it failed."""
    timer: str = ""
    """After which time messages disappear; empty: they stay."""


class Model:
    """One chat window."""

    def __init__(self) -> None:
        self.status = Status()
        self.conversations: Sequence[ConversationSummary] = ()
        self.open: int | None = None
        self.replying_to = ""
        """Id of the message that the next one answers; empty if none."""
        self._drafts: dict[int, str] = {}
        self._notices: dict[int, list[Notice]] = {}

    def apply(self, event: Event) -> bool:
        """True if the status line changed."""
        before, self.status = self.status, self.status.after(event)
        return before != self.status

    def show(self, summaries: Sequence[ConversationSummary]) -> None:
        """Replace the list of conversations. The open one may have no message yet."""
        self.conversations = sorted(summaries, key=lambda summary: (-summary.at, summary.name.casefold()))

    def open_conversation(self) -> ConversationSummary | None:
        """The row of the open conversation."""
        return next((summary for summary in self.conversations if summary.peer == self.open), None)

    def open_conversation_with(self, peer: int, draft: str) -> str:
        """Open another conversation: keep `draft` for the one that was open, and return the draft of the new one."""
        if self.open is not None:
            self._drafts[self.open] = draft
        self.open, self.replying_to = peer, ""
        return self._drafts.pop(peer, "")

    @property
    def unread(self) -> int:
        return sum(summary.unread for summary in self.conversations)

    def note(self, peer: int, notice: Notice) -> None:
        self._notices.setdefault(peer, []).append(notice)

    def notices(self) -> Sequence[Notice]:
        """Notices of the open conversation."""
        return self._notices.get(self.open, ()) if self.open is not None else ()
