"""The listening socket: one port for devices and for HTTP.

Knows:   how uvicorn wants its protocol built, and which connections it has.
Touches: the socket, the certificate.
Never:   a signal; the node has those.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from email.utils import formatdate
from pathlib import Path

from starlette.applications import Starlette
from uvicorn.config import Config as UvicornConfig
from uvicorn.server import ServerState

from nightmail.gateway.door import DoorFactory

from .config import ServerSettings
from .spare_descriptors import BACKLOG, Descriptors

HANDSHAKE_S = 10.0
"""As long as `gateway.hello_ms` allows for the first request."""


class CannotListen(Exception):
    """The text is one sentence for the operator."""


class ListeningSocket:
    """Opened by `start`. After `close` it accepts no connection; `drained` is true once the last one has ended."""

    def __init__(self, settings: ServerSettings, app: Starlette, doors: DoorFactory, connections: int) -> None:
        self._settings = settings
        self.app = app
        self._doors = doors
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._config = UvicornConfig(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            limit_concurrency=connections,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies,
        )

    async def start(self) -> None:
        """Raises CannotListen."""
        self._config.load()
        loop = asyncio.get_running_loop()
        settings = self._settings
        build = self._doors(self._config, self._state, {}, loop)
        self.refresh()
        descriptors = Descriptors()
        context = _tls(settings)
        try:
            self._server = await loop.create_server(
                lambda: descriptors.guard(build), settings.host, settings.port, ssl=context,
                backlog=BACKLOG, start_serving=True,
                ssl_handshake_timeout=HANDSHAKE_S if context else None,
            )  # fmt: skip
        except OSError as error:
            raise CannotListen(_why(settings, error)) from None

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def connections(self) -> int:
        """HTTP connections; devices are the gateway's."""
        return len(self._state.connections)

    @property
    def requests(self) -> int:
        return self._state.total_requests

    def refresh(self) -> None:
        """Once a second: the date in every response.

        One request per connection: the door bounds only the head of the first.
        """
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode()), (b"connection", b"close")]

    def close(self) -> None:
        """Accept no more connections. Requests under way are still answered."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()

    @property
    def drained(self) -> bool:
        return not self._state.connections and not self._state.tasks

    def abort(self) -> None:
        """Cut the connections that are left."""
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if not settings.tls_cert_file:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    for name in filter(None, (settings.tls_cert_file, settings.tls_key_file)):
        try:
            Path(name).open("rb").close()
        except OSError as error:
            raise CannotListen(f"{name} cannot be read: {error.strerror}") from None
    try:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file or None, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        why = error.reason if isinstance(error, ssl.SSLError) else str(error)
        raise CannotListen(
            f"{settings.tls_cert_file} and its key cannot be used: {(why or 'not PEM').lower().replace('_', ' ')}"
        ) from None
    return context


def _no_password() -> str:
    """Otherwise OpenSSL asks at the terminal."""
    raise ValueError("the key is encrypted")


def _why(settings: ServerSettings, error: OSError) -> str:
    where = f"{settings.host}:{settings.port}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where} is in use by another process; stop it, or choose another port (server.port)"
        case errno.EACCES:
            return f"{where} needs more rights than this process has; ports from 1024 on do not"
        case errno.EADDRNOTAVAIL:
            return f"{settings.host} is not an address of this machine (server.host)"
        case _:
            return f"{where} cannot be listened at (server.host, server.port): {error.strerror or error}"
