"""Receiving: every entry once, in order, durable with the cursor before it is acknowledged.

Knows:   how far each lane is stored; one message per original id; which lanes are held.
Touches: messages, numbers, cursors, unopened numbers, parked entries.
Never:   takes a number out of order, or believes an entry that names the wrong author.

An entry by a device that no believed list names cannot be judged before its account's list is here. Until then its
lane is held, with everything behind it: in memory and unacknowledged, so that the server sends it again after a lost
connection. An entry by a known device that does not open while the server is still handing out is parked (`parked.py`):
durable and unacknowledged, until it opens or is judged to be unreadable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from nightmail.client.errors import Misbehaved
from nightmail.client.events import Gap, LifeDiffers, QueueEmpty, TimerChanged, Unreadable
from nightmail.client.groups.opening import GroupOpening, in_lane_order
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message, Tick, unnamed
from nightmail.client.store.rows import MessageNumber, Missed, ReadMark
from nightmail.client.timers.changes import TimerChanges, change_in
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.timers.lives import agreed, counted
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Sealer, Then
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotAsAnnounced, Rejected
from nightmail.e2ee.note import Note
from nightmail.model.group_chain import is_group
from nightmail.model.ids import DEVICE_BITS, MessageId, account_of
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import Drained, Entries, Gone, Receipts

from .acks import Acks
from .parked import Parked
from .read_marks import ReadMarks
from .receipts import IncomingReceipts

STRANGER_MS = 60_000
"""How long a device counts as unknown after its account's list did not name it: one question, not one per entry."""
UNPROVISIONED = "this device was not told yet which account it belongs to"


class Inbox:
    def __init__(
        self, context: Context, lists: DeviceLists, sealer: Sealer, acks: Acks, receipts: IncomingReceipts,
        read_marks: ReadMarks, parked: Parked, deadlines: Deadlines, timer_changes: TimerChanges,
        groups: GroupOpening | None = None,
    ) -> None:  # fmt: skip
        self._context, self._lists, self._sealer = context, lists, sealer
        self._deadlines, self._timer_changes, self._groups = deadlines, timer_changes, groups
        self._acks, self._receipts, self._read_marks, self._parked = acks, receipts, read_marks, parked
        self._held: dict[Lane, deque[Entries | Gone]] = {}
        """Lanes that are held, and what waits in them, in order, without gaps and repeats."""
        self._next: dict[Lane, int] = {}
        """Of such a lane, the number that comes after what waits."""
        self._resuming: set[Lane] = set()
        """Lanes of which held items are being taken."""
        self.held_entries = self.held_bytes = 0
        self._strangers: dict[int, int] = {}
        """Device → until when its account's list need not be asked for again."""
        self._unprovisioned = sealer.awaits_provisioning
        self._stuck_at: int | None = None
        """When a device that is not provisioned looks whether it is stuck."""
        self._drained = False
        """The server has handed everything out, and some of it is held."""
        self._looked_up: set[int] = set()
        """Accounts without a handle whose list was asked for over this connection."""

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        context = self._context
        self._stuck_at = context.now + context.limits.stuck_ms if self._sealer.awaits_provisioning else None
        self._parked.connected()

    def lost(self) -> None:
        self._held.clear()
        self._next.clear()
        self.held_entries = self.held_bytes = 0
        self._strangers.clear()
        self._looked_up.clear()
        self._stuck_at, self._drained = None, False
        self._parked.lost()

    def deadline(self) -> int | None:
        return min((due for due in (self._stuck_at, self._parked.due) if due is not None), default=None)

    def tick(self) -> None:
        context = self._context
        self._judge_parked()
        if self._stuck_at is not None and context.now >= self._stuck_at:
            self._stuck_at = context.now + context.limits.stuck_ms
            # It acknowledges nothing that it cannot judge, so the server may have no credit left to hand out the
            # message that provisions it. A new connection begins with the high lane, which holds that message.
            if self._sealer.awaits_provisioning and self._held:
                context.hang_up = context.hang_up or UNPROVISIONED

    def forget(self) -> None:
        """Once a day: an entry that has not come again by now will not come."""
        context = self._context
        context.store.drop_missed(context.now - context.limits.remember_ms)

    # --- what the server hands out --------------------------------------------------------------

    def take_drained(self, item: Drained) -> None:
        """Everything that waited has been handed out."""
        self._tell_drained()

    def _tell_drained(self) -> None:
        """The app is told when everything is stored, too."""
        self._drained = bool(self._held)
        if not self._drained:
            self._parked.draining = False
            self._judge_parked()
            self._context.tell(QueueEmpty())

    def take(self, item: Entries | Gone) -> None:
        """The next numbers of a lane."""
        if self._unprovisioned:
            # Nothing can be judged; perhaps one of these entries provisions this device.
            self._hold(item)
            if isinstance(item, Entries):
                self._sealer.peek(item.entries)
        elif item.lane in self._held:
            self._hold(item)
        elif isinstance(item, Gone):
            self._take_gone(item)
        else:
            self._take_entries(item)

    def _take_entries(self, item: Entries) -> None:
        cursor = self._check_next(item.lane, item.first)
        fresh = item.entries[max(0, cursor + 1 - item.first) :]
        if not fresh:
            self._acks.repeat(item.lane)
            return
        taken, held = 0, None
        try:
            for seq, entry in enumerate(fresh, cursor + 1):
                if (wait := self.wait_for(entry, (self, item.lane))) is not None:
                    held = Entries(item.lane, seq, fresh[taken:]), wait
                    break
                self._take_entry(item.lane, seq, entry)
                taken += 1
        finally:
            # However this ends: what was opened and its cursor are in one transaction.
            if taken:
                self._advance(item.lane, cursor + taken, taken)
        self._judge_parked(taken, fresh)
        if held is not None:
            # What it waits for may be here at once: then it goes on, behind what was taken.
            self._hold_lane(*held)

    # --- a held lane ----------------------------------------------------------------------------

    def wait_for(self, entry: Entry, who: object) -> Callable[[Then], None] | None:
        """What must come before this entry can be judged, with whom to tell then; None: nothing. `who` waits for one
        thing at a time."""
        if entry.by and not self._sealer.knows(entry) and self._strangers.get(entry.by, 0) <= self._context.now:
            return lambda then: self._ask_for_list(entry.by, who, then)
        return self._groups.blocks(entry) if self._groups is not None and is_group(entry.to) else None

    def _hold(self, item: Entries | Gone) -> None:
        """Let it wait behind the others of its lane. The server repeats what is unacknowledged: repeats are dropped."""
        lane, limits = item.lane, self._context.limits
        due = self._next.get(lane) or self._acks.cursors.of(lane) + 1
        first, last = _numbers(item)
        if first > due:
            raise Misbehaved(f"number {first} of a lane came where {due} was due")
        if last < due:
            return
        if self.held_entries >= limits.held_entries or self.held_bytes >= limits.held_bytes:
            raise Misbehaved("more than may be handed out before it is acknowledged")
        item = Entries(lane, due, item.entries[due - first :]) if isinstance(item, Entries) else replace(item, low=due)
        self._held.setdefault(lane, deque()).append(item)
        self._next[lane] = last + 1
        self._count(item, 1)

    def _count(self, item: Entries | Gone, sign: int) -> None:
        entries = item.entries if isinstance(item, Entries) else ()
        self.held_entries += sign * max(1, len(entries))
        self.held_bytes += sign * sum(len(entry.ciphertext) for entry in entries)

    def _hold_lane(self, rest: Entries, wait: Callable[[Then], None]) -> None:
        """Hold a lane from an entry on that cannot be judged yet, and ask for what is missing."""
        lane = rest.lane
        self._held[lane] = deque((rest,))
        self._next.setdefault(lane, _numbers(rest)[1] + 1)
        self._count(rest, 1)
        wait(lambda: self._go_on(lane))

    def _ask_for_list(self, device: int, who: object, then: Then) -> None:
        def found() -> None:
            # If the list does not name it even now, it will not name it in a moment.
            self._strangers[device] = self._context.now + STRANGER_MS
            then()

        account = account_of(device)
        self._lists.forget(account)
        self._lists.want(account, who, lambda _: found(), found)

    @property
    def is_unprovisioned(self) -> bool:
        """Whether everything is held because nothing can be judged."""
        return self._unprovisioned

    def unblocked(self) -> None:
        """If this device is provisioned now, take what was held until then."""
        if self._unprovisioned and not self._sealer.awaits_provisioning:
            self._unprovisioned = False
            for lane in list(self._held):
                self._go_on(lane)

    def _go_on(self, lane: Lane) -> None:
        waiting = self._held.pop(lane, deque())
        is_within = lane in self._resuming
        self._resuming.add(lane)
        try:
            while waiting:
                item = waiting.popleft()
                self._count(item, -1)
                self.take(item)
                if (held := self._held.get(lane)) is not None:
                    held.extend(waiting)
                    return
        finally:
            if not is_within:
                self._resuming.discard(lane)
        if is_within:
            return  # more of this lane waits outside
        self._next.pop(lane, None)
        if self._drained:
            self._tell_drained()

    # --- what is taken --------------------------------------------------------------------------

    def _take_gone(self, item: Gone) -> None:
        cursor = self._check_next(item.lane, item.low)
        if item.high <= cursor:
            self._acks.repeat(item.lane)
            return
        self._context.tell(Gap(item.lane, cursor + 1, item.high, item.reason))
        self._advance(item.lane, item.high, 1)
        self._judge_parked(item.high - cursor)

    def take_receipts(self, item: Receipts) -> None:
        cursors = self._acks.cursors
        taken = 0
        try:
            for receipt in item.receipts:
                if receipt.seq <= cursors.receipts:
                    continue
                self._receipts.take(receipt)
                cursors = replace(cursors, receipts=receipt.seq)
                taken += 1
        finally:
            if taken:
                self._acks.cursors = cursors
                self._context.store.put_cursors(cursors)
        # Also when all were known: then the server has not seen the last ack.
        self._acks.receipts_stored(taken)

    def _check_next(self, lane: Lane, first: int) -> int:
        cursor = self._acks.cursors.of(lane)
        if first > cursor + 1:
            raise Misbehaved(f"number {first} of a lane came where {cursor + 1} was due")
        return cursor

    def _advance(self, lane: Lane, to: int, count: int) -> None:
        cursors = self._acks.cursors
        cursors = replace(cursors, high=to) if lane is Lane.HIGH else replace(cursors, normal=to)
        self._acks.cursors = cursors
        self._context.store.put_cursors(cursors)
        self._acks.stored(lane, count)

    def _judge_parked(self, numbers: int = 0, entries: Sequence[Entry] = ()) -> None:
        """So many numbers were handed out, with the first of these entries. If what is parked cannot stay, open it, or
        say that it cannot be opened."""
        parked = self._parked
        if not parked.entries:
            return
        parked.count(numbers, sum(len(entry.ciphertext) for entry in entries[:numbers]))
        if parked.must_be_judged:
            judged = parked.take_all()
            for lane, seq, entry in judged:
                self._take_entry(lane, seq, entry, final=True)
            for lane in {lane for lane, _, _ in judged}:
                self._acks.stored(lane, sum(each[0] is lane for each in judged))

    def _take_entry(self, lane: Lane, seq: int, entry: Entry, *, final: bool = False) -> None:
        """Store one entry. If it cannot be opened yet, it is parked, unless this attempt is the `final` one."""
        author, original = account_of(entry.by), entry.of or entry.id
        try:
            if isinstance(entry, GroupEntry):
                note = self._open_in_group(entry, in_order=in_lane_order(lane))
                if note is None:
                    return
            else:
                own = author == self._context.identity.account
                if not _is_from(author, original) or not (own or entry.to == self._context.identity.account):
                    raise NotAsAnnounced("author")
                if self._parked.entries and self._parked.is_behind(lane, entry):
                    self._parked.put(lane, seq, entry)
                    return
                note = self._sealer.open(entry)
        except Rejected as error:
            if not isinstance(entry, GroupEntry) and self._parked.may_park(error) and not final:
                self._parked.put(lane, seq, entry)
            else:
                self._miss(lane, seq, entry, str(error))
            return
        self._file(lane, entry, note)

    def _open_in_group(self, entry: GroupEntry, *, in_order: bool) -> Note | None:
        """A message from a group; None: it was something else, or waits. Raises Rejected."""
        if self._groups is None or (entry.by and not _is_from(account_of(entry.by), entry.of or entry.id)):
            raise NotAsAnnounced("author")
        return self._groups.open(entry, in_order=in_order)

    def take_from_log(self, entry: GroupEntry) -> bool:
        """An entry of a group's log, in its order. False: it could not be opened."""
        try:
            note = self._open_in_group(entry, in_order=False)  # notices may have come through the mailbox
        except Rejected as error:
            self._remember_missed(entry, str(error))
            return False
        if note is not None:
            self._file(entry.lane, entry, note)
        return True

    def take_late(self, entry: GroupEntry, note: Note) -> None:
        """A message from a group that had to wait for its key."""
        self._file(entry.lane, entry, note)

    def _file(self, lane: Lane, entry: Entry, note: Note) -> None:
        """Store what was opened."""
        context = self._context
        me, original, author = context.identity, entry.of or entry.id, account_of(entry.by)
        own, in_group = author == me.account, isinstance(entry, GroupEntry)
        peer = entry.to if own or in_group else author
        known = context.store.message(original)
        is_gone = known is None and self._deadlines.is_gone(original)
        silent = own or entry.kind is Kind.CONTROL
        read_elsewhere = not silent and known is None and self._read_marks.was_read(original)
        unread = ReadMark.READING if is_gone or (known and known.state is Tick.READ) else ReadMark.UNREAD
        mark = ReadMark.NONE if silent or read_elsewhere else unread
        row = _number_of(lane, entry, original, mark)
        context.store.put_numbered(row)
        if mark is ReadMark.READING:
            self._read_marks.soon(peer)
        if entry.kind is Kind.CONTROL and not self._timer_changes.is_change(note.content):
            self._take_control(entry, note)
            return
        if known is None and not is_gone:
            message = Message(
                id=original, peer=peer, by=entry.by, own=own, at=_stamp(entry, note), body=note.content,
                kind=entry.kind, life_ms=self._life_ms(entry, note, peer), group_seq=entry.group_seq,
                state=Tick.READ if read_elsewhere else Tick.SENT,
            )  # fmt: skip
            self.show(counted(context, message) if own or read_elsewhere else message)
        if own and not in_group:
            self._receipts.catch_up(row)

    def _life_ms(self, entry: Entry, note: Note, peer: int) -> int:
        """How long a message lives, by what the server says and by what its author sealed."""
        if entry.kind is Kind.CONTROL:
            return 0  # what is inside is the timer that it sets
        inside_ms = None
        with suppress(Rejected):
            inside_ms = decode_content(note.content).life_ms or 0
        if is_group(peer) and inside_ms is not None and self._groups is not None:
            # The server drops a message of a group after the group's timer, if that is shorter.
            lives = [life for life in (inside_ms, self._groups.timer_ms(peer)) if life]
            inside_ms = min(lives, default=0)
        life = agreed(entry.life_ms, inside_ms, is_reseal=entry.of is not None)
        if life.differs:
            self._context.tell(LifeDiffers(entry.of or entry.id, peer, entry.life_ms, inside_ms or 0))
        return life.ms

    def _take_control(self, entry: Entry, note: Note) -> None:
        """Only own devices send control messages to each other. One that is not understood is ignored."""
        if account_of(entry.by) == self._context.identity.account:
            with suppress(Rejected):
                self._context.signals.control_received(entry, decode_content(note.content))

    def _miss(self, lane: Lane, seq: int, entry: Entry, why: str) -> None:
        """The entry cannot be opened. The ack will say so, which asks the sender to seal it again."""
        self._context.store.put_unopened(lane, seq)
        self._remember_missed(entry, why)

    def _remember_missed(self, entry: Entry, why: str) -> None:
        context, original = self._context, entry.of or entry.id
        was_here = context.store.message(original) is not None or self._deadlines.is_gone(original)
        if not was_here and context.store.find_missed(original) is None:
            context.store.put_missed(Missed(original, entry.by, entry.at))
        context.tell(Unreadable(original, entry.by, why))

    def show(self, message: Message) -> None:
        """Store a message that was not here before, and tell the app."""
        context = self._context
        context.store.put_message(message)
        context.signals.message_stored(message)
        if (missed := context.store.find_missed(message.id)) is not None:
            context.store.put_missed(replace(missed, healed=True))
        conversation = context.store.conversation(message.peer)
        if message.at > conversation.seen:
            conversation = replace(conversation, seen=message.at)
            context.store.put_conversation(conversation)
        person = account_of(message.by) if is_group(message.peer) else message.peer
        handle = context.handle(person)
        if person != context.identity.account and handle == unnamed(person):
            self._learn_handle(person)
        if (life_ms := change_in(message.body) if message.kind is Kind.CONTROL else None) is not None:
            context.tell(TimerChanged(message.id, message.peer, handle, message.own, life_ms, message.at))
        else:
            context.tell(replace(message, handle=handle))

    def _learn_handle(self, peer: int) -> None:
        """Only the peer's signed list names its handle. Ask for it once: an old list names none.

        For a copy of an own message nobody has asked for the recipient's list on this device yet.
        """
        if peer not in self._looked_up and self._context.online:
            self._looked_up.add(peer)
            self._lists.want(peer, (self, peer), lambda _: None, lambda: None)


def _numbers(item: Entries | Gone) -> tuple[int, int]:
    return (item.low, item.high) if isinstance(item, Gone) else (item.first, item.first + len(item.entries) - 1)


def _number_of(lane: Lane, entry: Entry, original: str, mark: ReadMark) -> MessageNumber:
    """Messages of a group are found by their number in it (`outbox/ticks.py`)."""
    if isinstance(entry, GroupEntry):
        return MessageNumber(entry.to << DEVICE_BITS, entry.to, Lane.NORMAL, entry.group_seq, original, mark)
    return MessageNumber(entry.by, entry.to, lane, entry.n, original, mark)


def _stamp(entry: Entry, note: Note) -> int:
    """When the server took the message. A re-seal says when that was for its original: never later than itself."""
    return note.stamp if 0 < note.stamp <= entry.at else entry.at


def _is_from(author: int, message_id: str) -> bool:
    """A message id begins with a device of its author: no account can use up the ids of another."""
    try:
        return account_of(MessageId.parse(message_id).device) == author
    except ValueError:
        return False
