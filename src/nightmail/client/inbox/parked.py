"""Entries that this device cannot open yet: parked until the server has handed out everything that waited.

Knows:   the parked entries of each lane. A key that opens one may still come, in the other lane.
Touches: one errand for each of them, so that a restart does not lose one.
Never:   keeps more than the limits allow, or shows an author's entries of a lane in another order than they came in.

A lane is acknowledged up to its first parked entry only, and the server hands out only so much beyond what was
acknowledged. So the parked entries are judged early if much was handed out since the first of them, or if nothing more
comes for a while.
"""

from __future__ import annotations

import msgspec

from nightmail.client.machine.context import Context
from nightmail.e2ee.errors import NoSession, Rejected, TooFarAhead, Undecipherable
from nightmail.model.rows import Entry
from nightmail.model.words import Lane

ERRAND = "parked "
MAY_OPEN_LATER = NoSession, TooFarAhead, Undecipherable
"""Why an entry that cannot be opened now may be opened later."""

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Entry).decode


class Parked:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.entries: dict[tuple[Lane, int], Entry] = {}
        """(Lane, number) → entry, in the order in which they came."""
        for name in context.store.errands(ERRAND):
            lane, seq = name.removeprefix(ERRAND).split(" ")
            self.entries[Lane(int(lane)), int(seq)] = _entry(context.store.errand(name) or b"")
        self.draining = True
        """The server has not handed out everything yet."""
        self._since_entries = self._since_bytes = 0
        """How much was handed out over this connection since the first entry was parked."""
        self.due: int | None = None
        """When they are judged if nothing more comes."""

    def lost(self) -> None:
        """The connection is gone. The next one hands out again until the queue is empty."""
        self.draining, self.due = True, None
        self._since_entries = self._since_bytes = 0

    def connected(self) -> None:
        self._wait()

    def may_park(self, error: Rejected) -> bool:
        return self.draining and isinstance(error, MAY_OPEN_LATER)

    def is_behind(self, lane: Lane, entry: Entry) -> bool:
        """Whether an earlier entry of the same author is parked in this lane."""
        return any(of is lane and each.by == entry.by for (of, _), each in self.entries.items())

    def put(self, lane: Lane, seq: int, entry: Entry) -> None:
        self.entries[lane, seq] = entry
        self._context.store.put_errand(_name(lane, seq), _encode(entry))

    def count(self, numbers: int, size: int) -> None:
        """So many numbers of the mailbox, with so many bytes of ciphertext, were handed out."""
        self._since_entries += numbers
        self._since_bytes += size
        if numbers:
            self._wait()

    def first(self, lane: Lane) -> int | None:
        """The first number of a lane that is parked."""
        return min((seq for of, seq in self.entries if of is lane), default=None) if self.entries else None

    @property
    def must_be_judged(self) -> bool:
        """Whether the parked entries cannot stay."""
        limits, due = self._context.limits, self.due
        size = sum(len(entry.ciphertext) for entry in self.entries.values())
        return (
            not self.draining
            or max(self._since_entries, len(self.entries)) >= limits.parked_entries
            or max(self._since_bytes, size) >= limits.parked_bytes
            or (due is not None and self._context.now >= due)
        )

    def take_all(self) -> list[tuple[Lane, int, Entry]]:
        """Every parked entry; none is parked from now on. The caller judges each in the same transaction."""
        found = [(lane, seq, entry) for (lane, seq), entry in self.entries.items()]
        for lane, seq, _ in found:
            self._context.store.drop_errand(_name(lane, seq))
        self.entries.clear()
        self._since_entries = self._since_bytes = 0
        self.due = None
        # High first: it may hold what opens the others.
        return sorted(found, key=lambda each: (-each[0], each[1]))

    def _wait(self) -> None:
        self.due = self._context.now + self._context.limits.parked_ms if self.entries else None


def _name(lane: Lane, seq: int) -> str:
    return f"{ERRAND}{lane:d} {seq:020d}"
