"""What the answer to a call means: done, to be repeated, or failed for good.

2xx                                          done
408, 429, 5xx, and every error on the way    may pass: a repeat may help
3xx, other 4xx, a wrong certificate,
a private address                            failed: a repeat would be answered the same
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from msgspec import Struct

from nightmail.model.records.schedules import CallOutcome


class CallResult(Struct, frozen=True, gc=False):
    outcome: CallOutcome
    error: str = ""
    """A word for the operator: `http_503`, `timeout`. Dead letters are grouped by it."""
    retry_after_ms: int = 0
    """The receiver asks for this much time before the next call. How much it gets is decided elsewhere."""

    @property
    def answered(self) -> bool:
        """The receiver has answered, whatever it said."""
        return self.outcome is CallOutcome.DELIVERED or self.error == REDIRECTED or self.error.startswith("http_")


REDIRECTED = "redirected"
DONE = CallResult(CallOutcome.DELIVERED)
TIMED_OUT = CallResult(CallOutcome.FAILED, "timeout")
BROKEN_OFF = CallResult(CallOutcome.FAILED, "connection_lost")
UNREACHABLE = CallResult(CallOutcome.FAILED, "unreachable")
NAME_UNKNOWN = CallResult(CallOutcome.FAILED, "name_not_resolved")
NO_HTTP = CallResult(CallOutcome.FAILED, "not_http")
NO_PLACE = CallResult(CallOutcome.FAILED, "pool_exhausted")
PRIVATE = CallResult(CallOutcome.REFUSED, "private_address")
CERTIFICATE = CallResult(CallOutcome.REFUSED, "bad_certificate")
BAD_TARGET = CallResult(CallOutcome.REFUSED, "bad_address")

MAY_PASS = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


def judge(status: int, retry_after: str | None, now_ms: int) -> CallResult:
    """What a response means. `retry_after`: its header of that name."""
    if 200 <= status < 300:
        return DONE
    if 300 <= status < 400:
        return CallResult(CallOutcome.REFUSED, REDIRECTED)
    if status in MAY_PASS or status >= 500:
        return CallResult(CallOutcome.FAILED, f"http_{status}", asked_ms(retry_after or "", now_ms))
    return CallResult(CallOutcome.REFUSED, f"http_{status}")


def asked_ms(text: str, now_ms: int) -> int:
    """What `Retry-After` asks for, in seconds or as a date; 0 if it says neither, or a time that has passed."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return int(text[:12]) * 1_000
    try:
        then = parsedate_to_datetime(text)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0, int((then - datetime.fromtimestamp(0, UTC)).total_seconds() * 1_000) - now_ms)
    except (TypeError, ValueError, OverflowError):
        return 0
