"""Items into bytes and back. A frame is one binary WebSocket message: a msgpack array of items.

Nothing here bounds a frame's size: the reader of the socket has done so before.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .items import FromDevice, FromServer, Hello

_encode = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(tuple[Hello])
_from_device = msgspec.msgpack.Decoder(list[FromDevice])
_from_server = msgspec.msgpack.Decoder(list[FromServer])


class BadFrame(ValueError):
    """Bytes that are no frame. The text says where, never what."""


def encode(items: Sequence[FromDevice] | Sequence[FromServer]) -> bytes:
    return _encode(items)


def decode_hello(data: bytes | bytearray | memoryview) -> Hello:
    """The first frame: exactly one `Hello`."""
    try:
        return _hello.decode(data)[0]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFrame(_where(error)) from None


def decode_from_device(data: bytes | bytearray | memoryview) -> list[FromDevice]:
    try:
        return _from_device.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFrame(_where(error)) from None


def decode_from_server(data: bytes | bytearray | memoryview) -> list[FromServer]:
    try:
        return _from_server.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFrame(_where(error)) from None


def _where(error: Exception) -> str:
    """The path that msgspec names, such as `$[0][2]`, and nothing that was in the frame."""
    _, at, path = str(error).rpartition("at `")
    return f"not a frame: wrong at {path.rstrip('`')}" if at else "not a frame"
