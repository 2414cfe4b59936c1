"""Rate limits: token buckets, one alone or one for each of many accounts."""

from __future__ import annotations


class Bucket:
    """Holds up to `burst`, gains `per_s` each second. Time is an argument, in ms."""

    __slots__ = ("_at", "_burst", "_left", "_per_ms")

    def __init__(self, per_s: float, burst: int, now: int) -> None:
        self._per_ms, self._burst = per_s / 1_000, burst
        self._left, self._at = float(burst), now

    def take(self, now: int, amount: int = 1) -> bool:
        """Take `amount` out, if it is there."""
        left = self._left
        if now > self._at:
            left += (now - self._at) * self._per_ms
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
        return 0 if lacking <= 0 else int(lacking / self._per_ms) + 1


class Shares:
    """A bucket for each of many. Above `most` of them, the one that was idle for longest is forgotten."""

    __slots__ = ("_buckets", "_most", "_per_minute")

    def __init__(self, per_minute: int, most: int) -> None:
        self._per_minute, self._most = per_minute, most
        self._buckets: dict[int, Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_ms(self, who: int, now: int) -> int:
        """Take one from the share of `who` and return 0, or return how long until there is one."""
        bucket = self._buckets.pop(who, None) or Bucket(self._per_minute / 60, self._per_minute, now)
        self._buckets[who] = bucket  # At the end: the last to be forgotten.
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return 0 if bucket.take(now) else bucket.wait_ms()
