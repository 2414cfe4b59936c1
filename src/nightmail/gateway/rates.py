"""Rate limits: token buckets, one alone or one for each of many accounts."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice

from nightmail.wire.networks import networks

COMPARED = 8
"""When there are too many buckets, so many are compared, and the fullest of them is forgotten."""
FORGOTTEN_AT_ONCE = 16
"""So many are looked at when full ones are forgotten: with each tick of a server, some hundreds in a second."""
NETWORKS = 10_000
"""Networks that are counted, of each width."""


class Bucket:
    """Holds up to `burst`, gains `per_s` each second. Time is an argument, in ms."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, per_s: float, burst: float, now: int) -> None:
        self._per_s, self._burst = per_s, burst
        self._left: float = burst
        self._at = now

    def take(self, now: int, amount: int = 1) -> bool:
        """Take `amount` out, if it is there."""
        left = self._left
        if now > self._at:
            left += (now - self._at) * self._per_s / 1_000
            if left > self._burst:
                left = self._burst
            self._at = now
        self._left = left - amount if left >= amount else left
        return left >= amount

    def level(self, now: int) -> int:
        """How much is there; negative if more was spent."""
        self.take(now, 0)
        return int(self._left)

    def spend(self, amount: int) -> None:
        """Take `amount` out, whether it is there or not."""
        self._left -= amount

    def wait_ms(self, amount: int = 1) -> int:
        """How long until `amount` is there, as of the last `take`."""
        lacking = amount - self._left
        return 0 if lacking <= 0 else int(lacking * 1_000 / self._per_s) + 1


class Shares:
    """A bucket for each of many. Above `most` of them, each new one takes the place of one that has used little.

    Not of the one that has used least of all: to find it, every bucket would be looked at in one turn of the event
    loop. A bucket that was used more than others stays all the same, because only the fullest of several is forgotten.
    """

    __slots__ = ("_buckets", "_burst", "_most", "_per_s")

    def __init__(self, per_s: float, burst: int, most: int) -> None:
        self._per_s, self._burst, self._most = per_s, burst, most
        self._buckets: dict[Hashable, Bucket] = {}
        """Those that were compared longest ago come first. Not an OrderedDict, which is twice as large."""

    def __len__(self) -> int:
        return len(self._buckets)

    def bucket(self, who: Hashable, now: int) -> Bucket:
        """The bucket of `who`, the same one each time."""
        if (bucket := self._buckets.get(who)) is None:
            if len(self._buckets) >= self._most:
                self._forget(now)
            bucket = self._buckets[who] = Bucket(self._per_s, self._burst, now)
        return bucket

    def wait_ms(self, who: Hashable, now: int, amount: int = 1) -> int:
        """Take `amount` from the share of `who` and return 0, or return how long until it is there."""
        bucket = self.bucket(who, now)
        return 0 if bucket.take(now, amount) else bucket.wait_ms(amount)

    def forget_full(self, now: int) -> None:
        """Look at the next few, and forget those that are full again: a new one would be the same.

        Only where nobody keeps a bucket for longer than one call.
        """
        for who in list(islice(self._buckets, FORGOTTEN_AT_ONCE)):
            if self._buckets[who].level(now) >= self._burst:
                del self._buckets[who]
            else:
                self._buckets[who] = self._buckets.pop(who)

    def _forget(self, now: int) -> None:
        compared = list(islice(self._buckets, COMPARED))
        fullest = max(compared, key=lambda who: self._buckets[who].level(now))
        del self._buckets[fullest]
        for who in compared:
            if who != fullest:
                self._buckets[who] = self._buckets.pop(who)


def per_minute(number: int, most: int) -> Shares:
    """So many within a minute, and as many at once."""
    return Shares(number / 60, number, most)


class NetworkRates:
    """A rate for each network that an address belongs to."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._shares = [Shares(per_s * wider, burst * wider, NETWORKS) for wider in (1, 2, 4)]

    def wait_ms(self, address: str, now: int, amount: int = 1) -> int:
        """Take `amount` and return 0, or return how long until it is there."""
        if not address:
            return 0
        pairs = zip(self._shares, networks(address), strict=False)
        return max(shares.wait_ms(network, now, amount) for shares, network in pairs)
