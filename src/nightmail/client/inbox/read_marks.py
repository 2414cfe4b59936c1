"""Read marks: exactly what the person has read, sent until the server confirms it.

Knows:   which numbers are unread, and which are read but not confirmed.
Touches: numbers and the state of messages; one errand per message that was read elsewhere before it came here.
Never:   tells the server that a message was read before it is told that the message is stored.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from nightmail.client.events import ReadElsewhere
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Backoff
from nightmail.client.messages import Tick
from nightmail.client.store.rows import MessageNumber, ReadMark
from nightmail.client.timers.lives import counted
from nightmail.model.answers import Done, Said
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of
from nightmail.model.limits import FormLimits
from nightmail.model.records import GroupRead, Read, Span
from nightmail.model.refusals import Refusal
from nightmail.model.spans import pairs, spans_of

from .acks import Acks

SPANS, AUTHORS = FormLimits().spans, FormLimits().authors
"""How many intervals one read mark may list, and how many devices it may name."""
READ_BEFORE = "read "
"""Errands: a message that was read on another own device before it came here."""

_encode = msgspec.msgpack.Encoder().encode
_time = msgspec.msgpack.Decoder(int).decode


class ReadMarks:
    def __init__(self, context: Context, acks: Acks) -> None:
        self._context, self._acks = context, acks
        self._due: dict[int, int] = {}
        """Peer → when to send its read mark."""
        self._asked: set[int] = set()
        """Peers whose last read mark is not answered yet."""
        self._backoff = Backoff(context)

    def mark(self, peer: int, only: Collection[str] | None = None) -> list[str]:
        """Mark all messages of a peer as read, or `only` these. Which became so."""
        store = self._context.store
        rows = [row for row in store.marked(ReadMark.UNREAD, peer) if only is None or row.id in only]
        for row in rows:
            store.put_numbered(replace(row, mark=ReadMark.READING))
        ids = {row.id for row in rows}
        for ident in ids:
            if (message := store.message(ident)) is not None:
                store.put_message(counted(self._context, replace(message, state=Tick.READ)))
        if rows:
            self._say(peer)
        return sorted(ids)

    def mark_elsewhere(self, ids: Collection[str]) -> None:
        """The person read these on another own device, which tells the server. Remember those that are not here yet."""
        store = self._context.store
        for row in store.marked(ReadMark.UNREAD):
            if row.id in ids:
                store.put_numbered(replace(row, mark=ReadMark.NONE))
        known: list[str] = []
        for ident in ids:
            message = store.message(ident)
            if message is None:
                store.put_errand(f"{READ_BEFORE}{ident}", _encode(self._context.now))
            elif not message.own and message.state is not Tick.READ:
                store.put_message(counted(self._context, replace(message, state=Tick.READ)))
                known.append(ident)
        if known:
            self._context.tell(ReadElsewhere(tuple(known)))

    def was_read(self, ident: str) -> bool:
        """Whether a message that arrives now was already read elsewhere. The answer is given once."""
        name = f"{READ_BEFORE}{ident}"
        if self._context.store.errand(name) is None:
            return False
        self._context.store.drop_errand(name)
        return True

    def forget(self) -> None:
        """Once a day: a message that has not come by now will not come."""
        store, now = self._context.store, self._context.now
        for name in store.errands(READ_BEFORE):
            if not (state := store.errand(name)):
                store.put_errand(name, _encode(now))
            elif now - _time(state) >= self._context.limits.remember_ms:
                store.drop_errand(name)

    def soon(self, peer: int) -> None:
        """Send this peer's read mark with the next tick."""
        self._due.setdefault(peer, self._context.now)

    def connected(self) -> None:
        self._backoff.reset()
        for peer in {account_of(row.by) for row in self._context.store.marked(ReadMark.READING)}:
            self._say(peer)

    @property
    def is_confirmed(self) -> bool:
        """The server has answered every read mark that it can be told."""
        peers = {account_of(row.by) for row in self._context.store.marked(ReadMark.READING)}
        return not any(self._readable(peer)[0] if is_group(peer) else True for peer in peers)

    def lost(self) -> None:
        self._due.clear()
        self._asked.clear()

    def deadline(self) -> int | None:
        return min(self._due.values(), default=None)

    def tick(self) -> None:
        for peer, due in list(self._due.items()):
            if self._context.now >= due:
                del self._due[peer]
                self._say(peer)

    def _say(self, peer: int) -> None:
        if not self._context.online or peer in self._asked:
            return  # what is marked meanwhile is sent when the answer comes
        if is_group(peer):
            self._say_in_group(peer)
            return
        told: list[MessageNumber] = []
        spans: list[Span] = []
        rows = self._context.store.marked(ReadMark.READING, peer)
        authors = sorted({row.by for row in rows})[:AUTHORS]
        for by, lane in sorted({(row.by, row.lane) for row in rows if row.by in authors}):
            mine = [row for row in rows if (row.by, row.lane) == (by, lane)]
            new = [Span(by, lane, low, high) for low, high in pairs(spans_of(row.n for row in mine))]
            new = new[: SPANS - len(spans)]
            spans += new
            told += [row for row in mine if new and row.n <= new[-1].high]
        if spans:
            # Otherwise the sender would hear that it was read before it was delivered.
            self._acks.flush()
            self._asked.add(peer)
            self._context.ask(Read(peer, tuple(spans)), lambda said: self._answered(peer, told, said))

    def _say_in_group(self, group: int) -> None:
        """In a group everything up to a number is read: what stands behind an unread message is told later."""
        told, authors = self._readable(group)
        if told:
            self._acks.flush()
            self._asked.add(group)
            read = GroupRead(group, told[-1].n, tuple(sorted(authors)))
            self._context.ask(read, lambda said: self._answered(group, told, said))

    def _readable(self, group: int) -> tuple[list[MessageNumber], set[int]]:
        """What can be told as read, in order, and the accounts that wrote it."""
        store = self._context.store
        unread = min((row.n for row in store.marked(ReadMark.UNREAD, group)), default=None)
        told: list[MessageNumber] = []
        authors: set[int] = set()
        for row in store.marked(ReadMark.READING, group):
            message = store.message(row.id)
            author = {account_of(message.by)} if message is not None else set[int]()
            if (unread is not None and row.n > unread) or len(authors | author) > AUTHORS:
                break
            authors |= author
            told.append(row)
        return told, authors

    def _answered(self, peer: int, told: list[MessageNumber], said: Said) -> None:
        self._asked.discard(peer)
        if isinstance(said, Refusal) and said.retry:
            self._due[peer] = self._backoff.failed()
            return
        # Done; or a refusal that repeating would not change.
        if isinstance(said, Done):
            self._backoff.reset()
        for row in told:
            self._context.store.put_numbered(replace(row, mark=ReadMark.NONE))
        self._say(peer)
