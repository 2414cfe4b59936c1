"""Calling a webhook, signed by the Standard Webhooks scheme (standardwebhooks.com).

    webhook-id: msg_…   webhook-timestamp: 1700000000   webhook-signature: v1,<base64 HMAC-SHA256>

Knows:   one address and one secret. The signature covers id, time and body; a repeat has the same id.
Touches: sockets, on a bounded number of threads of its own.
Never:   follows a redirect, reads a response's body, or logs what it sends.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import http.client
import logging
import secrets
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from .addresses import PrivateAddress, look_up

SECRET_PREFIX = "whsec_"  # noqa: S105 (what every such secret begins with)
SECRET_BYTES = (24, 64)

Outcome: TypeAlias = Literal["sent", "refused", "failed"]
"""`refused`: a repeat would be refused, too."""

log = logging.getLogger("nightmail.outlets")


class WebhookLimits(Struct, frozen=True):
    timeout_ms: int = 3_000
    """For connecting, and for each part of the answer."""
    retries: int = 1
    retry_ms: int = 1_000
    threads: int = 4
    waiting: int = 64
    """Calls under way or waiting for a thread; others fail at once."""


def secret_bytes(text: str) -> bytes:
    """The secret from a setting: base64, usually behind `whsec_`. Raises ValueError."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    low, high = SECRET_BYTES
    if not low <= len(secret) <= high:
        raise ValueError(f"not of {low} to {high} bytes")
    return secret


def signed(secret: bytes, ident: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers that prove who calls, and when."""
    text = f"{ident}.{at_s}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, text, "sha256")).decode()
    return {"webhook-id": ident, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{signature}"}


class Webhook:
    """Use it on an event loop; `close` ends its threads."""

    def __init__(
        self, url: str, secret: bytes, clock: Callable[[], int], *, private: bool = False,
        limits: WebhookLimits | None = None,
    ) -> None:  # fmt: skip
        self._parts, self._secret, self._clock, self._private = urlsplit(url), secret, clock, private
        self._limits = limits or WebhookLimits()
        self._threads = ThreadPoolExecutor(self._limits.threads, "webhook")
        self._calls = 0

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(self, body: bytes) -> Outcome:
        """Send the body; retry if that may help."""
        if self._calls >= self._limits.waiting:
            return "failed"
        self._calls += 1
        try:
            ident, outcome = f"msg_{secrets.token_urlsafe(18)}", "failed"
            for left in range(self._limits.retries, -1, -1):
                outcome = await asyncio.get_running_loop().run_in_executor(self._threads, self._try, ident, body)
                if outcome != "failed" or not left:
                    break
                await asyncio.sleep(self._limits.retry_ms / 1000)
            return outcome
        finally:
            self._calls -= 1

    def _try(self, ident: str, body: bytes) -> Outcome:
        try:
            status = self._call(ident, body)
        except (OSError, http.client.HTTPException) as error:
            why = str(error) if isinstance(error, PrivateAddress) else type(error).__name__
            log.warning("a webhook could not be called", extra={"why": why})
            return "failed"
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return "sent"
        log.warning("a webhook did not take what it was told", extra={"status": status})
        may_pass = status in {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS} or status >= 500
        return "failed" if may_pass or status < HTTPStatus.BAD_REQUEST else "refused"

    def _call(self, ident: str, body: bytes) -> int:
        parts, seconds = self._parts, self._limits.timeout_ms / 1000
        host = parts.hostname or ""
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
        line = socket.create_connection((look_up(host, port, private=self._private), port), seconds)
        try:
            connection.sock = ssl.create_default_context().wrap_socket(line, server_hostname=host) if secure else line
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = signed(self._secret, ident, self._clock() // 1000, body)
            default = parts.port is None or parts.port == (443 if secure else 80)
            name = f"[{host}]" if ":" in host else host
            headers |= {"Content-Type": "application/json", "Host": name if default else f"{name}:{port}"}
            connection.request("POST", path, body, headers | {"User-Agent": "nightmail", "Connection": "close"})
            return connection.getresponse().status
        finally:
            line.close()
            connection.close()
