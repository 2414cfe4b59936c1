"""What a chat shows, as values.

Knows:   the state of the connection, the conversations, what is being answered, and what was begun to be written.
Never:   reads a clock, a store or a terminal: everything is handed in.
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


class Link(Enum):
    CONNECTING = "connecting"
    ONLINE = "online"
    OFFLINE = "offline"
    ENDED = "ended"


class Status(Struct, frozen=True):
    link: Link = Link.CONNECTING
    retry_ms: int = 0
    waiting: frozenset[str] = frozenset()
    """Messages that wait for the network, and have done so for a while."""
    why: str = ""

    def after(self, event: Event) -> Status:
        match event:
            case Connected():
                return replace(self, link=Link.ONLINE, retry_ms=0)
            case Disconnected():
                return replace(self, link=Link.OFFLINE)
            case Retrying():
                return replace(self, link=Link.OFFLINE, retry_ms=event.in_ms)
            case WaitingForNetwork():
                return replace(self, waiting=self.waiting | set(event.message_ids))
            case SentAck():
                return replace(self, waiting=self.waiting - {event.message_id})
            case Ended():
                return replace(self, link=Link.ENDED, why=event.sentence)
            case _:
                return self

    @property
    def words(self) -> str:
        match self.link:
            case Link.CONNECTING:
                said = "connecting"
            case Link.ONLINE:
                said = "online"
            case Link.OFFLINE:
                said = f"offline, trying again in {self.retry_ms / 1000:.0f} s" if self.retry_ms >= 500 else "offline"
            case Link.ENDED:
                said = f"ended: {self.why}"
        if self.waiting:
            said += f" · {len(self.waiting)} waiting for the network"
        return said


class Talk(Struct, frozen=True):
    """A conversation, as it stands in the list."""

    peer: int
    name: str
    at: int = 0
    preview: str = ""
    unread: int = 0
    verified: bool = False
    held: bool = False
    """The key changed after it was verified: nothing goes out before the person agrees."""
    blocked: bool = False


class Model:
    """One chat window."""

    def __init__(self) -> None:
        self.status = Status()
        self.talks: Sequence[Talk] = ()
        self.open: int | None = None
        self.replying_to = ""
        """The message that the next one answers; empty: none."""
        self._drafts: dict[int, str] = {}
        self._notices: dict[int, list[Notice]] = {}

    def apply(self, event: Event) -> bool:
        """Whether the status line changed."""
        before, self.status = self.status, self.status.after(event)
        return before != self.status

    def show(self, talks: Sequence[Talk]) -> None:
        """The conversations that there are; the one that is open may have no message yet."""
        self.talks = sorted(talks, key=lambda talk: (-talk.at, talk.name.casefold()))

    def talk(self) -> Talk | None:
        """The one that is open."""
        return next((talk for talk in self.talks if talk.peer == self.open), None)

    def turn_to(self, peer: int, draft: str) -> str:
        """Open another conversation; what was begun in this one is kept, and what was begun there comes back."""
        if self.open is not None:
            self._drafts[self.open] = draft
        self.open, self.replying_to = peer, ""
        return self._drafts.pop(peer, "")

    @property
    def unread(self) -> int:
        return sum(talk.unread for talk in self.talks)

    def note(self, peer: int, notice: Notice) -> None:
        self._notices.setdefault(peer, []).append(notice)

    def notices(self) -> Sequence[Notice]:
        """Of the conversation that is open."""
        return self._notices.get(self.open, ()) if self.open is not None else ()
