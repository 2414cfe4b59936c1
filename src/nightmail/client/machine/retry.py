"""Waiting before the next attempt: how long, and for what.

Knows:   the two schedules of the client, and when one attempt is due.
Never:   attempts anything while there is no connection: the next one begins with an attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from nightmail.client.limits import ClientLimits

from .context import Context

DOUBLINGS_MAX = 40
"""The exponent is bounded: a device that is offline for a month must not compute 2**10000."""


def retry_ms(failures: int, limits: ClientLimits, chance: Random) -> int:
    """How long to wait before a request is repeated: 1 s after the first failure, then 2, 4, 8 … up to the maximum,
    with some jitter."""
    assert failures >= 1, failures
    wait = min(limits.retry_ms_min << min(failures - 1, DOUBLINGS_MAX), limits.retry_ms_max)
    return round(wait * (1 + chance.uniform(-limits.retry_jitter, limits.retry_jitter)))


def reconnect_ms(failures: int, limits: ClientLimits, chance: Random) -> int:
    """How long to wait before the next connection. Full jitter: anywhere between 0 and a bound that doubles, so that
    many clients spread out."""
    assert failures >= 1, failures
    return round(
        chance.uniform(0, min(limits.backoff_ms_min << min(failures - 1, DOUBLINGS_MAX), limits.backoff_ms_max))
    )


class Backoff:
    """Failures in a row, and how long to wait after the newest."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.failures = 0

    def failed(self) -> int:
        """An attempt has failed. When to make the next one."""
        self.failures += 1
        return self._context.now + retry_ms(self.failures, self._context.limits, self._context.chance)

    def reset(self) -> None:
        """The next wait is the shortest again."""
        self.failures = 0


class Retry:
    """One thing to attempt again, with exponential backoff."""

    def __init__(self, context: Context, attempt: Callable[[], None]) -> None:
        self._context, self._attempt = context, attempt
        self._backoff = Backoff(context)
        self.due: int | None = None
        """When the next attempt is made; None: none is planned."""

    @property
    def failures(self) -> int:
        return self._backoff.failures

    def later(self) -> None:
        """The attempt failed: plan the next one."""
        self.due = self._backoff.failed()

    def count(self) -> None:
        """The attempt failed, and the caller makes the next one at once."""
        self._backoff.failures += 1

    def wait_until(self, due: int) -> None:
        """Plan the next attempt for this time; no attempt failed."""
        self.due = due

    def reset(self) -> None:
        """The attempt succeeded: the next wait is the shortest again."""
        self._backoff.reset()

    def cancel(self) -> None:
        """No attempt is planned any more; the failures still count."""
        self.due = None

    def tick(self) -> None:
        if self.due is not None and self._context.now >= self.due:
            self.due = None
            self._attempt()
