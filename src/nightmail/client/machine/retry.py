"""Waiting before the next attempt: how long, and for what.

Knows:   the two schedules of the client, and when one action is due.
Never:   attempts anything without a connection: every connection begins with an attempt.
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


class Timer:
    """One action at one time, while the connection lasts. A part of the machine that waits for one thing has one."""

    def __init__(self, context: Context, action: Callable[[], None]) -> None:
        self._context, self._action = context, action
        self.due: int | None = None
        """When the action is taken; None: it is not planned."""

    def set(self, due: int) -> None:
        self.due = due

    def set_earlier(self, due: int) -> None:
        """Take the action at this time, unless it is due before."""
        self.due = due if self.due is None else min(self.due, due)

    def cancel(self) -> None:
        self.due = None

    def lost(self) -> None:
        """The connection is gone: the next one begins with an attempt."""
        self.cancel()

    def deadline(self) -> int | None:
        return self.due

    def tick(self) -> None:
        if self.due is not None and self._context.now >= self.due:
            self.due = None
            self._action()


class Retry(Timer):
    """A timer for one thing to attempt again, with exponential backoff. `cancel` and `lost` keep the failures."""

    def __init__(self, context: Context, attempt: Callable[[], None]) -> None:
        super().__init__(context, attempt)
        self._backoff = Backoff(context)

    @property
    def failures(self) -> int:
        return self._backoff.failures

    def later(self) -> None:
        """The attempt failed: plan the next one."""
        self.set(self._backoff.failed())

    def count(self) -> None:
        """The attempt failed, and the caller makes the next one at once."""
        self._backoff.failures += 1

    def reset(self) -> None:
        """The attempt succeeded: the next wait is the shortest again."""
        self._backoff.reset()
