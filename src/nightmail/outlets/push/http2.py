"""Requests to providers over HTTP/2, many at a time over few connections.

Knows:   one client for all providers that the operator has set up, and how long anything may take.
Touches: sockets, on the event loop it is used on.
Never:   follows a redirect, uses a proxy, reads more than a little of an answer, or shows an error's text: a provider's
         address holds the token.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from msgspec import Struct
from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import ConnectError, ConnectTimeoutError, PyreqwestError, RequestTimeoutError

from . import judging
from .ports import PushResult
from .requests import ProviderAnswer, PushRequest

BODY_BYTES = 4_096


class Http2Limits(Struct, frozen=True):
    timeout_ms: int = 10_000
    """A provider that has not answered after this time, in ms, has failed."""
    connect_ms: int = 5_000
    """Likewise for connecting, with TLS, in ms."""
    at_once: int = 500
    """Pushes under way at once to each provider. Apple takes 1,000 over one connection."""


class PushFailed(Exception):
    """No answer."""

    def __init__(self, result: PushResult) -> None:
        self.result = result
        super().__init__(result.error)


class Http2Client:
    """`ca_pem`: another authority than the system's, for tests."""

    def __init__(self, limits: Http2Limits, ca_pem: bytes = b"") -> None:
        builder = (
            ClientBuilder()
            .https_only(True)
            .http2(True)
            .http2_keep_alive_interval(timedelta(seconds=60))
            .http2_keep_alive_timeout(timedelta(seconds=20))
            .connect_timeout(timedelta(milliseconds=limits.connect_ms))
            .timeout(timedelta(milliseconds=limits.timeout_ms))
            .follow_redirects(False)
            .no_proxy()
            .user_agent("nightmail")
        )
        if ca_pem:
            builder = builder.add_root_certificate_pem(ca_pem)
        self._client = builder.build()
        self._timeout_s = limits.timeout_ms / 1_000

    async def ask(self, request: PushRequest) -> ProviderAnswer:
        """Raises PushFailed."""
        try:
            async with asyncio.timeout(self._timeout_s):
                builder = self._client.post(request.url).headers(dict(request.headers)).body_bytes(request.body)
                async with builder.build_streamed() as response:
                    piece = await response.body_reader.read(BODY_BYTES)
                    return ProviderAnswer(response.status, response.get_header("retry-after"), bytes(piece or b""))
        except (TimeoutError, RequestTimeoutError, ConnectTimeoutError):
            raise PushFailed(judging.TIMED_OUT) from None
        except ConnectError:
            raise PushFailed(judging.UNREACHABLE) from None
        except PyreqwestError:
            raise PushFailed(judging.BROKEN_OFF) from None

    async def close(self) -> None:
        await self._client.close()
