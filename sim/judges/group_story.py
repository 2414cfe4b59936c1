"""What sealed devices wrote and signed in groups: the evidence about groups, next to what they were handed.

Knows:   every change that a device signed, so who was a member after each of them; every message, and which chain of
         its author sealed it; which devices each chain was handed to.
Never:   asks a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nightmail.client.messages import Message
from nightmail.model.group_chain import NO_HEAD, ChainedChange, decode_change, head_of, next_roster
from nightmail.model.roster import GroupReceipts, Roster
from nightmail.model.words import Lane

from .group_history import GroupHistory
from .group_receipts import GroupReceiptsJudge

if TYPE_CHECKING:
    from nightmail.model.answers import GroupAccepted


@dataclass
class GroupMessage:
    """What somebody wrote to everybody in a group."""

    id: str
    by: int
    group: int
    lane: Lane
    body: bytes
    is_control: bool
    """Another name or picture, which no message row shows."""
    written_at: int
    heads: set[bytes] = field(default_factory=set[bytes])
    """Under which it was ever sent."""
    answer: GroupAccepted | None = None
    head: bytes = b""
    """Under which it was taken, by those who were handed it."""

    @property
    def is_sent(self) -> bool:
        return self.answer is not None and bool(self.answer.tag)


class GroupStory:
    def __init__(self) -> None:
        self.handed = GroupHistory()
        self.receipts = GroupReceiptsJudge(self.handed)
        self.groups: set[int] = set()
        self.messages: dict[str, GroupMessage] = {}
        self.controls: set[str] = set()
        """Ids of what was sealed for single devices: keys, welcomes, questions, messages again."""
        self.shown: dict[int, dict[str, Message]] = {}
        """Device → original id → how it was first shown."""
        self.waited: dict[int, set[str]] = {}
        """Device → messages that came before their key."""
        self.sealed: dict[tuple[bytes, int], bytes] = {}
        """(Chain, number in it) → the digest of what was sealed there."""
        self.holders: dict[bytes, set[int]] = {}
        """Chain → devices that it was handed to."""
        self._signed: dict[bytes, ChainedChange] = {}
        """Head → the change that made it."""
        self._rosters: dict[bytes, Roster] = {}

    def is_known(self, message_id: str) -> bool:
        return message_id in self.messages or message_id in self.controls

    def sign(self, blob: bytes) -> None:
        self._signed[head_of(blob)] = decode_change(blob)

    def roster(self, head: bytes) -> Roster | None:
        """Who was in the group after this change; None: no device signed such a chain."""
        missing: list[tuple[bytes, ChainedChange]] = []
        while head not in self._rosters and head != NO_HEAD:
            if (change := self._signed.get(head)) is None:
                return None
            missing.append((head, change))
            head = change.previous
        roster = self._rosters.get(head)
        for each, change in reversed(missing):
            after = next_roster(roster, change)
            if not isinstance(after, Roster):
                return None
            roster = self._rosters[each] = after
        return roster

    def always_counted(self, group: int) -> bool:
        """Whether its authors were to learn of each member, all the time."""
        rosters = [self.roster(head) for head, change in self._signed.items() if change.group == group]
        return all(roster is None or roster.settings.receipts is GroupReceipts.EACH_MEMBER for roster in rosters)
