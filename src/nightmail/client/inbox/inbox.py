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
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from nightmail.client.errors import Misbehaved
from nightmail.client.events import Gap, QueueEmpty, Unreadable
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message, Tick, unnamed
from nightmail.client.store.rows import MessageNumber, Missed, ReadMark
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Sealer
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotAsAnnounced, Rejected
from nightmail.e2ee.note import Note
from nightmail.model.ids import MessageId, account_of
from nightmail.model.rows import Entry
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
        read_marks: ReadMarks, parked: Parked,
    ) -> None:  # fmt: skip
        self._context, self._lists, self._sealer = context, lists, sealer
        self._acks, self._receipts, self._read_marks, self._parked = acks, receipts, read_marks, parked
        self._held: dict[Lane, deque[Entries | Gone]] = {}
        """Lanes that are held, and what waits in them, in order, without gaps and repeats."""
        self._next: dict[Lane, int] = {}
        """Of such a lane, the number that comes after what waits."""
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
        taken = 0
        try:
            for seq, entry in enumerate(fresh, cursor + 1):
                if not self._is_known(entry):
                    self._hold_lane(entry, Entries(item.lane, seq, fresh[taken:]))
                    break
                self._take_entry(item.lane, seq, entry)
                taken += 1
        finally:
            # However this ends: what was opened and its cursor are in one transaction.
            if taken:
                self._advance(item.lane, cursor + taken, taken)
        self._judge_parked(taken, fresh)

    # --- a held lane ----------------------------------------------------------------------------

    def _is_known(self, entry: Entry) -> bool:
        return self._sealer.knows(entry) or self._strangers.get(entry.by, 0) > self._context.now

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

    def _hold_lane(self, entry: Entry, rest: Entries) -> None:
        """Hold a lane from an unknown author's entry on, and ask for the author's list."""
        self._held[rest.lane] = deque((rest,))
        self._next.setdefault(rest.lane, _numbers(rest)[1] + 1)
        self._count(rest, 1)
        account, lane = account_of(entry.by), rest.lane

        def found() -> None:
            # If the list does not name it even now, it will not name it in a moment.
            self._strangers[entry.by] = self._context.now + STRANGER_MS
            self._go_on(lane)

        self._lists.forget(account)
        self._lists.want(account, (self, lane), lambda _: found(), found)

    def unblocked(self) -> None:
        """If this device is provisioned now, take what was held until then."""
        if self._unprovisioned and not self._sealer.awaits_provisioning:
            self._unprovisioned = False
            for lane in list(self._held):
                self._go_on(lane)

    def _go_on(self, lane: Lane) -> None:
        waiting = self._held.pop(lane, deque())
        while waiting:
            item = waiting.popleft()
            self._count(item, -1)
            self.take(item)
            if (held := self._held.get(lane)) is not None:
                held.extend(waiting)
                return
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
        context = self._context
        me, original = context.identity, entry.of or entry.id
        author = account_of(entry.by)
        own = author == me.account
        try:
            if not _is_from(author, original) or not (own or entry.to == me.account):
                raise NotAsAnnounced("author")
            if self._parked.entries and self._parked.is_behind(lane, entry):
                self._parked.put(lane, seq, entry)
                return
            note = self._sealer.open(entry)
        except Rejected as error:
            if self._parked.may_park(error) and not final:
                self._parked.put(lane, seq, entry)
            else:
                self._miss(lane, seq, entry, str(error))
            return
        peer = entry.to if own else author
        known = context.store.message(original)
        silent = own or entry.kind is Kind.CONTROL
        read_elsewhere = not silent and known is None and self._read_marks.was_read(original)
        unread = ReadMark.READING if known and known.state is Tick.READ else ReadMark.UNREAD
        mark = ReadMark.NONE if silent or read_elsewhere else unread
        row = MessageNumber(entry.by, entry.to, lane, entry.n, original, mark)
        context.store.put_numbered(row)
        if mark is ReadMark.READING:
            self._read_marks.soon(peer)
        if entry.kind is Kind.CONTROL:
            self._take_control(entry, note)
        elif known is None:
            message = Message(
                id=original, peer=peer, by=entry.by, own=own, at=_stamp(entry, note), body=note.content,
                kind=entry.kind, life_ms=entry.life_ms, state=Tick.READ if read_elsewhere else Tick.SENT,
            )  # fmt: skip
            self.show(message)
            if own:
                self._receipts.catch_up(message, row)

    def _take_control(self, entry: Entry, note: Note) -> None:
        """Only own devices send control messages to each other. One that is not understood is ignored."""
        if account_of(entry.by) == self._context.identity.account:
            with suppress(Rejected):
                self._context.signals.control_received(entry, decode_content(note.content))

    def _miss(self, lane: Lane, seq: int, entry: Entry, why: str) -> None:
        """The entry cannot be opened. The ack will say so, which asks the sender to seal it again."""
        context, original = self._context, entry.of or entry.id
        context.store.put_unopened(lane, seq)
        if context.store.message(original) is None and context.store.find_missed(original) is None:
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
        if not conversation.handle:
            self._learn_handle(message.peer)
        context.tell(replace(message, handle=conversation.handle or unnamed(message.peer)))

    def _learn_handle(self, peer: int) -> None:
        """Only the peer's signed list names its handle. Ask for it once: an old list names none.

        For a copy of an own message nobody has asked for the recipient's list on this device yet.
        """
        if peer not in self._looked_up and self._context.online:
            self._looked_up.add(peer)
            self._lists.want(peer, (self, peer), lambda _: None, lambda: None)


def _numbers(item: Entries | Gone) -> tuple[int, int]:
    return (item.low, item.high) if isinstance(item, Gone) else (item.first, item.first + len(item.entries) - 1)


def _stamp(entry: Entry, note: Note) -> int:
    """When the server took the message. A re-seal says when that was for its original: never later than itself."""
    return note.stamp if 0 < note.stamp <= entry.at else entry.at


def _is_from(author: int, message_id: str) -> bool:
    """A message id begins with a device of its author: no account can use up the ids of another."""
    try:
        return account_of(MessageId.parse(message_id).device) == author
    except ValueError:
        return False
