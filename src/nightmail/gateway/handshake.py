"""The WebSocket handshake (RFC 6455, 4.2), as values: the head of a request in, the server's answer out.

Knows:   an HTTP request's head, as far as it tells a WebSocket handshake from other requests.
Touches: nothing.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha1
from typing import NamedTuple

from nightmail.wire.items import SUBPROTOCOL

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 1.3."""


HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*")
UNSAFE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Control characters, a line feed or a carriage return by itself among them; a tab is none of them."""


class HttpRefusal(NamedTuple):
    """An HTTP status, and header lines that go with it."""

    status: str
    headers: str = ""


def answer_handshake(head: bytes) -> bytes | HttpRefusal:
    """The response that turns the connection into a WebSocket, or why it does not become one."""
    if not is_well_formed_head(head):
        return HttpRefusal("400 Bad Request")
    headers = headers_of(head)
    upgrade, connection = _words(headers, b"upgrade"), _words(headers, b"connection")
    if not head.startswith(b"GET ") or b"websocket" not in upgrade or b"upgrade" not in connection:
        return HttpRefusal("426 Upgrade Required", "Upgrade: websocket\r\nConnection: Upgrade\r\n")
    if headers.get(b"sec-websocket-version") != b"13":
        return HttpRefusal("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n")
    accept = accept_key(headers.get(b"sec-websocket-key", b""))
    if accept is None or SUBPROTOCOL.encode() not in _words(headers, b"sec-websocket-protocol"):
        return HttpRefusal("400 Bad Request")
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: %b\r\n\r\n" % (accept, SUBPROTOCOL.encode())
    )


def is_well_formed_head(head: bytes) -> bool:
    """Whether every reader of this head reads the same: what a proxy might read otherwise is refused (RFC 9112)."""
    request, *lines = head.split(b"\r\n")
    if UNSAFE.search(head.replace(b"\r\n", b"")) or not request.endswith(b" HTTP/1.1") or request.count(b" ") != 2:
        return False
    # A line that begins with a space continues the one before (obs-fold); a name has no space before its colon.
    return all(HEADER.fullmatch(line) for line in lines) and sum(line[:5].lower() == b"host:" for line in lines) == 1


def accept_key(key: bytes) -> bytes | None:
    """The proof that the server understood the handshake; None if `key` is not a valid key."""
    try:
        if len(b64decode(key, validate=True)) != 16:
            return None
    except NotBase64:
        return None
    return b64encode(sha1(key + GUID, usedforsecurity=False).digest())


def path_of(head: bytes | bytearray) -> bytes:
    """The path of the request line, without its query."""
    parts = bytes(head[: head.find(b"\r\n")]).split(b" ")
    return parts[1].partition(b"?")[0] if len(parts) == 3 else b""


def headers_of(head: bytes) -> dict[bytes, bytes]:
    """Lower-case name → value. Several values under one name become one list, as HTTP defines it."""
    headers: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = headers[name] + b"," + value if name in headers else value
    return headers


def _words(headers: dict[bytes, bytes], name: bytes) -> list[bytes]:
    return [word.strip().lower() for word in headers.get(name, b"").split(b",")]
