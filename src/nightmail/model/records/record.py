"""A record as it stands in the log: who said it, where its answer goes, and the body."""

from __future__ import annotations

import struct
from typing import TypeAlias

import msgspec
from msgspec import Struct

from . import (
    accounts,
    deadletters,
    devices,
    firing,
    forwards,
    groups,
    keys,
    mailboxes,
    media,
    members,
    messages,
    pushes,
    receipts,
    schedules,
    shard,
)

SaidByDevices: TypeAlias = (
    messages.DeviceBodies | mailboxes.DeviceBodies | receipts.DeviceBodies
    | accounts.DeviceBodies | devices.DeviceBodies | keys.DeviceBodies | groups.DeviceBodies
    | schedules.DeviceBodies | pushes.DeviceBodies
)  # fmt: skip
"""What a device may say over its connection."""

AnyBody: TypeAlias = (
    messages.Bodies | mailboxes.Bodies | receipts.Bodies
    | accounts.Bodies | devices.Bodies | keys.Bodies
    | forwards.Bodies | shard.Bodies | deadletters.Bodies
    | groups.Bodies | members.Bodies
    | schedules.Bodies | firing.Bodies | pushes.Bodies | media.Bodies
)  # fmt: skip


class Record(Struct, frozen=True, array_like=True, gc=False):
    """A body, the authenticated device that said it, and the address an answer goes to."""

    by: int
    via: int
    body: AnyBody


_HEADER = struct.Struct("<QQ")
_pack_header = _HEADER.pack
_encode_body = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(AnyBody).decode


class BadRecord(ValueError):
    """Bytes that are no record."""


def encode_record(record: Record) -> bytes:
    """Header (author, answer address: two little-endian u64), then the body as its author encoded it."""
    return _pack_header(record.by, record.via) + _encode_body(record.body)


def decode_record(data: bytes | memoryview) -> Record:
    if len(data) <= _HEADER.size:
        raise BadRecord("a record is shorter than its header")
    by, via = _HEADER.unpack_from(data)
    try:
        return Record(by, via, _decode_body(data[_HEADER.size :]))
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRecord("a record's body is not of any known form") from error


__all__ = ("AnyBody", "BadRecord", "Record", "SaidByDevices", "decode_record", "encode_record")
