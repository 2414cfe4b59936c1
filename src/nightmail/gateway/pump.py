"""One pump for live push, drain, repeat, pacing and the slow reader.

Knows:   how far a device has been handed its mailbox on this connection, and how far it has acknowledged.
Touches: the desk, to read the mailbox; the list of items that goes out next.
Never:   judges an acknowledgement (the fold does), or remembers anything beyond the connection.

Delivery is a pull. The fold says that a queue grew; the pump asks for what comes after its own
cursor, as long as the device has credit. So a push, a drain and a slow reader are the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nightmail.engine.ports import Offered
from nightmail.model.ids import SERVER
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Lane
from nightmail.wire.items import Drained, Entries, FromServer, Gone, Receipts

from .ports import Shared
from .rates import Bucket

NORMAL, HIGH = Lane.NORMAL, Lane.HIGH
RECEIPTS = 2
"""The third cursor, after those of the two lanes."""

OWED_ENTRIES, OWED_RECEIPTS, OWED_DRAINED = 1 << NORMAL | 1 << HIGH, 1 << RECEIPTS, 8
"""What can be owed: entries of a lane, receipts, and the item that says that everything was handed out."""

ORDER = ((Lane.HIGH, 1 << HIGH), (Lane.NORMAL, 1 << NORMAL))
RTT_UNKNOWN = 0.0

NEWS_MS = 500
"""After receipts that say which schedules have changed, the next receipts wait for so long: what many schedules of one
author become is told in a few frames instead of one for each."""


class Waker(Protocol):
    """Not a function: a bound method for each connection would be memory for nothing."""

    def wake(self) -> None:
        """Something was added to the items that go out, outside of `pull`."""
        ...


class Pump:
    __slots__ = (
        "_acked", "_bytes", "_counters", "_desk", "_device", "_flights", "_fresh", "_handed", "_limits", "_loading",
        "_out", "_pace", "_repeats", "_rtt", "_rtt_var", "_since", "_waker", "_wheel", "owes", "rests",
    )  # fmt: skip

    def __init__(
        self, device: int, cursors: Sequence[int], shared: Shared, out: list[FromServer], waker: Waker
    ) -> None:
        self._device, self._out, self._waker = device, out, waker
        self._desk, self._limits, self._counters = shared.desk, shared.limits, shared.counters
        self._wheel = shared.wheel
        self.rests = False
        """News of schedules were just handed out: receipts wait."""
        self._handed = list(cursors)
        """How far the normal lane, the high lane and the receipts were handed out on this connection."""
        self._acked = list(cursors[:RECEIPTS])
        """How far the device has acknowledged each lane. For receipts this need not be known."""
        self.owes = OWED_ENTRIES | OWED_RECEIPTS | OWED_DRAINED
        """Where there may be something that was not handed out yet, as bits. Read for every frame."""
        self._fresh = False
        """`out` holds entries that were not sent before on this connection."""
        self._loading = 0
        self._flights: list[tuple[int, int, int, int]] | None = None
        """Frames with unacknowledged entries: (normal up to, high up to, bytes, when); None while there are none."""
        self._bytes = 0
        self._repeats = 0
        self._since = 0
        """When the device last made progress: caught up, or acknowledged something. No repeat is timed from before."""
        self._rtt = self._rtt_var = RTT_UNKNOWN
        self._pace: Bucket | None = None

    # --- news -------------------------------------------------------------------------------

    def grew(self, lane: int) -> None:
        self.owes |= 1 << lane

    def receipts_acked(self, upto: int) -> None:
        """The device says that it has every receipt up to `upto`."""
        if upto > self._handed[RECEIPTS]:
            self._handed[RECEIPTS] = upto

    def acked(self, lane: Lane, upto: int, now: int) -> bool:
        """The device says that it has everything up to `upto`. Returns whether it counted as offline until now."""
        if upto <= self._acked[lane]:
            return False
        self._acked[lane] = upto
        if upto > self._handed[lane]:
            self._handed[lane] = upto
        normal, high = self._acked
        flights, self._since = self._flights, now
        while flights and flights[0][0] <= normal and flights[0][1] <= high:
            _, _, size, at = flights.pop(0)
            self._bytes -= size
            if not flights:
                self._flights = None
            # One repeat may only mean that the network has become slower: TCP delivered the first offer before it.
            if self._repeats < 2 and not self.owes & OWED_DRAINED:
                self._measure(now - at)
        was_suspect, self._repeats = self.suspect, 0
        return was_suspect

    def measured(self, rtt_ms: int) -> None:
        """A first round-trip time, from before anything was pushed."""
        self._rtt, self._rtt_var = float(rtt_ms), rtt_ms / 2

    def _measure(self, rtt_ms: int) -> None:
        if self._rtt == RTT_UNKNOWN:
            self.measured(rtt_ms)
            return
        self._rtt_var += (abs(rtt_ms - self._rtt) - self._rtt_var) / 4
        self._rtt += (rtt_ms - self._rtt) / 8

    # --- handing out --------------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        """Not everything that waited when the device connected has been handed out."""
        return self.owes & OWED_DRAINED != 0

    @property
    def handed_high(self) -> int:
        """How far the device was handed its high lane."""
        return self._handed[HIGH]

    @property
    def wants(self) -> bool:
        """Something may be waiting that could be handed out now."""
        if self._loading or not self.owes:
            return False
        owes = self.owes & ~OWED_RECEIPTS if self.rests else self.owes
        if not owes:
            return False
        return not owes & OWED_ENTRIES or owes & OWED_RECEIPTS != 0 or not self._closed_window

    def pull(self, now: int, *, pressed: bool = False) -> None:
        """Add what may go out now to the list of items: the high lane first, then normal, then receipts."""
        if self._loading:
            return
        handed = self._handed
        if self.owes & OWED_ENTRIES:
            before = handed[0] + handed[1]
            for lane, bit in ORDER:
                if self.owes & bit and (limit := self._credit(now, pressed, handed[0] + handed[1] - before)) > 0:
                    self.owes &= ~bit
                    self._pull(lane, limit)
                    if self._loading:
                        return  # The rest waits, so that the lanes keep their order.
        if self.owes & OWED_RECEIPTS and not self.rests:
            self.owes &= ~OWED_RECEIPTS
            self._pull_receipts(now)
        if self.owes == OWED_DRAINED and not self._loading:
            self.owes, self._since = 0, now
            self._out.append(Drained(*handed))
            self._counters.drained += 1

    def _credit(self, now: int, pressed: bool, already: int) -> int:
        """How many entries may be handed out now, in a frame that has so many `already`."""
        handed, acked, limits = self._handed, self._acked, self._limits
        credit = limits.credit_entries - (handed[0] - acked[0]) - (handed[1] - acked[1])
        if self._bytes >= limits.credit_bytes:
            return 0
        if credit > limits.batch_entries - already:
            credit = limits.batch_entries - already
        if pressed and self.owes & OWED_DRAINED:
            if self._pace is None:
                self._pace = Bucket(limits.paced_per_s, limits.paced_per_s, now)
            credit = min(credit, self._pace.level(now))
        return credit

    def _pull(self, lane: Lane, limit: int) -> None:
        after, inside = self._handed[lane], True

        def found(items: Sequence[Offered], more: bool) -> None:
            self._loading -= 1
            if after == self._handed[lane]:
                self._hand_out(lane, items)
            if more:
                self.owes |= 1 << lane
            if not inside:
                self._waker.wake()

        self._loading += 1
        self._desk.offer(self._device, lane, after, limit, self._limits.batch_bytes, found)
        inside = False

    def _hand_out(self, lane: Lane, items: Sequence[Offered]) -> None:
        for item in items:
            self._fresh = True
            self._out.append(_as_item(lane, item))
            self._handed[lane] = item[0] + len(item[1]) - 1 if isinstance(item, tuple) else item.high
            if self._pace is not None and isinstance(item, tuple):
                self._pace.spend(len(item[1]))

    def _pull_receipts(self, now: int) -> None:
        after, limit, inside = self._handed[RECEIPTS], self._limits.batch_entries, True

        def found(receipts: Sequence[PendingReceipt]) -> None:
            self._loading -= 1
            if receipts and after == self._handed[RECEIPTS]:
                # Rows change: what is not encoded within this call is copied, or it might go out under another number.
                self._out.append(Receipts(tuple(receipts) if inside else tuple(map(_copy, receipts))))
                self._handed[RECEIPTS] = receipts[-1].seq
                if len(receipts) >= limit:
                    self.owes |= OWED_RECEIPTS
                elif receipts[-1].key[0] == SERVER and not self.owes & OWED_DRAINED:
                    self.rests = True
                    self._wheel.add(now + NEWS_MS, self._rested)
            if not inside:
                self._waker.wake()

        self._loading += 1
        self._desk.receipts(self._device, after, limit, found)
        inside = False

    def _rested(self, _now: int) -> None:
        self.rests = False
        if self.owes & OWED_RECEIPTS:
            self._waker.wake()

    def sent(self, size: int, now: int) -> None:
        """The items went out in a frame of this many bytes. New entries among them are unacknowledged from now on."""
        if self._fresh:
            self._fresh = False
            normal, high, _ = self._handed
            flight = normal, high, size, now
            if self._flights is None:
                self._flights = [flight]
            else:
                self._flights.append(flight)
            self._bytes += size

    # --- offering again -----------------------------------------------------------------------

    @property
    def suspect(self) -> bool:
        """Two repeats went unanswered: the device counts as offline."""
        return self._repeats > 2

    def repeat_at(self) -> int:
        """When the oldest unacknowledged entry is to be repeated; 0 if there is none, or its time does not run."""
        if not self._flights or self.owes & OWED_DRAINED or self.suspect or self._closed_window:
            return 0
        # On a steady network the deviation shrinks to 0, and the next ack is always a little late.
        soon = self._rtt + max(self._limits.repeat_ms, 4 * self._rtt_var)
        late = max(self._limits.repeat_again_ms, 2 * soon)
        # After the second repeat the device has as long again to answer.
        return max(self._flights[0][3], self._since) + int((soon, soon + late, soon + 2 * late)[self._repeats])

    @property
    def _closed_window(self) -> bool:
        handed, acked = self._handed, self._acked
        out = handed[0] - acked[0] + handed[1] - acked[1]
        return out >= self._limits.credit_entries or self._bytes >= self._limits.credit_bytes

    def repeat(self, *, stalled: bool) -> bool:
        """Offer the oldest entry again; returns whether it was offered.

        While the socket is `stalled`, the repeat would only queue behind unsent bytes. Then nothing is
        offered, but the attempt counts.
        """
        self._repeats += 1
        if stalled or self.suspect:
            return False
        lane = HIGH if self._flights and self._acked[1] < self._flights[0][1] else NORMAL
        after = self._acked[lane]

        def found(items: Sequence[Offered], _more: bool) -> None:
            if after == self._acked[lane]:  # Otherwise it was acknowledged meanwhile, and the next one is not due.
                self._out.extend(_as_item(lane, item) for item in items)
                self._waker.wake()

        self._desk.offer(self._device, lane, after, 1, self._limits.batch_bytes, found)
        return True


def _copy(receipt: PendingReceipt) -> PendingReceipt:
    return PendingReceipt(receipt.key, receipt.seq, receipt.at, receipt.reason, receipt.numbers.copy())


def _as_item(lane: Lane, offered: Offered) -> Entries | Gone:
    if isinstance(offered, tuple):
        return Entries(lane, offered[0], offered[1])
    return Gone(lane, offered.low, offered.high, offered.reason)
