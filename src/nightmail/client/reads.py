"""Read marks: exactly what was looked at, told until the server confirms it.

Knows:   which numbers are unread, and which are read but not confirmed.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from nightmail.model.answers import Done, Said
from nightmail.model.ids import account_of
from nightmail.model.limits import FormLimits
from nightmail.model.records import Read, Span
from nightmail.model.refusals import Refusal
from nightmail.model.spans import pairs, spans_of

from .events import ReadElsewhere
from .hub import Hub
from .messages import Tick
from .retries import delay_ms
from .store import Mark, Numbered

SPANS, AUTHORS = FormLimits().spans, FormLimits().authors
"""The most intervals that one read mark may list, and devices whose messages it may name."""
READ_BEFORE = "read "
"""How the errands are named that remember what was read elsewhere before it came."""

_encode = msgspec.msgpack.Encoder().encode
_time = msgspec.msgpack.Decoder(int).decode


class Reads:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        hub.daily.append(self._forget)
        self._due: dict[int, int] = {}
        """Peer → when to tell it of what was read."""
        self._asked: set[int] = set()
        """Peers whose last mark is not answered yet."""
        self._failures = 0

    def mark(self, peer: int, only: Collection[str] | None = None) -> list[str]:
        """Everything shown of a peer's messages counts as read, or `only` these; which became so."""
        store = self._hub.store
        rows = [row for row in store.marked(Mark.UNREAD, peer) if only is None or row.id in only]
        for row in rows:
            store.put_numbered(replace(row, mark=Mark.READING))
        ids = {row.id for row in rows}
        for ident in ids:
            if (message := store.message(ident)) is not None:
                store.put_message(replace(message, state=Tick.READ))
        if rows:
            self._say(peer)
        return sorted(ids)

    def mark_elsewhere(self, ids: Collection[str]) -> None:
        """Another own device has shown these, and tells the server itself. What is not here yet is remembered."""
        store = self._hub.store
        for row in store.marked(Mark.UNREAD):
            if row.id in ids:
                store.put_numbered(replace(row, mark=Mark.NONE))
        known: list[str] = []
        for ident in ids:
            message = store.message(ident)
            if message is None:
                store.put_errand(f"{READ_BEFORE}{ident}", _encode(self._hub.now))
            elif not message.own and message.state is not Tick.READ:
                store.put_message(replace(message, state=Tick.READ))
                known.append(ident)
        if known:
            self._hub.tell(ReadElsewhere(tuple(known)))

    def was_read(self, ident: str) -> bool:
        """Whether a message that comes now was read elsewhere before it came; asked once."""
        name = f"{READ_BEFORE}{ident}"
        if self._hub.store.errand(name) is None:
            return False
        self._hub.store.drop_errand(name)
        return True

    def _forget(self) -> None:
        """What has not come by now will not come."""
        store, now = self._hub.store, self._hub.now
        for name in store.errands(READ_BEFORE):
            if not (state := store.errand(name)):
                store.put_errand(name, _encode(now))
            elif now - _time(state) >= self._hub.limits.kept_ms:
                store.drop_errand(name)

    def soon(self, peer: int) -> None:
        self._due.setdefault(peer, self._hub.now)

    def connected(self) -> None:
        self._failures = 0
        for peer in {account_of(row.by) for row in self._hub.store.marked(Mark.READING)}:
            self._say(peer)

    def lost(self) -> None:
        self._due.clear()
        self._asked.clear()

    def deadline(self) -> int | None:
        return min(self._due.values(), default=None)

    def tick(self) -> None:
        for peer, due in list(self._due.items()):
            if self._hub.now >= due:
                del self._due[peer]
                self._say(peer)

    def _say(self, peer: int) -> None:
        if not self._hub.online or peer in self._asked:
            return  # whatever is marked meanwhile is told when the answer comes
        told: list[Numbered] = []
        spans: list[Span] = []
        rows = self._hub.store.marked(Mark.READING, peer)
        authors = sorted({row.by for row in rows})[:AUTHORS]
        for by, lane in sorted({(row.by, row.lane) for row in rows if row.by in authors}):
            mine = [row for row in rows if (row.by, row.lane) == (by, lane)]
            new = [Span(by, lane, low, high) for low, high in pairs(spans_of(row.n for row in mine))]
            new = new[: SPANS - len(spans)]
            spans += new
            told += [row for row in mine if new and row.n <= new[-1].high]
        if spans:
            self._asked.add(peer)
            self._hub.ask(Read(peer, tuple(spans)), lambda said: self._answered(peer, told, said))

    def _answered(self, peer: int, told: list[Numbered], said: Said) -> None:
        self._asked.discard(peer)
        if isinstance(said, Refusal) and said.retry:
            self._failures += 1
            self._due[peer] = self._hub.now + delay_ms(self._failures, self._hub.limits, self._hub.chance)
            return
        # Done; or a refusal that repeating would not change.
        self._failures = 0 if isinstance(said, Done) else self._failures
        for row in told:
            self._hub.store.put_numbered(replace(row, mark=Mark.NONE))
        self._say(peer)
