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

    __slots__ = ("_decided", "_gateway", "_head", "_http", "_transport")

    def __init__(self, gateway: Gateway, http: Handler) -> None:
        self._gateway, self._http = gateway, http
        self._head = bytearray()
        self._decided = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name.
        self._gateway.knocks(self)
        self._gateway.wheel.add(self._gateway.now() + self._gateway.limits.hello_ms, self._too_late)

    def data_received(self, data: bytes) -> None:
        gateway, head = self._gateway, self._head
        if self._decided:
            if head and len(head) <= gateway.limits.hello_bytes:
                head += data  # Said before its turn came; more than this nobody honest has to say yet.
            return
        head += data
        end = head.find(END)
        if end < 0:
            if len(head) > gateway.limits.hello_bytes:
                self._refuse("431 Request Header Fields Too Large")
        elif end > gateway.limits.hello_bytes:
            self._refuse("431 Request Header Fields Too Large")
        elif _path(head) != PATH.encode():
            self._hand_over()
        elif wait_ms := gateway.admit():
            self._refuse("503 Service Unavailable", f"Retry-After: {-(-wait_ms // 1000)}\r\n")
        else:
            self._decided = True
            gateway.greet(lambda: self._upgrade(end))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _too_late(self, _now: int) -> None:
        self.turn_away()

    def turn_away(self) -> None:
        """Whoever stands here makes room, without a word."""
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        """Somebody else has the connection, or nobody. The timer still knows this door, so it keeps nothing."""
        self._transport = None
        self._head = bytearray()
        self._gateway.enters(self)

    def _hand_over(self) -> None:
        """An ordinary request."""
        transport, head = self._transport, bytes(self._head)
        assert transport is not None
        self._leave()
        protocol = self._http()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(head)

    def _upgrade(self, end: int) -> None:
        """A WebSocket handshake (RFC 6455, 4.2), when its turn has come."""
        transport, gateway = self._transport, self._gateway
        if transport is None:
            return
        head, rest = bytes(self._head[:end]), bytes(self._head[end + len(END) :])
        headers = _headers(head)
        asked = _words(headers, b"upgrade"), _words(headers, b"connection")
        if not head.startswith(b"GET ") or b"websocket" not in asked[0] or b"upgrade" not in asked[1]:
            self._refuse("426 Upgrade Required", "Upgrade: websocket\r\nConnection: Upgrade\r\n")
            return
        if headers.get(b"sec-websocket-version") != b"13":
            self._refuse("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n")
            return
        accept = accept_key(headers.get(b"sec-websocket-key", b""))
        if accept is None or SUBPROTOCOL.encode() not in _words(headers, b"sec-websocket-protocol"):
            self._refuse("400 Bad Request")
            return
        self._leave()
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
        transport, self._decided, self._head = self._transport, True, bytearray()
        assert transport is not None
        transport.write(f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
        if transport.can_write_eof():
            # Closed with something unread, the connection would be reset, and the reason might be lost.
            transport.write_eof()
        else:
            transport.close()


class Requests(HttpToolsProtocol):
    """HTTP, as uvicorn speaks it; but a further request on the same connection is not waited for, either."""

    def __init__(self, gateway: Gateway, *parts: Any) -> None:
        super().__init__(*parts)
        self._gateway = gateway
        self._begun: int | None = None
        """When a head began whose end has not come yet."""
        self._armed = False

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = self._gateway.now()

    def on_headers_complete(self) -> None:
        self._begun = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arm()

    def _arm(self) -> None:
        if self._begun is not None and not self._armed:
            self._armed = True
            self._gateway.wheel.add(self._begun + self._gateway.limits.hello_ms, self._look)

    def _look(self, now: int) -> None:
        self._armed = False
        if self._begun is not None and now - self._begun >= self._gateway.limits.hello_ms:
            self.transport.abort()
        else:
            self._arm()


def _path(head: bytearray) -> bytes:
    """The path of the request line, without its query."""
    parts = bytes(head[: head.find(b"\r\n")]).split(b" ")
    return parts[1].partition(b"?")[0] if len(parts) == 3 else b""


def _headers(head: bytes) -> dict[bytes, bytes]:
    """Lower-case name → value; what stands under one name several times is one list, as HTTP has it."""
    headers: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = headers[name] + b"," + value if name in headers else value
    return headers


def _words(headers: dict[bytes, bytes], name: bytes) -> list[bytes]:
    return [word.strip().lower() for word in headers.get(name, b"").split(b",")]


def door(gateway: Gateway) -> Callable[..., asyncio.Protocol]:
    """What uvicorn is given as its HTTP protocol: it builds one for each connection."""

    def build(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        return Door(gateway, lambda: Requests(gateway, config, server_state, app_state, _loop))

    return build
