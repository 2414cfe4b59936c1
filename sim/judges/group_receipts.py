"""The verdict on what authors are told about their messages in groups: who has them, who has read them.

Knows:   what each device said that it has stored and read, and which people keep their reading private.
Never:   asks a server: a count is compared with what the devices of others said before it was told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.client.group_events import GroupReceipt
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, GroupAcked, GroupRead

if TYPE_CHECKING:
    from sim.world.device import Device

    from .group_history import GroupHistory


class GroupReceiptsJudge:
    """One for all devices of a world."""

    def __init__(self, handed: GroupHistory) -> None:
        self._handed = handed
        self._stored: dict[tuple[int, int], int] = {}
        """(Device, lane or group) → it said that everything up to here is stored."""
        self._read: dict[tuple[int, int], int] = {}
        """(Group, account) → one of its devices said that everything up to here was read, and may be told so."""

    def says(self, device: Device, body: Acked | GroupAcked | GroupRead) -> None:
        me = device.me
        if isinstance(body, GroupRead):
            if not device.person.is_private:
                key = body.group, me.account
                self._read[key] = max(body.upto, self._read.get(key, 0))
        else:
            where = body.group if isinstance(body, GroupAcked) else body.lane
            self._stored[me.device, where] = max(body.upto, self._stored.get((me.device, where), 0))

    def check(self, device: Device, event: GroupReceipt, seq: int) -> None:
        """An author is told about its message."""
        author = device.me.account
        read = {account for (group, account), upto in self._read.items() if group == event.group and seq <= upto}
        have = {account_of(number) for number in self._handed.seen if self._has(number, event.group, seq)} | read
        true = len(have - {author}), len(read - {author})
        if event.delivered > true[0] or event.read > true[1] or event.delivered > event.of:
            raise device.history.broke(
                "receipts are true", f"{device.name} is told {event}, and {true[0]} have it, {true[1]} have read it"
            )

    def _has(self, number: int, group: int, seq: int) -> bool:
        """Whether a device was handed it, and said that it has stored what it was handed."""
        return any(
            place[1] <= self._stored.get((number, place[0]), 0)
            for place, entry in self._handed.of(number).entries.items()
            if entry.by and (entry.to, entry.group_seq) == (group, seq)
        )
