"""The verdict on what authors are told about their messages in groups: who has them, who has read them.

Knows:   what each device said that it has stored and read, and which people keep their reading private.
Never:   asks a server. A count that is told is compared with what the devices of others said before: it may not say
         more. In the morning the last one is compared again: it may not say less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.client.group_events import GroupReceipt
from nightmail.client.messages import Tick
from nightmail.core.groups.membership import SPANS_MAX
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, GroupAcked, GroupRead

if TYPE_CHECKING:
    from sim.world.device import Device
    from sim.world.town import Town

    from .group_history import GroupHistory
    from .group_story import GroupMessage


class GroupReceiptsJudge:
    """One for all devices of a world."""

    def __init__(self, handed: GroupHistory) -> None:
        self._handed = handed
        self._stored: dict[tuple[int, int], int] = {}
        """(Device, lane or group) → it said that everything up to here is stored."""
        self._read: dict[tuple[int, int], int] = {}
        """(Group, account) → one of its devices said that everything up to here was read, and may be told so."""
        self._unreadable: set[tuple[int, int, int]] = set()
        """(Device, lane or group, number) that a device said it cannot open."""
        self._told: dict[tuple[int, str], GroupReceipt] = {}
        """(Device, message) → the last that its person was told."""

    def says(self, device: Device, body: Acked | GroupAcked | GroupRead) -> None:
        me = device.me
        if isinstance(body, GroupRead):
            if not device.person.is_private:
                key = body.group, me.account
                self._read[key] = max(body.upto, self._read.get(key, 0))
        else:
            where = body.group if isinstance(body, GroupAcked) else body.lane
            self._stored[me.device, where] = max(body.upto, self._stored.get((me.device, where), 0))
            self._unreadable.update((me.device, where, number) for number in body.unreadable)

    def check(self, device: Device, event: GroupReceipt, seq: int) -> None:
        """An author is told about its message."""
        author = device.me.account
        self._told[device.me.device, event.message_id] = event
        read = {account for (group, account), upto in self._read.items() if group == event.group and seq <= upto}
        have = {account_of(number) for number in self._handed.seen if self._has(number, event.group, seq)} | read
        true = len(have - {author}), len(read - {author})
        if event.delivered > true[0] or event.read > true[1] or event.delivered > event.of:
            raise device.history.broke(
                "receipts are true", f"{device.name} is told {event}, and {true[0]} have it, {true[1]} have read it"
            )

    def _has(self, number: int, group: int, seq: int, *, readable: bool = False) -> bool:
        """Whether a device was handed it, and said that it has stored what it was handed; `readable`: and never that it
        cannot open it."""
        return any(
            place[1] <= self._stored.get((number, place[0]), 0)
            and not (readable and (number, *place) in self._unreadable)
            for place, entry in self._handed.of(number).entries.items()
            if entry.by and (entry.to, entry.group_seq) == (group, seq)
        )

    # --- in the morning ---------------------------------------------------------------------------

    def check_heard(self, town: Town, author: Device, message: GroupMessage, newest: int) -> None:
        """A device that wrote a message knows of everybody who stayed, and said that they have it, or have read it."""
        own, answer = author.store.message(message.id), message.answer
        membership = author.machine.groups(author.now).known.membership(message.group)
        if own is None or own.is_erased or answer is None or not message.is_sent or membership is None:
            return
        seq = answer.group_seq
        if not self._stayed(town, author, message.group, seq):
            return  # who has left is told nothing
        if seq <= newest - SPANS_MAX:
            return  # of older ones not everything is remembered
        others = [
            device for device in town.devices
            if device.me.account in membership.roster.members and self._stayed(town, device, message.group, seq)
        ]  # fmt: skip
        have = {d.me.account for d in others if self._has(d.me.device, message.group, seq, readable=True)}
        read = {
            account for account in {device.me.account for device in others} - town.history.receipts_off
            if seq <= self._read.get((message.group, account), 0)
        } if author.me.account not in town.history.receipts_off else set[int]()  # fmt: skip
        own_account = {author.me.account}
        least = len((have | read) - own_account), len(read - own_account)
        told = self._told.get((author.me.device, message.id))
        heard = (told.delivered, told.read) if told else (0, 0)
        if heard[0] < least[0] or heard[1] < least[1]:
            raise town.history.broke(
                "authors hear everything", f"{author.name} was told {told} of {message.id}, which {least} have and read"
            )
        if own.state < (Tick.READ if least[1] else Tick.DELIVERED if least[0] else Tick.SENT):
            raise town.history.broke(
                "ticks are true", f"{message.id} is {own.state.name}, and {least} have and read it"
            )
        if least[0]:
            town.world.hit("heard of everybody who has it in a group")

    def _stayed(self, town: Town, device: Device, group: int, seq: int) -> bool:
        """Whether its account was a member where a message stands, and has been one ever since: nobody hears of one
        that comes back."""
        account = device.me.account
        spans = self._handed.memberships.get((group, account), {})
        since = max((since for since in spans if since <= seq), default=0)
        return bool(since) and not spans[since] and account not in town.history.started_over
