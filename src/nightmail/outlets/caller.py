"""One call: a signed POST to an address that was checked, and what came of it.

Knows:   connections that are kept for the next call, and how long anything may take.
Touches: sockets, on the event loop it was made on; names are resolved on threads.
Never:   follows a redirect, uses a proxy, keeps cookies, reads more than a little of a response, or logs what it sends.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct
from yarl import URL

from . import outcomes
from .addresses import EVERYWHERE, Allowed, BadTarget, PrivateAddress, PrivateTarget
from .outcomes import CallResult, judge
from .ports import WebhookCall
from .signing import signed

RESOLVING_THREADS = 32
"""A name server that hangs holds a thread for each of its names."""
BODY_BYTES = 16_384
"""A response with more is not read: its connection is closed."""
BODY_S = 1.0
"""Likewise for one whose body takes longer. The status has said what matters."""


class CallerLimits(Struct, frozen=True):
    timeout_ms: int = 10_000
    """A receiver that has not answered after this time, in ms, from the first byte to the status, has failed."""
    connect_ms: int = 3_000
    """Likewise for connecting, with TLS, in ms."""
    keep_ms: int = 30_000
    """How long a connection is kept for the next call, in ms."""


class HttpCaller:
    """Made and used on a running event loop. `tls`: another one than the system's, for tests."""

    def __init__(
        self, allowed: Allowed, limits: CallerLimits, clock: Callable[[], int], tls: ssl.SSLContext | None = None
    ) -> None:
        self._limits, self._clock = limits, clock
        self._allowed = {False: allowed, True: Allowed(EVERYWHERE)}
        """For a call by somebody else, and for one to an address that the operator has set."""
        self._threads = ThreadPoolExecutor(RESOLVING_THREADS, "names")
        self._tls = tls or ssl.create_default_context()
        self._sessions: dict[tuple[str, bool], aiohttp.ClientSession] = {}
        """By scheme and by what is allowed: a connection that one may use is not used by the other."""

    def _session(self, allowed: Allowed, *, secure: bool) -> aiohttp.ClientSession:
        limits = self._limits

        def socket_for(info: tuple[Any, ...]) -> socket.socket:
            # The last gate: every connection passes it, whatever gave the address.
            family, kind, protocol, _, sockaddr = info
            if not allowed.permits(str(sockaddr[0]), secure=secure):
                raise PrivateAddress("a private address")
            return socket.socket(family, kind, protocol)

        connector = aiohttp.TCPConnector(
            limit=0, ssl=self._tls, keepalive_timeout=limits.keep_ms / 1000, socket_factory=socket_for,
            resolver=_Resolver(allowed, self._threads, secure=secure),
        )  # fmt: skip
        timeout = aiohttp.ClientTimeout(total=limits.timeout_ms / 1000, connect=limits.connect_ms / 1000)
        return aiohttp.ClientSession(
            connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False,
            skip_auto_headers=("Accept-Encoding", "Accept"), headers={"User-Agent": "nightmail"},
        )  # fmt: skip

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def call(self, call: WebhookCall) -> CallResult:
        """Make one call. Raises nothing that the receiver can cause."""
        try:
            self._allowed[call.private].check(call.url)
        except PrivateTarget:
            return outcomes.PRIVATE
        except BadTarget:
            return outcomes.BAD_TARGET
        for _ in range(2):
            try:
                return await self._post(call)
            except aiohttp.ServerDisconnectedError:
                # Perhaps a kept connection, which the receiver closed as we wrote. A repeat has the same id.
                continue
            except (aiohttp.ClientError, OSError, ValueError) as error:
                return _meaning(error)
        return outcomes.BROKEN_OFF

    async def _post(self, call: WebhookCall) -> CallResult:
        now = self._clock()
        headers = dict(call.headers)
        if not headers:
            headers = signed(call.secret, call.id, now // 1000, call.body)
            headers["Content-Type"] = call.content_type
        key = scheme, private = urlsplit(call.url).scheme, call.private
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._session(self._allowed[private], secure=scheme == "https")
        response = await session.post(
            URL(call.url, encoded=True), data=call.body, headers=headers, allow_redirects=False
        )
        outcome = judge(response.status, response.headers.get("Retry-After"), now)
        await _finish(response)
        return outcome


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Keep the connection if what is left of the response is short; otherwise close it."""
    if response.content.at_eof():
        response.release()
        return
    try:
        async with asyncio.timeout(BODY_S):
            read = 0
            async for piece in response.content.iter_any():
                read += len(piece)
                if read > BODY_BYTES:
                    break
    except (aiohttp.ClientError, TimeoutError):
        pass
    if response.content.at_eof():
        response.release()
    else:
        response.close()


class _Resolver(AbstractResolver):
    """Resolves a name on a thread, and gives only addresses that may be called."""

    def __init__(self, allowed: Allowed, threads: ThreadPoolExecutor, *, secure: bool) -> None:
        self._allowed, self._threads, self._secure = allowed, threads, secure

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port, family)
        permitted = [
            ResolveResult(
                hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, address in found
            if self._allowed.permits(address, secure=self._secure)
        ]  # fmt: skip
        if not permitted:
            raise PrivateAddress("its name leads to this machine or to a private network only")
        return permitted

    async def close(self) -> None:
        pass


def _look_up(host: str, port: int, family: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return [(kind, str(sockaddr[0])) for kind, _, _, _, sockaddr in found]


def _meaning(error: Exception) -> CallResult:
    """The outcome of a call that ended without an answer."""
    below = getattr(error, "os_error", None)
    if isinstance(error, PrivateAddress) or isinstance(below, PrivateAddress):
        return outcomes.PRIVATE
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return outcomes.CERTIFICATE
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return outcomes.NAME_UNKNOWN
    if isinstance(error, TimeoutError):
        return outcomes.TIMED_OUT
    if isinstance(error, aiohttp.ClientConnectorError):
        return outcomes.UNREACHABLE
    if isinstance(error, ValueError):  # a name that cannot be one, such as a label of 64 characters
        return outcomes.BAD_TARGET
    if isinstance(error, aiohttp.ClientResponseError):
        return outcomes.NO_HTTP
    return outcomes.BROKEN_OFF
