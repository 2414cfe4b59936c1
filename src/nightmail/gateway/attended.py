"""Groups whose logs connections of this node attend: when one grows, each of them is told.

Knows:   the connections that attend each group, and how far they were told the log has come.
Touches: the desk, to ask once for all of them what has come; connections, by pushing it.
Never:   encodes an entry twice, or asks about one group twice at a time.

What is pushed may be lost or come out of turn: a device that misses a number fetches. A device that may not fetch any
more is no longer told.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from nightmail.model.group_questions import GroupAnswer, GrowthAsked, GrowthShown
from nightmail.model.group_rows import FanOut
from nightmail.model.ids import account_of, shard_of
from nightmail.wire.frames import encoded
from nightmail.wire.items import FromServer, GroupLog

from .group_limits import GroupLimits
from .ports import Shared

if TYPE_CHECKING:
    from .groups import ConnectionGroups


class AttendedGroup:
    __slots__ = ("connections", "grew_again", "head", "is_asking", "is_due", "next_at")

    def __init__(self, head: int) -> None:
        self.connections: dict[int, ConnectionGroups] = {}
        """By device."""
        self.head = head
        self.is_asking = self.grew_again = False
        self.is_due = False
        """A timer runs."""
        self.next_at = 0
        """Not sooner is anybody told how far a very large group's log has come."""


class AttendedGroups:
    def __init__(self, shared: Shared, limits: GroupLimits) -> None:
        self._shared, self._limits = shared, limits
        self._groups: dict[int, AttendedGroup] = {}

    def __len__(self) -> int:
        """How many groups somebody here attends."""
        return len(self._groups)

    # --- who attends --------------------------------------------------------------------------

    def add(self, connection: ConnectionGroups, group: int, head: int) -> None:
        """`head`: how far the log had come when the connection's device was shown it."""
        if group in connection.attended or len(connection.attended) >= self._limits.attended:
            return
        attended = self._groups.get(group)
        if attended is None:
            attended = self._groups[group] = AttendedGroup(head)
            self._shared.desk.attend_group(group, here=True)
        connection.attended.add(group)
        attended.connections[connection.session.device] = connection
        # It may have grown since it was read, before anybody here was told.
        self.grew(group)

    def remove(self, connection: ConnectionGroups, group: int) -> None:
        if group not in connection.attended:
            return
        connection.attended.remove(group)
        attended = self._groups[group]
        del attended.connections[connection.session.device]
        if not attended.connections:
            del self._groups[group]
            self._shared.desk.attend_group(group, here=False)

    def remove_all(self, connection: ConnectionGroups) -> None:
        for group in list(connection.attended):
            self.remove(connection, group)

    # --- growth -------------------------------------------------------------------------------

    def grew(self, group: int) -> None:
        """The group's log may have grown."""
        attended = self._groups.get(group)
        if attended is None or attended.is_due:
            return
        if attended.is_asking:
            attended.grew_again = True
            return
        now = self._shared.pace()
        if now < attended.next_at:
            attended.is_due = True
            self._shared.wheel.add(attended.next_at, partial(self._is_time, group, attended))
        else:
            self._look(group, attended)

    def _is_time(self, group: int, attended: AttendedGroup, _now: int) -> None:
        attended.is_due = False
        # The timer may be left from connections that have gone.
        if self._groups.get(group) is attended:
            self._look(group, attended)

    def _look(self, group: int, attended: AttendedGroup) -> None:
        attended.is_asking = True
        limits = self._limits
        asked = GrowthAsked(group, tuple(attended.connections), attended.head, limits.push_entries, limits.push_bytes)
        self._shared.desk.about_group(asked, partial(self._shown, attended, asked))

    def _shown(self, attended: AttendedGroup, asked: GrowthAsked, shown: GroupAnswer) -> None:
        attended.is_asking = False
        if isinstance(shown, GrowthShown):
            self._tell(attended, asked, shown)
        if attended.grew_again:
            attended.grew_again = False
            if self._groups.get(asked.group) is attended:
                self.grew(asked.group)

    def _tell(self, attended: AttendedGroup, asked: GrowthAsked, shown: GrowthShown) -> None:
        allowed = {*shown.whole, *shown.heads}
        for device in asked.devices:
            if device not in allowed and (connection := attended.connections.get(device)):
                self.remove(connection, asked.group)
        if shown.head <= attended.head:
            return
        attended.head = shown.head
        if shown.fan_out is FanOut.READ:
            attended.next_at = self._shared.pace() + self._limits.tell_ms
        for device, head in shown.heads.items():
            if connection := attended.connections.get(device):
                self._shared.counters.group_heads_told += 1
                connection.push_head(asked.group, head)
        if shown.whole:
            self._push(attended, asked, shown)

    def _push(self, attended: AttendedGroup, asked: GrowthAsked, shown: GrowthShown) -> None:
        size = sum(len(entry.ciphertext) for run in shown.items for entry in run.entries)
        item = encoded(GroupLog(0, asked.group, asked.after, shown.items, shown.head))
        shards: dict[int, list[int]] = {}
        for device in shown.whole:
            shards.setdefault(shard_of(account_of(device), self._shared.desk.shards), []).append(device)
        found = partial(self._push_to, attended, asked.group, item, size, shown.head)
        for devices in shards.values():
            self._shared.desk.high_heads(devices, shown.told, found)

    def _push_to(
        self, attended: AttendedGroup, group: int, item: FromServer, size: int, head: int, highs: Mapping[int, int]
    ) -> None:
        for device, high in highs.items():
            if connection := attended.connections.get(device):
                self._shared.counters.group_entries_pushed += 1
                connection.push(high, item, size, group, head)
