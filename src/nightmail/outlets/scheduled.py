"""Calls that the fold asks for: made once for each attempt, and their end told to the fold.

Knows:   which attempts are being called, and how many calls may wait.
Touches: the dispatch, and the desk, by `submit`.
Never:   remembers a call over a restart: the fold asks again for one whose end it was not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from nightmail.engine.ports import Desk
from nightmail.model.effects import Call
from nightmail.model.ids import SERVER
from nightmail.model.records import CallEnded, CallOutcome, Record

from .dispatch import Dispatch
from .outcomes import CallResult
from .ports import WebhookCall


class WaitingLimits(Struct, frozen=True):
    waiting_calls: int = 50_000
    """Scheduled calls that may be under way or wait for a place. The fold asks again for those beyond."""
    waiting_bytes: int = 64 * 1024 * 1024
    """Likewise, bytes of their content."""


class ScheduledCalls:
    def __init__(
        self, desk: Desk, dispatch: Dispatch, secret_of: Callable[[int], bytes], soon: Callable[[], None],
        limits: WaitingLimits,
    ) -> None:  # fmt: skip
        self._desk, self._dispatch, self._secret_of, self._soon = desk, dispatch, secret_of, soon
        self._limits = limits
        self._calling: set[tuple[int, int, int]] = set()
        self._bytes = 0
        self.errors: Counter[str] = Counter()
        """How calls have failed: by error."""
        self.retries: Counter[CallOutcome] = Counter()
        """How repeats have ended."""
        self.put_off = 0
        """Calls that found too many waiting."""

    @property
    def waiting(self) -> int:
        """Calls whose end is not known."""
        return len(self._calling)

    def on_call(self, asked: Call) -> None:
        key = asked.account, asked.serial, asked.attempt
        if key in self._calling:
            return
        if len(self._calling) >= self._limits.waiting_calls or self._bytes > self._limits.waiting_bytes:
            self.put_off += 1
            return
        self._calling.add(key)
        self._bytes += len(asked.content)
        size, secret = len(asked.content), self._secret_of(asked.account)
        call = WebhookCall(asked.id, asked.url, asked.content, secret, asked.content_type)
        self._dispatch.submit(call, lambda result: self._ended(key, size, result))

    def _ended(self, key: tuple[int, int, int], size: int, result: CallResult) -> None:
        self._calling.remove(key)
        self._bytes -= size
        account, serial, attempt = key
        if result.error:
            self.errors[result.error] += 1
        if attempt > 1:
            self.retries[result.outcome] += 1
        ended = CallEnded(account, serial, attempt, result.outcome, result.error, result.retry_after_ms)
        self._desk.submit([Record(SERVER, 0, ended)])
        self._soon()
