"""Verification codes: a code that only the owner of a handle can read.

Knows:   a secret. Codes are computed from it, the handle and the time. So nothing is stored, and every node that has
         the secret can check a code that another node sent.
Touches: `Deliver`, the operator's way to reach people, which the node hands in.
Never:   shows or logs a code.

A code is valid for the ten-minute window in which it was made and for the next one. It is valid even if nobody asked
for it, because nodes share only the secret and do not tell each other which codes they sent. So the protection against
guessing is the limit on wrong codes: for one handle, and for all handles together.
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
"""(handle, code, valid until) → the outcome. `refused`: nobody can be reached under this handle."""


class Codes:
    def __init__(self, secret: bytes, clock: Callable[[], int]) -> None:
        self._key, self._clock = hmac.digest(secret, LABEL, "sha256"), clock

    def make(self, handle: str) -> tuple[str, int]:
        """A code, and until when it is valid."""
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
        """Bounds how many handles can be at their limit of wrong codes."""

    async def send(self, handle: str) -> int:
        """Have a code delivered to the handle's owner. Returns until when it is valid. Raises a Problem."""
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
