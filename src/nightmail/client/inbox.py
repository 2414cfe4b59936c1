"""Receiving: every entry once, in order, durable with the cursor before it is acknowledged.

Knows:   how far each lane is stored; one message per original id.
Touches: messages, numbers, cursors, unopened numbers.
Never:   takes a number out of turn, or believes an entry that names the wrong author.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.model.ids import MessageId, account_of
from nightmail.model.rows import Change, Entry
from nightmail.model.words import Lane
from nightmail.wire.items import Entries, Gone

from .acks import Acks
from .errors import Misbehaved
from .events import Gap, Unreadable
from .hub import Hub
from .messages import Message, Tick
from .reads import Reads
from .receipts import Receipts
from .store import Mark, Numbered


class Inbox:
    def __init__(self, hub: Hub, acks: Acks, receipts: Receipts, reads: Reads) -> None:
        self._hub, self._acks, self._receipts, self._reads = hub, acks, receipts, reads

    def entries(self, item: Entries) -> None:
        cursor = self._turn(item.lane, item.first)
        fresh = item.entries[max(0, cursor + 1 - item.first) :]
        if not fresh:
            self._acks.again(item.lane)
            return
        for seq, entry in enumerate(fresh, cursor + 1):
            self._take(item.lane, seq, entry)
        self._advance(item.lane, cursor + len(fresh), len(fresh))

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
        for change in changes:
            if change.seq <= cursors.changes:
                continue
            self._receipts.take(change)
            cursors = replace(cursors, changes=change.seq)
            taken += 1
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
        body = hub.sealer.open(entry) if _is_from(author, original) and (own or entry.to == me.account) else None
        if body is None:
            hub.store.put_unopened(lane, seq)
            hub.tell(Unreadable(entry.id, entry.by))
            return
        peer = entry.to if own else author
        known = hub.store.message(original)
        mark = Mark.NONE if own else Mark.READING if known and known.state is Tick.READ else Mark.UNREAD
        row = Numbered(entry.by, entry.to, lane, entry.n, original, mark)
        hub.store.put_numbered(row)
        if mark is Mark.READING:
            self._reads.soon(peer)
        if known is None:
            message = Message(
                id=original, peer=peer, by=entry.by, own=own, at=entry.at, body=body, kind=entry.kind,
                life_ms=entry.life_ms, state=Tick.SENT,
            )  # fmt: skip
            self._show(message)
            if own:
                self._receipts.catch_up(message, row)

    def _show(self, message: Message) -> None:
        hub = self._hub
        hub.store.put_message(message)
        conversation = hub.store.conversation(message.peer)
        if message.at > conversation.seen:
            conversation = replace(conversation, seen=message.at)
            hub.store.put_conversation(conversation)
        hub.tell(replace(message, handle=conversation.handle or f"{message.peer:x}"))


def _is_from(author: int, message_id: str) -> bool:
    """A message id begins with a device of whoever wrote it: nobody can use up another's ids."""
    try:
        return account_of(MessageId.parse(message_id).device) == author
    except ValueError:
        return False
