"""Receiving: every entry once, in order, durable with the cursor before it is acknowledged.

Knows:   how far each lane is stored; one message per original id; which lane stands still.
Touches: messages, numbers, cursors, unopened numbers.
Never:   takes a number out of turn, or believes an entry that names the wrong author.

An entry by a device that no believed list names cannot be judged before its account's list is here. Its lane stands
still until then, with everything behind it: in memory, unacknowledged, so that a lost connection brings it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from nightmail.e2ee.content import Content, decode_content
from nightmail.e2ee.errors import NotAsAnnounced, Refused
from nightmail.model.ids import MessageId, account_of
from nightmail.model.rows import Change, Entry
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import Entries, Gone

from .acks import Acks
from .errors import Misbehaved
from .events import Gap, QueueEmpty, Unreadable
from .hub import Hub
from .lists import Lists
from .messages import Message, Tick
from .reads import Reads
from .receipts import Receipts
from .sealer import Note, Sealer
from .store import Mark, Missed, Numbered

STRANGER_MS = 60_000
"""How long it is remembered that an account's list does not name a device: one question, not one per entry."""


class Inbox:
    def __init__(
        self, hub: Hub, lists: Lists, sealer: Sealer, acks: Acks, receipts: Receipts, reads: Reads
    ) -> None:  # fmt: skip
        self._hub, self._lists, self._sealer = hub, lists, sealer
        self._acks, self._receipts, self._reads = acks, receipts, reads
        self._still: dict[Lane, deque[Entries | Gone]] = {}
        """Lanes that stand still, and what waits in them, in order, without gaps and repeats."""
        self._next: dict[Lane, int] = {}
        """Of such a lane, the number that comes behind what waits."""
        self._held_entries = self._held_bytes = 0
        self._strangers: dict[int, int] = {}
        """Device → until when it need not be asked again who that is."""
        self._blind = sealer.is_blind
        self.on_control: Callable[[Entry, Content], None] = lambda entry, content: None
        self.on_shown: Callable[[Message], None] = lambda message: None
        self._emptied = False
        """Everything was handed out, and a lane stands still with some of it."""
        hub.agreed.append(self._agreed)
        hub.daily.append(lambda: hub.store.drop_missed(hub.now - hub.limits.kept_ms))

    def lost(self) -> None:
        self._still.clear()
        self._next.clear()
        self._held_entries = self._held_bytes = 0
        self._strangers.clear()
        self._emptied = False

    @property
    def stands_still(self) -> bool:
        return bool(self._still)

    def drained(self) -> None:
        """Everything that waited has been handed out: told once all of it is judged, too."""
        self._emptied = bool(self._still)
        if not self._emptied:
            self._hub.tell(QueueEmpty())

    def take(self, item: Entries | Gone) -> None:
        """The next numbers of a lane."""
        if self._blind:
            # Nothing can be judged; perhaps this brings the word that it waits for.
            self._hold(item)
            if isinstance(item, Entries):
                self._sealer.peek(item.entries)
        elif item.lane in self._still:
            self._hold(item)
        elif isinstance(item, Gone):
            self.gone(item)
        else:
            self.entries(item)

    def entries(self, item: Entries) -> None:
        cursor = self._turn(item.lane, item.first)
        fresh = item.entries[max(0, cursor + 1 - item.first) :]
        if not fresh:
            self._acks.again(item.lane)
            return
        taken = 0
        try:
            for seq, entry in enumerate(fresh, cursor + 1):
                if not self._is_known(entry):
                    self._stand_still(entry, Entries(item.lane, seq, fresh[taken:]))
                    break
                self._take(item.lane, seq, entry)
                taken += 1
        finally:
            # Whatever ends this, what was opened and the cursor behind it are never apart.
            if taken:
                self._advance(item.lane, cursor + taken, taken)

    # --- a lane that stands still ---------------------------------------------------------------

    def _is_known(self, entry: Entry) -> bool:
        return self._sealer.knows(entry) or self._strangers.get(entry.by, 0) > self._hub.now

    def _hold(self, item: Entries | Gone) -> None:
        """Let it wait behind the others of its lane. The server repeats what is unacknowledged: that is passed over."""
        lane, limits = item.lane, self._hub.limits
        due = self._next.get(lane) or self._acks.cursors.of(lane) + 1
        first, last = _numbers(item)
        if first > due:
            raise Misbehaved(f"number {first} of a lane came where {due} was due")
        if last < due:
            return
        if self._held_entries >= limits.held_entries or self._held_bytes >= limits.held_bytes:
            raise Misbehaved("more than may be handed out before it is acknowledged")
        item = Entries(lane, due, item.entries[due - first :]) if isinstance(item, Entries) else replace(item, low=due)
        self._still.setdefault(lane, deque()).append(item)
        self._next[lane] = last + 1
        self._count(item, 1)

    def _count(self, item: Entries | Gone, sign: int) -> None:
        entries = item.entries if isinstance(item, Entries) else ()
        self._held_entries += sign * max(1, len(entries))
        self._held_bytes += sign * sum(len(entry.ciphertext) for entry in entries)

    def _stand_still(self, entry: Entry, rest: Entries) -> None:
        self._still[rest.lane] = deque((rest,))
        self._next.setdefault(rest.lane, _numbers(rest)[1] + 1)
        self._count(rest, 1)
        account, lane = account_of(entry.by), rest.lane

        def found() -> None:
            # Whom the list does not name even now, it will not name in a moment.
            self._strangers[entry.by] = self._hub.now + STRANGER_MS
            self._go_on(lane)

        self._lists.forget(account)
        self._lists.want(account, (self, lane), lambda _: found(), found)

    def _agreed(self, account: int) -> None:
        if self._blind and not self._sealer.is_blind:
            self._blind = False
            for lane in list(self._still):
                self._go_on(lane)

    def _go_on(self, lane: Lane) -> None:
        waiting = self._still.pop(lane, deque())
        while waiting:
            item = waiting.popleft()
            self._count(item, -1)
            self.take(item)
            if (still := self._still.get(lane)) is not None:
                still.extend(waiting)
                return
        self._next.pop(lane, None)
        if self._emptied:
            self.drained()

    def gone(self, item: Gone) -> None:
        cursor = self._turn(item.lane, item.low)
        if item.high <= cursor:
            self._acks.again(item.lane)
            return
        self._hub.tell(Gap(item.lane, cursor + 1, item.high, item.reason))
        self._advance(item.lane, item.high, 1)

    def changes(self, changes: tuple[Change, ...]) -> None:
        cursors = self._acks.cursors
        taken = 0
        try:
            for change in changes:
                if change.seq <= cursors.changes:
                    continue
                self._receipts.take(change)
                cursors = replace(cursors, changes=change.seq)
                taken += 1
        finally:
            if taken:
                self._acks.cursors = cursors
                self._hub.store.put_cursors(cursors)
        # Also when all were known: then the server has not heard that they are.
        self._acks.receipts_stored(taken)

    def _turn(self, lane: Lane, first: int) -> int:
        cursor = self._acks.cursors.of(lane)
        if first > cursor + 1:
            raise Misbehaved(f"number {first} of a lane came where {cursor + 1} was due")
        return cursor

    def _advance(self, lane: Lane, to: int, count: int) -> None:
        cursors = self._acks.cursors
        cursors = replace(cursors, high=to) if lane is Lane.HIGH else replace(cursors, normal=to)
        self._acks.cursors = cursors
        self._hub.store.put_cursors(cursors)
        self._acks.stored(lane, count)

    def _take(self, lane: Lane, seq: int, entry: Entry) -> None:
        hub = self._hub
        me, original = hub.identity, entry.of or entry.id
        author = account_of(entry.by)
        own = author == me.account
        try:
            if not _is_from(author, original) or not (own or entry.to == me.account):
                raise NotAsAnnounced("author")
            note = self._sealer.open(entry)
        except Refused as error:
            self._miss(lane, seq, entry, str(error))
            return
        peer = entry.to if own else author
        known = hub.store.message(original)
        silent = own or entry.kind is Kind.CONTROL
        read_elsewhere = not silent and known is None and self._reads.was_read(original)
        unread = Mark.READING if known and known.state is Tick.READ else Mark.UNREAD
        mark = Mark.NONE if silent or read_elsewhere else unread
        row = Numbered(entry.by, entry.to, lane, entry.n, original, mark)
        hub.store.put_numbered(row)
        if mark is Mark.READING:
            self._reads.soon(peer)
        if entry.kind is Kind.CONTROL:
            self._obey(entry, note)
        elif known is None:
            message = Message(
                id=original, peer=peer, by=entry.by, own=own, at=_stamp(entry, note), body=note.content,
                kind=entry.kind, life_ms=entry.life_ms, state=Tick.READ if read_elsewhere else Tick.SENT,
            )  # fmt: skip
            self._show(message)
            if own:
                self._receipts.catch_up(message, row)

    def _obey(self, entry: Entry, note: Note) -> None:
        """Only devices of the own account give each other such words; what is not understood is passed over."""
        if account_of(entry.by) == self._hub.identity.account:
            with suppress(Refused):
                self.on_control(entry, decode_content(note.content))

    def _miss(self, lane: Lane, seq: int, entry: Entry, why: str) -> None:
        """It cannot be opened: said in the acknowledgement, which is the request to seal it again."""
        hub, original = self._hub, entry.of or entry.id
        hub.store.put_unopened(lane, seq)
        if hub.store.message(original) is None and hub.store.find_missed(original) is None:
            hub.store.put_missed(Missed(original, entry.by, entry.at))
        hub.tell(Unreadable(original, entry.by, why))

    def _show(self, message: Message) -> None:
        hub = self._hub
        hub.store.put_message(message)
        self.on_shown(message)
        if (missed := hub.store.find_missed(message.id)) is not None:
            hub.store.put_missed(replace(missed, healed=True))
        conversation = hub.store.conversation(message.peer)
        if message.at > conversation.seen:
            conversation = replace(conversation, seen=message.at)
            hub.store.put_conversation(conversation)
        hub.tell(replace(message, handle=conversation.handle or f"{message.peer:x}"))


def _numbers(item: Entries | Gone) -> tuple[int, int]:
    return (item.low, item.high) if isinstance(item, Gone) else (item.first, item.first + len(item.entries) - 1)


def _stamp(entry: Entry, note: Note) -> int:
    """When the server took the message. A re-seal says when that was for the original: never later than itself."""
    return note.stamp if 0 < note.stamp <= entry.at else entry.at


def _is_from(author: int, message_id: str) -> bool:
    """A message id begins with a device of whoever wrote it: nobody can use up another's ids."""
    try:
        return account_of(MessageId.parse(message_id).device) == author
    except ValueError:
        return False
