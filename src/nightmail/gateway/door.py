"""The one port: looks at the first bytes of a connection and decides who takes it.

Knows:   an HTTP request's head, as far as it tells a WebSocket handshake from the rest.
Touches: the transport, until somebody else has it.
Never:   reads more than a head's worth from a stranger, or waits longer for it than it may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from nightmail.wire.items import PATH, SUBPROTOCOL

from .gateway import Gateway
from .websocket import WebSocket, accept_key

END = b"\r\n\r\n"

Handler = Callable[[], asyncio.Protocol]


class Door(asyncio.Protocol):
    """Holds a connection for its first few hundred bytes."""

    __slots__ = ("_gateway", "_head", "_http", "_transport")

    def __init__(self, gateway: Gateway, http: Handler) -> None:
        self._gateway, self._http = gateway, http
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name.
        self._gateway.wheel.add(self._gateway.now() + self._gateway.limits.hello_ms, self._too_late)

    def data_received(self, data: bytes) -> None:
        head = self._head
        head += data
        end = head.find(END)
        if end < 0:
            if len(head) > self._gateway.limits.hello_bytes:
                self._refuse("431 Request Header Fields Too Large")
            return
        if end > self._gateway.limits.hello_bytes:
            self._refuse("431 Request Header Fields Too Large")
        elif _path(head) == PATH.encode():
            self._upgrade(bytes(head[:end]), bytes(head[end + len(END) :]))
        else:
            self._hand_over()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def _too_late(self, _now: int) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _hand_over(self) -> None:
        """An ordinary request."""
        transport, self._transport = self._transport, None
        assert transport is not None
        protocol = self._http()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(bytes(self._head))

    def _upgrade(self, head: bytes, rest: bytes) -> None:
        """A WebSocket handshake (RFC 6455, 4.2)."""
        transport, gateway = self._transport, self._gateway
        assert transport is not None
        headers = _headers(head)
        if not head.startswith(b"GET ") or b"websocket" not in headers.get(b"upgrade", b"").lower():
            self._refuse("426 Upgrade Required", "Upgrade: websocket\r\nConnection: Upgrade\r\n")
            return
        if headers.get(b"sec-websocket-version") != b"13":
            self._refuse("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n")
            return
        accept = accept_key(headers.get(b"sec-websocket-key", b""))
        offered = [name.strip() for name in headers.get(b"sec-websocket-protocol", b"").split(b",")]
        if accept is None or SUBPROTOCOL.encode() not in offered:
            self._refuse("400 Bad Request")
            return
        if wait_ms := gateway.admit():
            self._refuse("503 Service Unavailable", f"Retry-After: {-(-wait_ms // 1000)}\r\n")
            return
        self._transport = None
        websocket = WebSocket(gateway.limits, gateway.now)
        transport.set_protocol(websocket)
        transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: %b\r\n\r\n" % (accept, SUBPROTOCOL.encode())
        )
        websocket.begin(transport, gateway.open(websocket))
        if rest:
            websocket.take(memoryview(rest))

    def _refuse(self, status: str, headers: str = "") -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.write(f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
            transport.close()


def _path(head: bytearray) -> bytes:
    """The path of the request line, without its query."""
    parts = bytes(head[: head.find(b"\r\n")]).split(b" ")
    return parts[1].partition(b"?")[0] if len(parts) == 3 else b""


def _headers(head: bytes) -> dict[bytes, bytes]:
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def door(gateway: Gateway) -> Callable[..., asyncio.Protocol]:
    """What uvicorn is given as its HTTP protocol: it builds one for each connection."""

    def build(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        return Door(gateway, lambda: HttpToolsProtocol(config, server_state, app_state, _loop))

    return build
