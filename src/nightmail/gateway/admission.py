"""Admission of newcomers: how many come per second, and how many may stay unknown; in all, and from one network.

Knows:   connections without a whole request (callers), those without a `Hello` (strangers), and those that were refused
         and have not left yet, oldest first.
Touches: a caller or stranger that has to make room.
Never:   looks at what a newcomer says.

A network is an IPv4 address, or the /64, /56 and /48 of an IPv6 address; the wider ones may do twice and four times as
much. An address that is not known ("") counts in all only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from nightmail.wire.closing import CloseCode

from .counters import Counters
from .limits import LINGER_MS, GatewayLimits
from .ports import SessionPort
from .rates import Bucket, NetworkRates


class Caller(Protocol):
    """A connection at the door."""

    def turn_away(self) -> None: ...


T = TypeVar("T")


class Waiting(Generic[T]):
    """Connections of one kind, oldest first: at most `most`, and `most_of_one` from one network, each for `most_ms`.

    A timer for each would keep it in memory long after it has left: a flood would be as large as a timer is long.
    """

    def __init__(self, most: int, most_of_one: int, most_ms: int) -> None:
        self._most, self._most_of_one, self._most_ms = most, most_of_one, most_ms
        self._all: dict[T, tuple[str, int]] = {}
        """Network, and since when."""
        self._by_network: dict[str, dict[T, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, who: T, network: str, now: int) -> T | None:
        """Returns the one that has to make room, if somebody has to; it is removed."""
        self._all[who] = network, now
        if network:
            near = self._by_network.setdefault(network, {})
            near[who] = None
            if len(near) > self._most_of_one:
                return self._first(near)
        return self._first(self._all) if len(self._all) > self._most else None

    def take_late(self, now: int) -> Iterator[T]:
        """Those whose time is over; they are removed."""
        while self._all:
            who, (_, since) = next(iter(self._all.items()))
            if now - since < self._most_ms:
                break
            self.remove(who)
            yield who

    def _first(self, among: dict[T, tuple[str, int]] | dict[T, None]) -> T:
        oldest = next(iter(among))
        self.remove(oldest)
        return oldest

    def remove(self, who: T) -> str:
        """Returns its network, or "" if that is unknown. May be called again."""
        network, _ = self._all.pop(who, ("", 0))
        if network:
            near = self._by_network[network]
            del near[who]
            if not near:
                del self._by_network[network]
        return network


class Admission:
    def __init__(
        self, limits: GatewayLimits, counters: Counters, pace: Callable[[], int], chance: Callable[[], float]
    ) -> None:
        self._limits, self._counters, self._pace, self._chance = limits, counters, pace, chance
        self._bucket = Bucket(limits.connects_per_s, limits.connects_burst, pace())
        self._connects = NetworkRates(limits.address_connects_per_s, limits.address_connects_burst)
        self._requests = NetworkRates(limits.address_requests_per_s, limits.address_requests_burst)
        self._last_turn = 0.0
        """When the newcomer that was refused last may come back."""
        counts = limits.strangers, limits.address_strangers
        self.callers = Waiting[Caller](*counts, limits.hello_ms)
        self.refused = Waiting[Caller](*counts, LINGER_MS)
        self._strangers = Waiting[SessionPort](*counts, limits.hello_ms)

    def wait_ms(self, address: str = "") -> int:
        """Admit one more connection and return 0, or return after how many ms it should try again."""
        now, limits = self._pace(), self._limits
        if wait_ms := self._connects.wait_ms(address, now):
            # One network that comes too often takes nobody else's turn.
            return self._refuse(address, wait_ms)
        if self._bucket.take(now):
            return 0
        # Each one gets a time of its own. Given the same time, they would all come back together.
        turn = max(self._last_turn + 1_000 / limits.connects_per_s, now + limits.retry_ms)
        self._last_turn = min(turn, now + limits.retry_ms_max)
        return self._refuse(address, self._last_turn - now)

    def _refuse(self, address: str, wait_ms: float) -> int:
        self._counters.refuse("not_admitted", address)
        limits = self._limits
        bounded = min(max(wait_ms, limits.retry_ms), limits.retry_ms_max)
        return int(bounded + limits.retry_ms * self._chance())

    def request_wait_ms(self, address: str) -> int:
        """Let one more HTTP request in and return 0, or return after how many ms it should come again."""
        if wait_ms := self._requests.wait_ms(address, self._pace()):
            self._counters.refuse("requests_limited", address)
        return wait_ms

    def add_caller(self, caller: Caller, network: str = "") -> None:
        """A connection from which no whole request has arrived yet."""
        if oldest := self.callers.add(caller, network, self._pace()):
            self._counters.refuse("strangers_dropped", network)
            oldest.turn_away()

    def refuse_caller(self, caller: Caller) -> None:
        """It is being told why. It has a moment to read that and to leave."""
        if oldest := self.refused.add(caller, self.callers.remove(caller), self._pace()):
            oldest.turn_away()

    def remove_caller(self, caller: Caller) -> None:
        """Its request has arrived, or the connection is gone. May be called again."""
        self.callers.remove(caller)
        self.refused.remove(caller)

    def tick(self, now: int) -> None:
        """Turn away the callers that took too long. A session looks after its own time."""
        for waiting in (self.callers, self.refused):
            for caller in waiting.take_late(now):
                caller.turn_away()

    def add_stranger(self, session: SessionPort, network: str = "") -> None:
        """A session that has not said which device it is."""
        if oldest := self._strangers.add(session, network, self._pace()):
            self._counters.refuse("strangers_dropped", network)
            oldest.close(CloseCode.BUSY)

    def remove_stranger(self, session: SessionPort) -> None:
        """Its device is recognized, or the session has ended. May be called again."""
        self._strangers.remove(session)
