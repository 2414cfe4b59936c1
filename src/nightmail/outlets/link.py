"""What a node and its outlet processes say to each other, over a socket in the data folder.

    node → process    Setup, once; then calls to be made
    process → node    how calls have ended

Each message is a length, in four bytes, and MessagePack. Both ends are the operator's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from .caller import CallerLimits
from .outcomes import CallResult
from .ports import WebhookCall

SOCKET_NAME = "outlet.sock"
LENGTH_BYTES = 4
MESSAGE_BYTES = 256 * 1024 * 1024
"""More than all calls under way can have."""

Calls: TypeAlias = list[tuple[int, WebhookCall]]
Ends: TypeAlias = list[tuple[int, CallResult]]


class Setup(Struct, frozen=True):
    """Everything that a process needs to know, so that it has no settings of its own."""

    private_networks: str
    limits: CallerLimits


def encode(message: Setup | Calls | Ends) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode(body: bytes, kind: Any) -> Any:
    """Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(body, type=kind)


class MessageReader:
    """Takes bytes as they come, and gives whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Raises ValueError for a message that is too long."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(buffer[:LENGTH_BYTES], "big")
            if end > MESSAGE_BYTES:
                raise ValueError("a message that is too long")
            if len(buffer) < end:
                return
            body = bytes(buffer[LENGTH_BYTES:end])
            del buffer[:end]
            yield body
