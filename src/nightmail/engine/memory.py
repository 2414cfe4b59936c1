"""The ports over dicts and lists: the shortest implementation that keeps the contract of `ports.py`.

Knows:   nothing that a reader of ports.py does not.
Touches: memory only. What is "durable" here lasts as long as the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from .ports import HELD, Checkpoint, Damaged, Failed, Found, Need, Overtaken, RowKey, Seat, Stored, is_nowhere

SEAT_MS = 90_000
"""A seat that is not renewed for this long is free."""
WAKE_MS = 1_000
"""A device is pushed to no sooner than this after the last time."""


class MemoryLog:
    span = 1

    def __init__(self) -> None:
        self._batches: list[Stored] = []
        self._last = 0
        self._trimmed = 0

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        first = self._last + 1
        self._batches.append(Stored(first, at, tuple(records)))
        self._last += len(records)
        done(first)

    @property
    def last(self) -> int:
        return self._last

    @property
    def tight(self) -> bool:
        return False

    @property
    def is_full(self) -> bool:
        return False

    def replay(self, after: int) -> Iterator[Stored]:
        if after < self._trimmed:
            raise Damaged(f"the log begins after offset {self._trimmed}, but what follows {after} is needed")
        yield from [batch for batch in self._batches if batch.last > after]

    @property
    def batch_bytes_max(self) -> int:
        return 1 << 62

    def trim(self, upto: int, now: int) -> None:
        kept = [batch for batch in self._batches if batch.last > upto]
        self._trimmed = kept[0].first - 1 if kept else self._last
        self._batches = kept

    def close(self) -> None:
        pass


class MemoryRows:
    def __init__(self) -> None:
        self.rows: dict[RowKey, bytes] = {}
        self.entries: dict[tuple[int, int], bytes] = {}
        self.notes: dict[int, Checkpoint] = {}
        self.forwards: dict[tuple[int, int], bytes] = {}
        self._pointer = 0

    @property
    def pointer(self) -> int:
        return self._pointer

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        found: list[bytes | None | Sequence[tuple[int, bytes]]] = []
        for need in needs:
            if isinstance(need, RowKey):
                found.append(self.rows.get(need))
            elif is_nowhere(need):
                found.append([])
            else:
                of_queue = ((seq, body) for (queue, seq), body in self.entries.items() if queue == need.queue)
                found.append(sorted((seq, body) for seq, body in of_queue if need.low <= seq <= need.high))
        done(found)

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        if checkpoint.upto < self._pointer:
            done(Overtaken(self._pointer))
            return
        for kind, a, b, _, value in checkpoint.rows:
            self.rows.pop(key := RowKey(kind, a, b), None)
            if value is not None:
                self.rows[key] = value
        self.entries |= {(queue, seq): body for queue, seq, body in checkpoint.entries}
        acked, dropped = dict(checkpoint.cleared), set(checkpoint.dropped)
        self.entries = {
            (queue, seq): body
            for (queue, seq), body in self.entries.items()
            if seq > acked.get(queue, 0) and (queue, seq) not in dropped
        }
        if checkpoint.notes:
            self.notes[checkpoint.upto] = checkpoint
        self.forwards |= {(shard, k): record for shard, k, record in checkpoint.forwards}
        self._pointer = checkpoint.upto
        done(None)

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        to_shard = sorted((k, record) for (to, k), record in self.forwards.items() if to == shard and after < k <= upto)
        done(to_shard[:limit])

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        self.forwards = {(to, k): record for (to, k), record in self.forwards.items() if to != shard or k > upto}
        done(None)

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        blocks = [block for _, block in sorted(self.notes.items()) if block.at >= since]
        yield from [piece for block in blocks if not set(devices).isdisjoint(block.noted) for piece in block.notes]

    def forget(self, before: int) -> None:
        self.notes = {upto: block for upto, block in self.notes.items() if block.at >= before}

    def close(self) -> None:
        pass


class MemoryRegistry:
    def __init__(self, lifetime_ms: int = SEAT_MS) -> None:
        self._lifetime_ms = lifetime_ms
        self._seats: dict[int, tuple[Seat, int]] = {}
        self._wakes = Wakes()
        self._on_displaced: Callable[[int, Seat], None] = lambda _device, _seat: None
        self.lost_at: int | None = None

    def attend(self, on_displaced: Callable[[int, Seat], None]) -> None:
        self._on_displaced = on_displaced

    def take(self, device: int, seat: Seat, now: int) -> None:
        present = self.seat_of(device, now)
        if present and seat.since < present.since:
            self._on_displaced(device, seat)
            return
        self._seats[device] = seat, now + self._lifetime_ms
        if present and present != seat:
            self._on_displaced(device, present)

    def seat_of(self, device: int, now: int) -> Seat | None:
        """As `find`, at once."""
        seat, until = self._seats.get(device, (None, 0))
        return seat if now < until else None

    def find(self, device: int, now: int, then: Callable[[Seat | None], None]) -> None:
        then(self.seat_of(device, now))

    def leave(self, device: int, seat: Seat, then: Callable[[bool], None]) -> None:
        is_mine = self._seats.get(device, (None, 0))[0] == seat
        if is_mine:
            del self._seats[device]
        then(is_mine)

    def lose(self, now: int) -> None:
        """Forget everything, as a registry elsewhere may."""
        self._seats.clear()
        self._wakes.clear()
        self.lost_at = now

    def claim_wake(self, device: int, now: int, then: Callable[[int], None]) -> None:
        then(HELD if self.seat_of(device, now) else self._wakes.claim(device, now))


class Wakes:
    """Which devices were pushed to a moment ago."""

    def __init__(self, moment_ms: int = WAKE_MS) -> None:
        self._moment_ms = moment_ms
        self._at: dict[int, int] = {}
        """Device → when it was last pushed to, the longest ago first."""

    def claim(self, device: int, now: int) -> int:
        """0: it was not, and is now; or after how many ms it may be again."""
        wait_ms = self.wait_ms(device, now)
        if not wait_ms:
            self.note(device, now)
        return wait_ms

    def note(self, device: int, now: int) -> None:
        self._at.pop(device, None)
        self._at[device] = now

    def wait_ms(self, device: int, now: int) -> int:
        at = self._at
        while at and now - at[first := next(iter(at))] >= self._moment_ms:
            del at[first]
        return at[device] + self._moment_ms - now if device in at else 0

    def clear(self) -> None:
        self._at.clear()
