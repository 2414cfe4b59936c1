"""The one port: reads the head of a connection's first request and decides who takes the connection.

Knows:   where a head ends; `handshake.py` reads it.
Touches: the transport, until a WebSocket or the HTTP server takes it over.
Never:   reads more than a head from an unknown peer, or waits longer for it than `hello_ms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from nightmail.wire.items import PATH

from .gateway import Gateway
from .handshake import HttpRefusal, answer_handshake, path_of
from .websocket import WebSocket

END = b"\r\n\r\n"
TOO_LARGE = HttpRefusal("431 Request Header Fields Too Large")

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
        shared = self._gateway.shared
        self._gateway.admission.add_caller(self)
        shared.wheel.add(shared.pace() + shared.limits.hello_ms, self._too_late)

    def data_received(self, data: bytes) -> None:
        gateway, head, bytes_max = self._gateway, self._head, self._gateway.shared.limits.hello_bytes
        if self._decided:
            if head and len(head) <= bytes_max:
                head += data  # Sent before its turn came. No honest client sends more than this yet.
            return
        head += data
        end = head.find(END)
        if end < 0:
            if len(head) > bytes_max:
                self._refuse(TOO_LARGE)
        elif end > bytes_max:
            self._refuse(TOO_LARGE)
        elif path_of(head) != PATH.encode():
            self._hand_over()
        elif wait_ms := gateway.admit():
            self._refuse(HttpRefusal("503 Service Unavailable", f"Retry-After: {-(-wait_ms // 1000)}\r\n"))
        else:
            self._decided = True
            gateway.greet(lambda: self._upgrade(end))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def _too_late(self, _now: int) -> None:
        self.turn_away()

    def turn_away(self) -> None:
        """Drop the connection without an answer, to make room."""
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        """The connection was taken over, or is gone. The timer still refers to this door, so it keeps nothing."""
        self._transport = None
        self._head = bytearray()
        self._gateway.admission.remove_caller(self)

    def _hand_over(self) -> None:
        """Give the connection to the HTTP server."""
        transport, head = self._transport, bytes(self._head)
        assert transport is not None
        self._leave()
        protocol = self._http()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(head)

    def _upgrade(self, end: int) -> None:
        """Answer the handshake, when it is this newcomer's turn."""
        transport, gateway = self._transport, self._gateway
        if transport is None:
            return
        head, rest = bytes(self._head[:end]), bytes(self._head[end + len(END) :])
        answer = answer_handshake(head)
        if isinstance(answer, HttpRefusal):
            self._refuse(answer)
            return
        self._leave()
        websocket = WebSocket(gateway.shared.limits, gateway.shared.pace, gateway.turns.next_turn)
        transport.set_protocol(websocket)
        transport.write(answer)
        websocket.begin(transport, gateway.open(websocket))
        if rest:
            websocket.take(memoryview(rest))

    def _refuse(self, refusal: HttpRefusal) -> None:
        status, headers = refusal
        transport, self._decided, self._head = self._transport, True, bytearray()
        assert transport is not None
        transport.write(f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
        if transport.can_write_eof():
            # close() with unread bytes would reset the connection, and the peer might never read the reason.
            transport.write_eof()
        else:
            transport.close()


class Requests(HttpToolsProtocol):
    """HTTP, as uvicorn speaks it, with a time limit for the head of every later request, too."""

    def __init__(self, gateway: Gateway, *parts: Any) -> None:
        super().__init__(*parts)
        self._shared = gateway.shared
        self._begun: int | None = None
        """When the head began that has not ended yet."""
        self._armed = False

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = self._shared.pace()

    def on_headers_complete(self) -> None:
        self._begun = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arm()

    def _arm(self) -> None:
        if self._begun is not None and not self._armed:
            self._armed = True
            self._shared.wheel.add(self._begun + self._shared.limits.hello_ms, self._look)

    def _look(self, now: int) -> None:
        self._armed = False
        if self._begun is not None and now - self._begun >= self._shared.limits.hello_ms:
            self.transport.abort()
        else:
            self._arm()


def door(gateway: Gateway) -> Callable[..., asyncio.Protocol]:
    """The factory that uvicorn gets as its HTTP protocol: it makes one for each connection."""

    def build(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        return Door(gateway, lambda: Requests(gateway, config, server_state, app_state, _loop))

    return build
