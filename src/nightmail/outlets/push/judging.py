"""What a provider's answer means: taken, to be repeated, refused, or the token is gone."""

from __future__ import annotations

from http import HTTPStatus

from nightmail.model.records.pushes import NOT_SET_UP, PushOutcome
from nightmail.outlets.outcomes import asked_ms

from .ports import PushResult

TAKEN = PushResult(PushOutcome.DELIVERED)
TIMED_OUT = PushResult(PushOutcome.FAILED, "timeout")
UNREACHABLE = PushResult(PushOutcome.FAILED, "unreachable")
BROKEN_OFF = PushResult(PushOutcome.FAILED, "connection_lost")
NO_PLACE = PushResult(PushOutcome.FAILED, "pool_exhausted")
GARBAGE = PushResult(PushOutcome.FAILED, "not_http")
CREDENTIALS = PushResult(PushOutcome.FAILED, "bad_credentials")
"""Ours: expired, revoked, or of somebody else. It may pass once an operator has put them right."""
NOT_SERVED = PushResult(PushOutcome.REFUSED, NOT_SET_UP)
"""The server has no credentials for this platform."""
BAD_TOKEN = PushResult(PushOutcome.GONE, "bad_token")


def gone(status: int) -> PushResult:
    return PushResult(PushOutcome.GONE, f"http_{status}")


def by_status(status: int, retry_after: str | None, now_ms: int) -> PushResult:
    """Where the status alone says it."""
    if 200 <= status < 300:
        return TAKEN
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS) or status >= 500:
        return PushResult(PushOutcome.FAILED, f"http_{status}", asked_ms(retry_after or "", now_ms))
    return PushResult(PushOutcome.REFUSED, f"http_{status}")
