"""How long to wait before something that left the system is tried again.

Knows:   how many times, and after which delays.
Never:   draws chance: the jitter follows from what is tried and for which time, so every owner waits alike.

The wait itself is a due item; this is for calls to webhooks and, with another policy, for whatever else calls out.
"""

from __future__ import annotations

from zlib import crc32

from msgspec import Struct

JITTER_PARTS = 10
"""Up to one of so many equal parts of a delay is added, so that what failed together is not tried together."""


class RetryPolicy(Struct, frozen=True):
    retries: int
    base_ms: int = 1_000
    most_ms: int = 60_000


WEBHOOKS = RetryPolicy(retries=5)
"""After 1, 2, 4, 8 and 16 s: six calls."""
CALLS_OUT = RetryPolicy(retries=3)
"""Whatever else leaves the system."""


def delay_ms(policy: RetryPolicy, item: str, tries: int) -> int | None:
    """How long to wait after `tries` tries of `item`; None: it is given up."""
    if tries > policy.retries:
        return None
    delay = min(policy.base_ms << (tries - 1), policy.most_ms)
    return delay + crc32(f"{item} {tries}".encode()) % (delay // JITTER_PARTS + 1)


def longest_ms(policy: RetryPolicy) -> int:
    return policy.most_ms + policy.most_ms // JITTER_PARTS
