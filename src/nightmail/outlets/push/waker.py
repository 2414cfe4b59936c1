"""Which devices are pushed to now: those that nobody holds, and not too often.

Knows:   who is connected, by the registry; whom it has pushed to recently; pushes under way.
Touches: the desk, by questions and by `Pushed`; the pusher.
Never:   remembers a wake over a restart: the fold asks again for one that nobody has told the end of.

After a start, a takeover or the loss of the registry nobody knows yet who is connected. So for a grace time nobody is
woken: devices that reconnect meanwhile need no push, the others are pushed to at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush

from msgspec import Struct

from nightmail.engine.ports import HELD, Desk, Registry
from nightmail.model.ids import SERVER, account_of, shard_of
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import Pushed, PushOutcome, Record

from .ports import Pusher, PushResult


class WakerLimits(Struct, frozen=True):
    grace_ms: int = 30_000
    """After a start nobody is woken for this long, in ms: most devices reconnect by themselves."""
    again_ms: int = 30_000
    """A device that leaves before it has fetched everything is pushed to again no sooner than this after the last push,
    in ms."""
    waiting: int = 200_000
    """Devices that may wait for their push. Those beyond are asked for again by the fold."""
    told_ms: int = 10_000
    """How long the outcome of a push may take to be folded, in ms. Less than `limits.wake_patience_ms`."""
    woken_ms: int = 60_000
    """A device that connects within this time after a push, in ms, counts as woken by it."""


NOT_WANTED, WANTED = -1, 0
"""Why a device is pushed to. Any greater number: it has left, at that time."""


class _Last(Struct, frozen=True, gc=False):
    """The last push to a device."""

    at: int
    """When it was begun."""
    place: tuple[int, int, int]
    """(Token, wake, attempt)."""
    depth: int
    """0: it has failed, or the device has come since."""


class PushWaker:
    """Tell it the time with `tick`, several times a second."""

    def __init__(
        self, desk: Desk, registry: Registry, pusher: Pusher, pace: Callable[[], int], soon: Callable[[], None],
        limits: WakerLimits | None = None,
    ) -> None:  # fmt: skip
        self._desk, self._registry, self._pusher, self._pace, self._soon = desk, registry, pusher, pace, soon
        self._limits = limits or WakerLimits()
        self._grace: dict[int | None, int] = {}
        """Shard, or None for all of them → until when nobody is woken."""
        self._waiting: dict[int, tuple[int, int]] = {}
        """Device → when it may be pushed to, and why."""
        self._order: list[tuple[int, int]] = []
        """(When, device), the earliest first; void if `_waiting` says otherwise."""
        self._under_way: dict[int, int] = {}
        """Device → why it is to be pushed to again."""
        self._last: dict[int, _Last] = {}
        """By device, the longest ago first."""
        self._stopped = False
        self.outcomes: Counter[PushOutcome] = Counter()
        self.errors: Counter[str] = Counter()
        """How pushes have failed: by error."""
        self.woken = 0
        """Devices that came soon after a push."""
        self.messages_woken = 0
        """Messages that waited for them."""
        self.put_off = 0
        """Wakes that found too many waiting."""
        self.begin_grace()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def begin_grace(self, shard: int | None = None) -> None:
        """It is not known who is connected: of a shard that was taken over, or of all."""
        self._grace[shard] = self._pace() + self._limits.grace_ms

    def stop(self) -> None:
        """This node sends its devices elsewhere: none of them sleeps because of that."""
        self._stopped = True

    # --- who is to be woken -----------------------------------------------------------------------

    def wake(self, device: int) -> None:
        """The fold says that something waits."""
        now = self._pace()
        self._registry.find(device, now, lambda seat: None if seat else self._want(device, now, WANTED))

    def left(self, device: int) -> None:
        """A connection has ended, or its device does not answer any more. Something may wait for it."""
        self._want(device, 0, self._pace())

    def came(self, device: int) -> None:
        """The device is connected."""
        last = self._last.get(device)
        if last is not None and last.depth:
            if self._pace() - last.at <= self._limits.woken_ms:
                self.woken += 1
                self.messages_woken += last.depth
            self._last[device] = _Last(last.at, last.place, 0)

    def _want(self, device: int, at: int, why: int) -> None:
        if self._stopped:
            return
        if device in self._under_way:
            self._under_way[device] = max(why, self._under_way[device])
            return
        now = self._pace()
        if why > WANTED and (last := self._last.get(device)):
            at = max(at, last.at + self._limits.again_ms)
        at = max(at, self._grace_until(device))
        if at <= now:
            self._under_way[device] = NOT_WANTED
            self._desk.push(device, partial(self._found, device, why))
        else:
            self._wait(device, at, why)

    def _wait(self, device: int, at: int, why: int) -> None:
        before = self._waiting.get(device)
        if before is None and len(self._waiting) >= self._limits.waiting:
            self.put_off += 1
            return
        before_at, before_why = before or (at + 1, why)
        self._waiting[device] = min(at, before_at), max(why, before_why)
        if at < before_at:
            heappush(self._order, (at, device))

    def _grace_until(self, device: int) -> int:
        shard = shard_of(account_of(device), self._desk.shards) if len(self._grace) > 1 else None
        lost_at = self._registry.lost_at
        lost_until = 0 if lost_at is None else lost_at + self._limits.grace_ms
        return max(self._grace.get(None, 0), self._grace.get(shard, 0), lost_until)

    def tick(self) -> None:
        now = self._pace()
        while self._order and self._order[0][0] <= now:
            at, device = heappop(self._order)
            waiting_at, why = self._waiting.get(device, (0, NOT_WANTED))
            if waiting_at == at:
                del self._waiting[device]
                self._want(device, at, why)
        kept_ms = max(self._limits.again_ms, self._limits.woken_ms, self._limits.told_ms)
        while self._last and now - self._last[first := next(iter(self._last))].at > kept_ms:
            del self._last[first]

    # --- one push ---------------------------------------------------------------------------------

    def _found(self, device: int, why: int, seen: PushSeen | None) -> None:
        now = self._pace()
        if seen is None or self._stopped or not self._helps(seen, why, now):
            self._end(device)
        elif wait_ms := max(0, self._grace_until(device) - now):
            self._put_off(device, why, wait_ms)  # A grace time has begun while the rows were read.
        else:
            self._registry.claim_wake(device, now, partial(self._claimed, seen, why))

    def _claimed(self, seen: PushSeen, why: int, wait_ms: int) -> None:
        if wait_ms == HELD or self._stopped:
            self._end(seen.device)
        elif wait_ms:
            self._put_off(seen.device, why, wait_ms)
        else:
            self._pusher.push(seen, partial(self._pushed, seen, self._pace()))

    def _put_off(self, device: int, why: int, wait_ms: int) -> None:
        self._end(device)
        self._want(device, self._pace() + wait_ms, why)

    def _helps(self, seen: PushSeen, why: int, now: int) -> bool:
        """Whether it was not pushed to for this reason already."""
        last = self._last.get(seen.device)
        if why > WANTED:
            return last is None or last.at < why
        # The outcome of this very push may be on its way to the fold.
        is_told = last is not None and last.place == _place(seen) and now - last.at < self._limits.told_ms
        return seen.is_due and not is_told

    def _pushed(self, seen: PushSeen, begun: int, result: PushResult) -> None:
        device = seen.device
        self.outcomes[result.outcome] += 1
        if result.error:
            self.errors[result.error] += 1
        self._last.pop(device, None)
        depth = seen.depth if result.outcome is PushOutcome.DELIVERED else 0
        self._last[device] = _Last(begun, _place(seen), depth)
        pushed = Pushed(
            device, seen.since, seen.woke_at, seen.attempt, result.outcome, result.error, result.retry_after_ms
        )
        self._desk.submit([Record(SERVER, 0, pushed)])
        self._soon()
        self._end(device)

    def _end(self, device: int) -> None:
        """Nothing is under way any more. What was asked meanwhile is asked now."""
        why = self._under_way.pop(device)
        if why != NOT_WANTED:
            self._want(device, 0, why)


def _place(seen: PushSeen) -> tuple[int, int, int]:
    return seen.since, seen.woke_at, seen.attempt
