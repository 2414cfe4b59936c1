"""How long to wait before the next attempt."""

from __future__ import annotations

from random import Random

from .limits import ClientLimits


def delay_ms(failures: int, limits: ClientLimits, chance: Random) -> int:
    """1 s after the first failed attempt, then 2, 4, 8 … up to the maximum; chance moves each a little."""
    assert failures >= 1, failures
    # The exponent is bounded, too: a device that is offline for a month must not count to 2**10000.
    wait = min(limits.retry_ms_min << min(failures - 1, 40), limits.retry_ms_max)
    return round(wait * (1 + chance.uniform(-limits.retry_jitter, limits.retry_jitter)))


def backoff_ms(failures: int, limits: ClientLimits, chance: Random) -> int:
    """Full jitter: anywhere between nothing and a bound that doubles, so that a crowd spreads out."""
    assert failures >= 1, failures
    return round(chance.uniform(0, min(limits.backoff_ms_min << min(failures - 1, 40), limits.backoff_ms_max)))
