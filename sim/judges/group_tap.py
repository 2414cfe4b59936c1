"""Listens in at a sealed device's door, and looks over its shoulder, for what concerns groups.

Knows:   one device: which changes it says, what it seals for everybody and for single devices, what it is handed, what
         it believes, what it shows.
Touches: the story of groups.
Never:   changes a byte that passes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from nightmail.client.events import Event
from nightmail.client.group_events import GroupBroken, GroupChangeRefused, GroupEvent, GroupReceipt, MembersDiffer
from nightmail.client.groups.sender_keys import handed_in
from nightmail.client.groups.waiting import ERRAND as WAITING
from nightmail.client.messages import Message, Tick
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.store.rows import MessageNumber, Outgoing
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.groups.sealing import decode_group_message
from nightmail.e2ee.state import decode_membership
from nightmail.model.answers import Done, GroupAccepted, GroupHead, Said
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of
from nightmail.model.records import (
    Acked,
    AnyBody,
    GroupAcked,
    GroupChanged,
    GroupMade,
    GroupRead,
    GroupSealed,
    GroupSent,
    GroupVoided,
)
from nightmail.model.refusals import NotMember, StaleGroup
from nightmail.model.roster import Roster
from nightmail.model.rows import GroupEntry, PendingReceipt
from nightmail.model.schedule_rows import GroupContent
from nightmail.model.words import Lane
from nightmail.wire.items import Answered, Ask, GroupLog, LogRun
from sim.world.device_store import Written
from sim.world.world import Broken

from .group_history import Place, Stream
from .group_story import GroupMessage

if TYPE_CHECKING:
    from sim.world.device import Device

GONE = (GroupStanding.LEFT, GroupStanding.REMOVED)


class GroupTap:
    def __init__(self, device: Device) -> None:
        self._device, self._world, self._history = device, device.world, device.history
        self._story = device.person.town.story
        self._shown = self._story.shown.setdefault(device.me.device, {})
        self._told: set[str] = set()
        self._asked: dict[int, AnyBody] = {}
        """What is not answered yet, over this connection."""
        self._logs: dict[int, int] = {}
        """Group → how far its log came over this connection."""
        self._rows: dict[int, GroupRow] = {}
        """Groups, as they were last durable here."""
        self._rosters: dict[int, Roster] = {}
        """Group → the newest members that somebody signed and this device believed."""
        self._named_before: set[int] = set()
        """Devices on believed lists when the last turn ended: what is said now may have been sealed before the list
        changed that this turn brought."""

    @property
    def _lies(self) -> bool:
        """Whether the server of this world lies."""
        return self._device.person.town.habits.forges

    def _broke(self, promise: str, what: str) -> Broken:
        return self._history.broke(promise, f"{self._device.name} {what}")

    # --- what it says -----------------------------------------------------------------------------

    def greets(self) -> None:
        self._asked.clear()
        self._logs.clear()

    def say(self, item: Ask) -> None:
        body = item.body
        match body:
            case GroupMade() | GroupChanged():
                self._story.sign(body.blob)
            case GroupSent():
                self._sends(body)
            case GroupSealed():
                self._seals_for_some(body)
            case GroupAcked() | GroupRead() | Acked():
                self._story.receipts.says(self._device, body)
            case GroupVoided():
                pass
            case _:
                return
        self._asked[item.ref] = body

    def _sends(self, sent: GroupSent) -> None:
        message = self._story.messages.get(sent.id)
        if message is None or message.lane != sent.lane:
            raise self._broke("durable before it is sent", f"says {sent.id} to {sent.group:x}")
        self.seals(sent.id, sent.group, sent)

    def seals(self, message_id: str, group: int, sealed: GroupSent | GroupContent) -> None:
        """One ciphertext for everybody: each place of a chain seals once, and only members hold the chain."""
        message = self._story.messages.get(message_id)
        if message is None or message.group != group:
            raise self._broke("durable before it is sent", f"says {message_id} to {group:x}")
        found, digest = decode_group_message(sealed.ciphertext), sha256(sealed.ciphertext).digest()
        if self._story.sealed.setdefault((found.key_id, found.number), digest) != digest:
            raise self._broke("no key twice", f"sealed {message_id} with the key of another message")
        if (found.head, found.epoch) != (sealed.head, sealed.epoch):
            raise self._broke("sealed as it is sent", f"seals {message_id} for another place of the chain")
        if sealed.head in message.heads:
            return
        message.heads.add(sealed.head)
        if len(message.heads) > 1:
            self._world.hit("sealed again for other members")
        self._check_holders(message, sealed.head, found.key_id)

    def _check_holders(self, message: GroupMessage, head: bytes, key_id: bytes) -> None:
        roster = self._story.roster(head) or (self._rosters.get(message.group) if self._lies else None)
        if roster is None:
            raise self._broke("only signed changes", f"seals {message.id} for members that nobody signed")
        named = self._named_before | self._named()
        for holder in self._story.holders.get(key_id, ()):
            if account_of(holder) not in roster.members or holder not in named:
                raise self._broke(
                    "nobody else can open it", f"seals {message.id} with a chain that {holder:x} was handed"
                )

    def _named(self) -> set[int]:
        """The devices that the lists name which it believes; a device that seals nothing believes none."""
        if (sealer := self._device.machine.parts.e2ee) is None:
            return set()
        lists = (sealer.believed.of(person.account) for person in self._device.person.town.people)
        return {address.device for listed in lists if listed is not None for address in listed.devices}

    def _seals_for_some(self, sealed: GroupSealed) -> None:
        row = next((row for row in self._device.store.outgoing() if row.id == sealed.id), None)
        if row is not None and (key_id := handed_in(row)):
            self._story.holders.setdefault(key_id, set()).update(each.device for each in sealed.envelopes)

    # --- what it hears ----------------------------------------------------------------------------

    def answered(self, item: Answered) -> None:
        if (body := self._asked.pop(item.ref, None)) is not None:
            self._answered(body, item.said)

    def _answered(self, body: AnyBody, said: Said) -> None:
        me, handed = self._device.me.device, self._story.handed
        match body, said:
            case ((GroupSent() | GroupSealed() | GroupVoided()), GroupAccepted()):
                is_message = isinstance(body, GroupSent)
                handed.accepted(Stream(me, body.group, body.lane), body.n, said, self._world.now, is_message=is_message)
                if (message := self._story.messages.get(said.id)) is not None:
                    message.answer = said
            case GroupSent(), NotMember():
                self._world.hit("removed in the middle of a send")
            case GroupSent(), StaleGroup():
                row = self._device.store.group(body.group)
                is_same = row is not None and said.head == row.head
                self._world.hit("relisted in the middle of a send" if is_same else "changed in the middle of a send")
            case ((GroupMade() | GroupChanged()), GroupHead()):
                self._story.groups.add(body.group)
                self._world.hit("group changed")
            case GroupChanged(), StaleGroup():
                self._world.hit("two admins on one head")
            case Acked(), Done():
                self._acked(body.lane, body.upto, body.unreadable)
            case GroupAcked(), Done():
                self._acked(body.group, body.upto, body.unreadable)
            case GroupRead(), Done():
                seen = handed.of(me)
                seen.read[body.group] = max(seen.read.get(body.group, 0), body.upto)
            case _:
                pass

    def _acked(self, where: int, upto: int, unreadable: tuple[int, ...]) -> None:
        seen = self._story.handed.of(self._device.me.device)
        seen.acked[where] = max(seen.acked.get(where, 0), upto)
        seen.unreadable.update((where, number) for number in unreadable)

    def hear(self, place: Place, entry: GroupEntry) -> None:
        """It is handed an entry."""
        if not self._story.handed.shown(self._device.me.device, place, entry):
            self._world.hit("redelivered in a group")
            return
        if not entry.by or entry.of is not None or not entry.group_seq:
            return
        message = self._story.messages.get(entry.id)
        was_scheduled = self._device.later.hears(place, entry)
        if was_scheduled and message is not None and account_of(message.by) == account_of(entry.by):
            message.by = entry.by  # The device that has sealed it last.
        if message is None or (message.by, message.group, message.lane) != (entry.by, entry.to, entry.lane):
            raise self._broke("no ghost", f"was given {entry.id}, which nobody sent so")
        message.head = decode_group_message(entry.ciphertext).head

    def hear_log(self, item: GroupLog) -> None:
        row = self._device.store.group(item.group)
        at = max(row.cursor if row else 0, self._logs.get(item.group, 0))
        if row is None or item.after > at:
            return  # news of what stands behind something else that it fetches first
        highest = (run.first + len(run.entries) - 1 if isinstance(run, LogRun) else run.high for run in item.items)
        self._logs[item.group] = max(at, *highest, 0)
        for run in item.items:
            if isinstance(run, LogRun):
                for seq, entry in enumerate(run.entries, run.first):
                    self._world.hit("handed out from a group's log")
                    self.hear((item.group, seq), entry)

    def receipt(self, change: PendingReceipt) -> None:
        self._story.handed.heard(self._device.me.device, change)

    # --- what is durable --------------------------------------------------------------------------

    def written(self, row: Written) -> bool:
        """Something is durable; whether it is a group's."""
        match row:
            case GroupRow():
                self._believes(row)
            case Outgoing() | MessageNumber():
                if is_group(row.to) and isinstance(row, Outgoing):
                    self._outgoing(row)
                return is_group(row.to)
            case Message(group=int()):
                self._shows(row)
                return row.by != self._device.me.device
            case _:
                return False
        return True

    def _outgoing(self, row: Outgoing) -> None:
        if row.targets:
            self._story.controls.add(row.id)
        elif row.id not in self._story.messages and not row.void:
            body = self._device.store.message(row.original)
            content = row.content or (body.body if body else b"")
            self._story.messages[row.id] = GroupMessage(
                row.id, self._device.me.device, row.to, row.lane, content, bool(row.content), self._world.now
            )
            self._world.tell(self._device.name, f"writes {row.id} to group {row.to:x} in {row.lane.name}")

    def schedules(self, row: ScheduledRow) -> None:
        """A message for later to a group is durable here for the first time."""
        me = self._device.me.device
        self._story.messages[row.id] = GroupMessage(row.id, me, row.to, Lane.NORMAL, row.body, False, self._world.now)

    def _shows(self, row: Message) -> None:
        message = self._story.messages.get(row.id)
        if row.by == self._device.me.device:
            if row.state is Tick.FAILED:
                self._world.hit(f"failed in a group: {row.reason}")
            return
        if message is None or (message.body, message.by, message.group) != (row.body, row.by, row.peer):
            raise self._broke("no ghost", f"shows {row.id}, which nobody wrote so")
        if row.id not in self._shown and row.id in self._story.waited.get(self._device.me.device, ()):
            self._world.hit("healed a missing key")
        self._shown.setdefault(row.id, row)

    def _believes(self, row: GroupRow) -> None:
        """It believes other members than before, or knows something else of a group."""
        before = self._rows.get(row.group)
        self._rows[row.group] = row
        if before is None or before.head != row.head:
            self._check_members(row)
        is_back = before is not None and bool(before.heads) and before.standing in (*GONE, GroupStanding.INVITED)
        if is_back and row.standing is GroupStanding.JOINED:
            self._world.hit("added again")
            if row.cursor < row.head_seq:
                self._world.hit("added again with an unread tail")
        if before is not None and before.fan_out is not row.fan_out:
            self._crossed(f"{before.fan_out.name} to {row.fan_out.name}".lower())

    def _check_members(self, row: GroupRow) -> None:
        state = self._device.store.group_members(row.group)
        if not row.head or not state:
            return
        known = decode_membership(state)
        # What is durable now may be newer than the row that is told.
        signed, before = self._story.roster(known.head), self._rosters.get(row.group)
        if signed is not None and known.roster.hash() == signed.hash():
            self._rosters[row.group] = signed
        elif not self._lies or before is None or known.roster.hash() != before.hash():
            # What a liar shows is passed over, and changes nothing.
            raise self._broke("only signed changes", f"believes members of {row.group:x} that nobody signed")

    def _crossed(self, border: str) -> None:
        self._world.hit(f"border crossed: {border}")
        if any(not device.online for device in self._device.person.town.devices):
            self._world.hit(f"border crossed with a device away: {border}")

    def check_waiting(self) -> None:
        """A turn is over: what waits for its key?"""
        self._named_before = self._named()
        waits = {name.rpartition(" ")[2] for name in self._device.store.errands(WAITING)}
        known = self._story.waited.setdefault(self._device.me.device, set())
        for message_id in waits - known:
            self._world.hit("a key behind its message")
            self._world.tell(self._device.name, f"lacks the key of {message_id}")
        known |= waits

    # --- what its app is told ---------------------------------------------------------------------

    def told(self, event: Event) -> None:
        if isinstance(event, Message):
            if event.id not in self._shown:
                raise self._broke("durable before it is shown", f"tells its app of {event.id}")
            if event.id in self._told:
                raise self._broke("nothing twice", f"tells its app of {event.id} again")
            self._told.add(event.id)
        elif isinstance(event, GroupEvent):
            self._world.tell(self._device.name, f"is told {event}")
            self._world.hit(f"told: {type(event).__name__}")
            if isinstance(event, GroupReceipt):
                self._check_receipt(event)
            if isinstance(event, GroupBroken | GroupChangeRefused | MembersDiffer) and not self._lies:
                raise self._broke("an honest server is believed", f"is told {event}")

    def _check_receipt(self, event: GroupReceipt) -> None:
        message, own = self._story.messages.get(event.message_id), self._device.store.message(event.message_id)
        if message is None or account_of(message.by) != self._device.me.account:
            raise self._broke("receipts are true", f"is told {event}, and its account sent no such message")
        seq = message.answer.group_seq if message.answer is not None else own.group_seq if own is not None else 0
        if seq:
            self._story.receipts.check(self._device, event, seq)
        if event.read:
            self._world.hit("told that somebody has read it in a group")
