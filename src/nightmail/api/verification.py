"""Showing that a handle is one's own: a code that only its owner can read.

Knows:   a secret. Codes follow from it, the handle and the time, so nothing is kept, and every node that has
         the secret can check what another one sent.
Touches: the operator's way to reach people, which the node hands in.
Never:   shows or logs a code.

A code is good until the end of the ten minutes after those in which it was made. It is right whether or not somebody
asked for it: which node sent one the others do not know, and to remember it they would have to ask each other. So what
keeps somebody from guessing is how often they may: for one handle, and for all together.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from .limits import HttpLimits
from .problems import problem
from .rates import DAY_MS, HOUR_MS, MINUTE_MS, Rate

LABEL = b"nightmail/v1/verification-code"
DIGITS = 6
WINDOW_MS = 10 * 60_000

Delivery: TypeAlias = Literal["sent", "refused", "failed"]
Deliver: TypeAlias = Callable[[str, str, int], Awaitable[Delivery]]
"""(handle, code, good until) → what became of it. `refused`: nobody can be reached under this handle."""


class Codes:
    def __init__(self, secret: bytes, clock: Callable[[], int]) -> None:
        self._key, self._clock = hmac.digest(secret, LABEL, "sha256"), clock

    def make(self, handle: str) -> tuple[str, int]:
        """A code, and until when it is good."""
        window = self._clock() // WINDOW_MS
        return self._code(handle, window), (window + 2) * WINDOW_MS

    def is_right(self, handle: str, code: str) -> bool:
        window = self._clock() // WINDOW_MS
        right = [hmac.compare_digest(self._code(handle, each), code) for each in (window, window - 1)]
        return any(right)

    def _code(self, handle: str, window: int) -> str:
        digest = hmac.digest(self._key, window.to_bytes(8, "big") + handle.encode(), "sha256")
        return f"{int.from_bytes(digest[:8], 'big') % 10**DIGITS:0{DIGITS}}"


class Verification:
    """One for all requests."""

    def __init__(self, codes: Codes, deliver: Deliver, limits: HttpLimits, pace: Callable[[], int]) -> None:
        self._codes, self._deliver = codes, deliver
        keys = limits.addresses
        self._sent = Rate(limits.codes_per_hour, HOUR_MS, keys, pace)
        self._wrong = Rate(limits.code_tries, WINDOW_MS, keys, pace, stern=True)
        self._wrong_today = Rate(limits.code_tries_per_day, DAY_MS, keys, pace, stern=True)
        self._wrong_at_all = Rate(limits.code_tries_per_minute, MINUTE_MS, 1, pace)
        """Bounds how many handles there can be for which nothing more may be tried."""

    async def send(self, handle: str) -> int:
        """Have a code brought to whoever owns the handle. Until when it is good. Raises a Problem."""
        self._sent.take(handle)
        code, until = self._codes.make(handle)
        match await self._deliver(handle, code, until):
            case "sent":
                return until
            case "refused":
                raise problem("verification_refused", "no code can be sent to this handle")
            case "failed":
                raise problem("not_ready", "the code could not be sent", retry_s=5)

    def check(self, handle: str, code: str | None) -> None:
        """Raises a Problem unless the code is right. A wrong one counts."""
        if code is None:
            raise problem("verification_needed", "ask for a code at /v1/verifications, and say it here")
        self._wrong.check(handle)
        self._wrong_today.check(handle)
        self._wrong_at_all.check("")
        if not self._codes.is_right(handle, code):
            self._wrong.take(handle)
            self._wrong_today.take(handle)
            self._wrong_at_all.take("")
            raise problem("verification_wrong", "not the code that was sent, or it is too old")
