"""What a device acknowledged of groups, for their shards and for authors.

Knows:   entries that came through groups, of one device.
Never:   mixes numbers of two streams: a group counts in `group_seq`, an author's stream to it in `n`.
"""

from __future__ import annotations

from nightmail.core.state import ShardState
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.records import GroupDelivered, Receipted
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.spans import Spans, add_span, count_in, pairs
from nightmail.model.words import Lane, MessageState, Reason


class GroupVerdicts:
    __slots__ = ("_account", "_delivered", "_device", "_failed", "_sealed", "_untold")

    def __init__(self, device: int) -> None:
        self._device, self._account = device, device >> DEVICE_BITS
        self._delivered: dict[int, dict[int, Spans]] = {}
        """Group → author's account → spans of `group_seq`."""
        self._sealed: dict[tuple[int, int], Spans] = {}
        """(Author, group) → numbers of what was sealed for this device alone."""
        self._failed: dict[tuple[int, int, Lane, Reason], Spans] = {}
        """(Author, group, lane, why) → numbers."""
        self._untold: list[Reason] = []
        """Why entries have failed of which nobody is told."""

    def deliver(self, entry: Entry) -> None:
        """A copy of one's own message, and a notice, change nobody's ticks."""
        by, seq = entry.by, entry.group_seq
        if not by:
            return
        if entry.of is not None or not seq:
            add_span(self._sealed.setdefault((by, entry.to), []), entry.n, entry.n)
        author = by >> DEVICE_BITS
        if seq and author != self._account:
            authors = self._delivered.setdefault(entry.to, {})
            spans = authors.get(author)
            if spans is None:
                authors[author] = [seq, seq]
            else:
                add_span(spans, seq, seq)

    def fail(self, entry: Entry, reason: Reason) -> None:
        assert isinstance(entry, GroupEntry)
        if entry.by and (reason is Reason.UNDECRYPTABLE or entry.by >> DEVICE_BITS != self._account):
            add_span(self._failed.setdefault((entry.by, entry.to, entry.lane, reason), []), entry.n, entry.n)
        else:
            self._untold.append(reason)

    def count(self, state: ShardState) -> None:
        """What has failed has ended. Not said of an entry of the log that one device lacks: it stays for the others."""
        for (_, _, _, reason), spans in self._failed.items():
            state.ledger.fail(reason, count_in(spans))
        for reason in self._untold:
            state.ledger.fail(reason)

    def tell(self, state: ShardState, lane: Lane) -> None:
        device, at = self._device, state.now
        for group, authors in self._delivered.items():
            numbers = tuple((author, tuple(pairs(spans))) for author, spans in authors.items())
            state.tell(group, GroupDelivered(group, device, numbers))
        for (by, group), spans in self._sealed.items():
            numbers = tuple(pairs(spans))
            receipt = Receipted(by, group, lane, device, MessageState.DELIVERED, Reason.NONE, at, numbers)
            state.tell(by >> DEVICE_BITS, receipt)
        for (by, group, of_lane, reason), spans in self._failed.items():
            numbers = tuple(pairs(spans))
            receipt = Receipted(by, group, of_lane, device, MessageState.FAILED, reason, at, numbers)
            state.tell(by >> DEVICE_BITS, receipt)
