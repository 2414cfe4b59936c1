"""Every part of the machine, built in order; who hears which signal; which part takes which item.

Knows:   all rooms of the client. It is the only module that does.
Never:   decides anything: each method hands on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from nightmail.client.groups.own_devices import GroupSync
from nightmail.client.groups.parts import GroupParts
from nightmail.client.inbox.acks import Acks
from nightmail.client.inbox.inbox import Inbox
from nightmail.client.inbox.parked import Parked
from nightmail.client.inbox.read_marks import ReadMarks
from nightmail.client.inbox.receipts import IncomingReceipts
from nightmail.client.limits import ClientLimits
from nightmail.client.link import bounds
from nightmail.client.link.liveness import Liveness
from nightmail.client.link.presence import PresenceView
from nightmail.client.media.addressing import Addressing
from nightmail.client.media.part import Media
from nightmail.client.messages import Message
from nightmail.client.outbox.answers import Answers
from nightmail.client.outbox.control_copies import ControlCopies
from nightmail.client.outbox.known_people import KnownPeople
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.reseals import Reseals
from nightmail.client.outbox.sending import Sending
from nightmail.client.outbox.stream import OutgoingStream
from nightmail.client.outbox.streams import Streams
from nightmail.client.outbox.successors import Successors
from nightmail.client.outbox.ticks import Ticks
from nightmail.client.own_devices.backup_sync import BackupSync
from nightmail.client.own_devices.contact_sync import ContactSync
from nightmail.client.own_devices.controls import Control
from nightmail.client.own_devices.device_linking import DeviceLinking
from nightmail.client.own_devices.move_in import MoveIn
from nightmail.client.own_devices.move_out import MoveOut
from nightmail.client.own_devices.own_device_list import OwnDeviceList
from nightmail.client.own_devices.pairing import Pairing
from nightmail.client.own_devices.past import Past
from nightmail.client.own_devices.read_sync import ReadSync
from nightmail.client.own_devices.revocations import Revocations
from nightmail.client.own_devices.schedule_sync import ScheduleSync
from nightmail.client.own_devices.timer_sync import TimerSync
from nightmail.client.schedules.early_receipts import EarlyReceipts
from nightmail.client.schedules.lasting_keys import LastingKeys
from nightmail.client.schedules.outcomes import ScheduleOutcomes
from nightmail.client.schedules.scheduling import Scheduling
from nightmail.client.schedules.sealing import ScheduleSealing
from nightmail.client.store.port import Store
from nightmail.client.store.rows import DeviceList, Identity, Outgoing
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.client.timers.changes import TimerChanges
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.key_stock import KeyStock
from nightmail.client.trust.sealer import Sealer, Then
from nightmail.client.trust.sessions import Sessions
from nightmail.e2ee.chance import Chance
from nightmail.e2ee.content import Content, decode_content
from nightmail.e2ee.note import Note
from nightmail.model.answers import Said
from nightmail.model.group_chain import is_group
from nightmail.model.records import GroupSealed, GroupSent, GroupVoided
from nightmail.model.refusals import StaleGroup
from nightmail.model.rows import Entry, GroupEntry, PendingReceipt
from nightmail.model.spans import Spans
from nightmail.wire.items import (
    Answered,
    Devices,
    Drained,
    Entries,
    FromServer,
    Gone,
    Goodbye,
    GroupChain,
    GroupLog,
    GroupMembers,
    GroupSeenBy,
    KeysLow,
    Pong,
    Receipts,
    Seen,
    ShownTo,
    Types,
    Welcome,
)

from .context import Context

Item = TypeVar("Item", bound=FromServer)

MakeSealer: TypeAlias = Callable[[Context, DeviceLists], Sealer]


class Timed(Protocol):
    def deadline(self) -> int | None: ...

    def tick(self) -> None: ...


class Taker(NamedTuple):
    """What becomes of one class of items from the server."""

    is_sound: Callable[[Any], bool]
    """Whether its numbers can be; checked for a whole frame before any of it is taken."""
    take: Callable[[Any], None]
    before_welcome: bool
    """The server may say it first."""


def build_sealer(
    context: Context, lists: DeviceLists, make: Callable[..., E2eeSealer] = E2eeSealer
) -> E2eeSealer:  # fmt: skip
    """The sealer of every client. `make` is for the simulator, which watches it."""
    key_stock = KeyStock(context)
    believed = BelievedLists(context, key_stock)
    own_list = OwnDeviceList(context, lists, believed, key_stock)
    sessions = Sessions(context, lists, believed, key_stock)
    pairing = Pairing(context, lists, believed, key_stock)
    return make(context, believed, key_stock, own_list, sessions, pairing)


class OwnDeviceParts:
    """The parts for the account's own devices. A sealer without keys has none of them."""

    def __init__(
        self, context: Context, e2ee: E2eeSealer, outbox: Outbox, control_copies: ControlCopies, read_marks: ReadMarks,
        deadlines: Deadlines, timer_changes: TimerChanges, inbox: Inbox, group_sync: GroupSync, scheduling: Scheduling,
    ) -> None:  # fmt: skip
        self.past = Past(context, e2ee.believed, deadlines)
        self.move_in = MoveIn(context, e2ee.believed, outbox, self.past)
        self.move_out = MoveOut(context, e2ee, outbox, control_copies)
        self.revocations = Revocations(context)
        self.contact_sync = ContactSync(context, e2ee, outbox)
        self.timer_sync = TimerSync(context, outbox, timer_changes, inbox.show)
        self.schedule_sync = ScheduleSync(context, e2ee, outbox, scheduling)
        self.backup_sync = BackupSync(context, e2ee, outbox)
        self.linking = DeviceLinking(
            context, e2ee, outbox, self.move_out, self.revocations, self.contact_sync, self.timer_sync, group_sync,
            self.schedule_sync, self.backup_sync,
        )  # fmt: skip
        self.read_sync = ReadSync(context, e2ee.believed, outbox, read_marks)
        self.received: dict[int, Callable[[int, bytes], None]] = {
            Control.READ: self.read_sync.take,
            Control.HISTORY: self.move_in.take,
            Control.MOVED: self.move_out.take_moved,
            Control.READY: self.move_out.take_ready,
            Control.CONTACTS: self.contact_sync.take,
            Control.TIMERS: self.timer_sync.take,
            Control.GROUPS: group_sync.take,
            Control.SCHEDULES: self.schedule_sync.take,
            Control.BACKUPS: self.backup_sync.take,
        }
        """Control message → who takes it, as (device that sent it, data). `Pairing` looks for PROVISION by itself."""
        self.accepted: dict[int, Callable[[Outgoing], None]] = {
            Control.PROVISION: self.linking.provision_accepted,
            Control.MOVED: self.move_in.moved_accepted,
        }
        """Control message → who must know that the server took it."""


class Parts:
    """All parts. Implements `Signals`, and hands each signal to the parts that need it, in order."""

    def __init__(
        self, store: Store, identity: Identity, limits: ClientLimits, chance: Random, secrets: Chance,
        make_sealer: MakeSealer,
    ) -> None:  # fmt: skip
        self.context = context = Context(store, identity, limits, chance, secrets, self)
        self.liveness = Liveness(context)
        # --- trust
        self.lists = DeviceLists(context)
        self.sealer = make_sealer(context, self.lists)
        self.e2ee = self.sealer if isinstance(self.sealer, E2eeSealer) else None
        # --- outbox
        self.ticks = Ticks(context)
        self.streams = Streams(context, self.ticks)
        self.control_copies = ControlCopies(context)
        self.sending = Sending(context, self.lists, self.sealer, self.streams)
        self.answers = Answers(context, self.lists, self.streams, self.sending, self.control_copies, self.ticks)
        self.outbox = Outbox(context, self.sealer, self.streams, self.sending, self.control_copies)
        self.known_people = KnownPeople(context)
        self.presence = PresenceView(context)
        self.successors = Successors(context, self.lists, self.ticks, self.outbox)
        self.reseals = Reseals(context, self.sealer, self.ticks, self.outbox)
        # --- timers
        self.deadlines = Deadlines(context)
        self.timer_changes = TimerChanges(context, self.outbox)
        # --- inbox
        self.parked = Parked(context)
        self.acks = Acks(context, self.parked)
        self.read_marks = ReadMarks(context, self.acks)
        self.early_receipts = EarlyReceipts(context)
        self.receipts = IncomingReceipts(
            context, self.sealer, self.ticks, self.outbox, self.control_copies, self.reseals, self.successors,
            self.deadlines, self.early_receipts,
        )  # fmt: skip
        # --- groups
        self.groups: GroupParts | None = None
        if self.e2ee is not None:
            self.groups = GroupParts(
                context, self.lists, self.e2ee, self.streams, self.sending, self.outbox, self.ticks, self.group_opened,
                self.group_entry_waits_for, self.group_entry_came,
            )  # fmt: skip
        self.inbox = Inbox(
            context, self.lists, self.sealer, self.acks, self.receipts, self.read_marks, self.parked, self.deadlines,
            self.timer_changes, self.groups.opening if self.groups else None,
        )  # fmt: skip
        self.media = Media(context, self.outbox, self.sending, self.ticks)
        # --- messages for later, and own devices
        self.outcomes = ScheduleOutcomes(context, self.deadlines, self.inbox.show, self.receipts.learned)
        self.scheduling: Scheduling | None = None
        self.own: OwnDeviceParts | None = None
        if self.e2ee is not None and self.groups is not None:
            keys = LastingKeys(context, self.lists, self.e2ee.sessions)
            sealing = ScheduleSealing(context, self.lists, self.e2ee, self.groups, keys)
            self.scheduling = Scheduling(context, sealing, self.outcomes)
            self.own = OwnDeviceParts(
                context, self.e2ee, self.outbox, self.control_copies, self.read_marks, self.deadlines,
                self.timer_changes, self.inbox, self.groups.sync, self.scheduling,
            )  # fmt: skip
        self.takers = self._takers()

    # --- items from the server ------------------------------------------------------------------

    def _takers(self) -> dict[type[FromServer], Taker]:
        """Item → the part that takes it. Every class of `FromServer` is here."""
        groups = self.groups
        return dict((
            _taker(Welcome, bounds.is_welcome, self._take_welcome, before_welcome=True),
            _taker(Goodbye, bounds.is_goodbye, self.liveness.take_goodbye, before_welcome=True),
            _taker(Pong, bounds.is_anything, self.liveness.take_pong),
            _taker(Answered, bounds.is_answered, self.context.take_answer),
            _taker(Devices, bounds.is_devices, self.context.take_devices),
            _taker(KeysLow, bounds.is_anything, self.sealer.take_keys_low),
            _taker(Entries, bounds.is_entries, self.inbox.take),
            _taker(Gone, bounds.is_gone, self.inbox.take),
            _taker(Receipts, bounds.is_receipts, self.inbox.take_receipts),
            _taker(Drained, bounds.is_drained, self.inbox.take_drained),
            _taker(Seen, bounds.is_seen, self.presence.take_seen),
            _taker(Types, bounds.is_types, self.presence.take_types),
            _taker(ShownTo, bounds.is_anything, self.presence.take_shown_to),
            _taker(GroupChain, bounds.is_group_chain, groups.follower.take_chain if groups else _not_asked),
            _taker(GroupMembers, bounds.is_group_members, groups.welcomes.take_members if groups else _not_asked),
            _taker(GroupLog, bounds.is_group_log, groups.logs.take if groups else _not_asked),
            _taker(GroupSeenBy, bounds.is_group_seen_by, groups.seen_by.take_seen if groups else _not_asked),
        ))  # fmt: skip

    # --- the connection and the clock -----------------------------------------------------------

    def _take_welcome(self, item: Welcome) -> None:
        self.liveness.take_welcome(item)
        self.forget_own_devices()
        if self.e2ee is not None:
            self.e2ee.key_stock.connected()
            self.e2ee.pairing.connected()
        self.acks.connected()
        self.read_marks.connected()
        self.control_copies.connected()
        self.sending.connected()
        self.known_people.connected()
        self.successors.connected()
        self.reseals.connected()
        self.inbox.connected()
        self.presence.connected()
        if self.groups is not None:
            self.groups.connected()
        if self.scheduling is not None:
            self.scheduling.connected()
        if self.own is not None:
            self.own.revocations.connected()
            self.own.linking.connected()
            self.own.move_out.connected()
            self.own.backup_sync.step()

    def lost(self) -> None:
        """The connection is gone."""
        self.context.lost()
        if self.e2ee is not None:
            for part in (self.e2ee.key_stock, self.e2ee.own_list, self.e2ee.sessions, self.e2ee.pairing):
                part.lost()
        for part in (
            self.lists, self.sending, self.acks, self.read_marks, self.inbox, self.known_people.retry,
            self.successors.retry, self.reseals.timer, self.presence,
        ):  # fmt: skip
            part.lost()
        if self.groups is not None:
            self.groups.lost()
        if self.scheduling is not None:
            self.scheduling.lost()
        if self.own is not None:
            for part in (self.own.linking.timer, self.own.move_out.timer, self.own.revocations.retry):
                part.lost()

    def timed(self) -> list[Timed]:
        """Every part with a deadline, in the order in which they tick."""
        # What is over ends before any other part can send or tell it.
        parts: list[Timed] = [
            self.deadlines,
            self.liveness,
            self.inbox,
            self.sending,
            self.acks,
            self.read_marks,
            self.lists,
        ]
        if self.e2ee is not None:
            parts += [self.e2ee.key_stock, self.e2ee.own_list.retry, self.e2ee.sessions]
        parts += [self.known_people.retry, self.successors.retry, self.reseals.timer, self.presence]
        if self.groups is not None:
            parts += [self.groups.welcomes.retry, self.groups.logs.retry]
        if self.scheduling is not None:
            parts.append(self.scheduling)
        if self.own is not None:
            parts += [self.own.move_out.timer, self.own.revocations.retry, self.own.linking.timer]
        return parts

    def forget_own_devices(self) -> None:
        """Ask for this account's list before the next use."""
        self.lists.forget(self.context.identity.account)

    # --- signals: lists and keys ----------------------------------------------------------------

    def believe(self, item: Devices) -> DeviceList | None:
        return self.sealer.believe(item)

    def key_changed(self, account: int) -> None:
        if self.e2ee is not None:
            self.e2ee.sessions.key_changed(account)
        self.sending.key_changed(account)
        if self.scheduling is not None:
            self.scheduling.key_changed(account)

    def unblocked(self, account: int) -> None:
        self.sending.unblocked(account)
        was_blocked = self.inbox.is_unprovisioned
        self.inbox.unblocked()
        if was_blocked and self.groups is not None:
            self.groups.logs.unblocked()
        if self.scheduling is not None:
            self.scheduling.unblocked(account)

    def keys_published(self) -> None:
        if self.e2ee is not None:
            self.e2ee.keys_published()

    def own_list_published(self) -> None:
        if self.own is not None:
            self.own.linking.step()

    # --- signals: messages ----------------------------------------------------------------------

    def number_answered(self, stream: OutgoingStream, n: int, round_: int, said: Said, *, is_void: bool) -> None:
        self.answers.take(stream, n, round_, said, is_void=is_void)

    def message_stored(self, message: Message) -> None:
        self.presence.message_stored(message)
        self.media.message_stored(message)
        if self.own is not None:
            self.own.move_out.message_stored(message)

    def control_received(self, entry: Entry, content: Content) -> None:
        if self.own is not None and (take := self.own.received.get(content.control or 0)):
            take(entry.by, content.data or b"")

    def numbered_in_group(self, group: int, number: int) -> None:
        if self.groups is not None:
            self.groups.seen_by.numbered(group, number)

    def control_accepted(self, row: Outgoing) -> None:
        if self.groups is not None and is_group(row.to):
            self.groups.control_accepted(row)
            return
        if self.own is not None and (accepted := self.own.accepted.get(decode_content(row.content).control or 0)):
            accepted(row)

    def message_ended(self, message: Message) -> None:
        self.media.message_ended(message)

    def message_failed(self, message: Message) -> None:
        self.media.message_failed(message)

    def addressing(self, row: Outgoing, devices: Collection[int]) -> Addressing:
        return self.media.addressing(row, devices)

    def recipient_removed(self, message: Message, device: int, at: int, reason: str) -> None:
        self.successors.removed(message, device, at, reason)

    # --- signals: groups ------------------------------------------------------------------------

    def prepare_for_group(self, stream: OutgoingStream) -> None:
        if self.groups is not None:
            self.groups.sealing.prepare(stream)

    def record_for_group(
        self, stream: OutgoingStream, row: Outgoing
    ) -> GroupSent | GroupSealed | GroupVoided | None:  # fmt: skip
        return self.groups.sealing.record(stream, row) if self.groups is not None else None

    def group_is_stale(self, group: int, said: StaleGroup) -> None:
        if self.groups is not None:
            self.groups.stale(group, said)

    def is_member(self, group: int) -> bool:
        return self.groups is not None and self.groups.known.joined(group) is not None

    def number_was_used(self, to: int) -> None:
        if self.groups is not None and is_group(to):
            self.groups.keys.drop(to)

    def group_receipt(self, receipt: PendingReceipt) -> None:
        if self.groups is not None:
            self.groups.seen_by.take(receipt)

    def group_opened(self, entry: GroupEntry, note: Note) -> None:
        self.inbox.take_late(entry, note)

    def group_entry_waits_for(self, entry: GroupEntry) -> Callable[[Then], None] | None:
        return self.inbox.wait_for(entry, (self.inbox, entry.to))

    def group_entry_came(self, entry: GroupEntry) -> bool:
        return self.inbox.take_from_log(entry)

    def group_goes_on(self, group: int) -> None:
        if self.scheduling is not None:
            self.scheduling.group_goes_on(group)

    # --- signals: messages for later ------------------------------------------------------------

    def schedule_taken(self, row: ScheduledRow) -> None:
        if self.own is not None:
            self.own.schedule_sync.tell(row)

    def schedules_changed(self, serials: Spans) -> None:
        if self.scheduling is not None:
            self.scheduling.take_news(serials)

    # --- signals: own devices -------------------------------------------------------------------

    def pending_device_gone(self, device: int) -> None:
        if self.own is not None:
            self.own.linking.dismiss(device, "the server no longer has it")

    def device_revoked(self, device: int) -> None:
        if self.own is not None:
            self.own.linking.revoked(device)

    def account_received(self, by: int) -> None:
        if self.own is not None:
            self.own.move_in.expect(by)

    def moved_from(self, device: int) -> None:
        if self.scheduling is not None:
            self.scheduling.adopt(device)

    def awaits_trust(self) -> bool:
        return self.own is not None and self.own.move_in.awaits_trust

    # --- signals: time --------------------------------------------------------------------------

    def day_passed(self) -> None:
        if self.e2ee is not None:
            self.e2ee.sessions.forget()
        self.read_marks.forget()
        self.inbox.forget()
        self.deadlines.forget()
        self.outcomes.forget()
        self.early_receipts.forget()
        if self.groups is not None:
            self.groups.forget()
        if self.own is not None:
            self.own.contact_sync.forget()


def _taker(
    kind: type[Item], is_sound: Callable[[Item], bool], take: Callable[[Item], None], *, before_welcome: bool = False
) -> tuple[type[FromServer], Taker]:
    return kind, Taker(is_sound, take, before_welcome)


def _not_asked(_item: FromServer) -> None:
    """This client asks nothing that would be answered so."""
