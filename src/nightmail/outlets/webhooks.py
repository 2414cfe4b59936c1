"""A webhook of the operator's: one address, one secret, and an answer that somebody waits for.

Knows:   how often a call is repeated while somebody waits.
Touches: the dispatch.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Literal, TypeAlias

from msgspec import Struct

from nightmail.model.records.schedules import CallOutcome

from .dispatch import Dispatch
from .outcomes import CallResult
from .ports import WebhookCall

Outcome: TypeAlias = Literal["sent", "refused", "failed"]
"""`refused`: the receiver will not take it, and would not take a repeat."""

log = logging.getLogger("nightmail.outlets")


class WebhookLimits(Struct, frozen=True):
    wait_ms: int = 5_000
    """How long somebody waits for a call, with its repeats."""
    retries: int = 1
    retry_ms: int = 1_000
    waiting: int = 64
    """Calls under way or waiting; others fail at once."""


class Webhook:
    """Use it on the node's event loop."""

    def __init__(
        self, url: str, secret: bytes, dispatch: Dispatch, *, private: bool = False, limits: WebhookLimits | None = None
    ) -> None:
        self._url, self._secret, self._dispatch, self._private = url, secret, dispatch, private
        self._limits = limits or WebhookLimits()
        self._calls = 0

    async def post(self, body: bytes, ident: str = "") -> Outcome:
        """Send the body; retry if that may help. `ident` tells a repeat from another call; empty: there is none."""
        if self._calls >= self._limits.waiting:
            return "failed"
        self._calls += 1
        try:
            async with asyncio.timeout(self._limits.wait_ms / 1000):
                ident = ident or f"msg_{secrets.token_urlsafe(18)}"
                return await self._post(WebhookCall(ident, self._url, body, self._secret, private=self._private))
        except TimeoutError:
            return "failed"
        finally:
            self._calls -= 1

    async def _post(self, call: WebhookCall) -> Outcome:
        for left in range(self._limits.retries, -1, -1):
            result = await self._once(call)
            if result.outcome is CallOutcome.DELIVERED:
                return "sent"
            log.warning("a webhook did not take what it was told", extra={"why": result.error})
            if result.outcome is CallOutcome.REFUSED:
                # An address that is wrong is the operator's mistake: the receiver has refused nothing.
                return "refused" if result.error.startswith("http_") else "failed"
            if left:
                await asyncio.sleep(self._limits.retry_ms / 1000)
        return "failed"

    async def _once(self, call: WebhookCall) -> CallResult:
        ended: asyncio.Future[CallResult] = asyncio.get_running_loop().create_future()

        def done(result: CallResult) -> None:
            if not ended.done():
                ended.set_result(result)

        self._dispatch.submit(call, done)
        return await ended
