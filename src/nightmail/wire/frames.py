"""Items into bytes and back. A frame is one binary WebSocket message: a msgpack array of items.

Nothing here bounds a frame's size: the reader of the socket has done so before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from nightmail.model.rows import Entry, GroupEntry

from .items import Entries, FromDevice, FromServer, Hello

_encode = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(tuple[Hello])
_from_device = msgspec.msgpack.Decoder(list[FromDevice])
_from_server = msgspec.msgpack.Decoder(list[FromServer])
_raw_items = msgspec.msgpack.Decoder(list[msgspec.Raw])
_entry = msgspec.msgpack.Decoder(Entry)
_group_entry = msgspec.msgpack.Decoder(GroupEntry)
_GROUP_ENTRY = 0x90 | len(GroupEntry.__struct_fields__)
"""The first byte of an entry that came through a group, at least. The array of any other entry is shorter."""


class _RawEntries(msgspec.Struct, array_like=True, tag=Entries.__struct_config__.tag):
    lane: int
    first: int
    entries: tuple[msgspec.Raw, ...]


_raw_entries = msgspec.msgpack.Decoder(_RawEntries)


class BadFrame(ValueError):
    """Bytes that are no frame. The text says where, never what."""


def encode(items: Sequence[FromDevice] | Sequence[FromServer]) -> bytes:
    return _encode(items)


def encoded(item: FromServer) -> FromServer:
    """The same item, to be put into many frames: it is encoded now, and never again. Nothing of it can be read."""
    return cast("FromServer", msgspec.Raw(_encode(item)))


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
        items = _from_server.decode(data)
        # A group's number is even. Most frames have nothing of a group, and are read once.
        for item in items:
            if type(item) is Entries:
                for entry in item.entries:
                    if not entry.to & 1:
                        return list(map(_with_group_entries, items, _raw_items.decode(data)))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFrame(_where(error)) from None
    return items


def _with_group_entries(item: FromServer, raw: msgspec.Raw) -> FromServer:
    """The same item; its entries with what they have of a group."""
    if type(item) is not Entries:
        return item
    found = (bytes(entry) for entry in _raw_entries.decode(raw).entries)
    entries = ((_group_entry if entry[0] >= _GROUP_ENTRY else _entry).decode(entry) for entry in found)
    return Entries(item.lane, item.first, tuple(entries))


def _where(error: Exception) -> str:
    """The path that msgspec names, such as `$[0][2]`, and nothing that was in the frame."""
    _, at, path = str(error).rpartition("at `")
    return f"not a frame: wrong at {path.rstrip('`')}" if at else "not a frame"
