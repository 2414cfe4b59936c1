"""The content of a message, in a form whose unknown fields every version can skip.

Spec:    our own, byte by byte in docs/e2ee.md.

    version u8 ‖ kind u8 ‖ fields: number u8 ‖ length u32 ‖ value, numbers ascending, each at most once

Knows:   the fields. One content has one encoding, because its tag is made from the bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from nightmail.model.ids import MESSAGE_ID, MESSAGE_ID_CHARS
from nightmail.model.words import Kind

from .errors import BadEncoding, UnknownVersion

VERSION = 1
CONTENT_BYTES_MAX = 64 * 1024
CRITICAL = 128
"""A reader skips an unknown field with a number below this, and refuses the content for one from here on."""
_FIELD = struct.Struct(">BI")
_CONTROL = struct.Struct(">H")

TEXT, REPLY_TO, DATA, CONTROL = 1, 2, 3, 4


class Content(NamedTuple):
    kind: Kind
    text: str | None = None
    reply_to: str | None = None
    """The id of the message this one answers."""
    data: bytes | None = None
    """What a media pointer or a control message carries; its own module knows the form."""
    control: int | None = None
    """Which control message."""

    def __repr__(self) -> str:
        return f"<Content: {self.kind.name.lower()}>"


def encode_content(content: Content) -> bytes:
    fields = [
        (TEXT, None if content.text is None else content.text.encode()),
        (REPLY_TO, None if content.reply_to is None else content.reply_to.encode("ascii")),
        (DATA, content.data),
        (CONTROL, None if content.control is None else _CONTROL.pack(content.control)),
    ]
    return bytes((VERSION, content.kind)) + b"".join(
        _FIELD.pack(number, len(value)) + value for number, value in fields if value is not None
    )


def decode_content(data: bytes) -> Content:
    if len(data) < 2:
        raise BadEncoding("content", f"{len(data)} bytes")
    if data[0] != VERSION:
        raise UnknownVersion("content", data[0])
    try:
        kind = Kind(data[1])
        fields = _fields(data)
        text, reply_to, control = fields.get(TEXT), fields.get(REPLY_TO), fields.get(CONTROL)
        return Content(
            kind,
            None if text is None else text.decode(),
            None if reply_to is None else _message_id(reply_to),
            fields.get(DATA),
            None if control is None else _CONTROL.unpack(control)[0],
        )
    except (ValueError, struct.error):
        # Without details: they are private, and errors may be logged.
        raise BadEncoding("content", "a field is malformed") from None


def _fields(data: bytes) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    at, last = 2, 0
    while at < len(data):
        number, length = _FIELD.unpack_from(data, at)
        at += _FIELD.size
        if number <= last or at + length > len(data):
            raise BadEncoding("content", "its fields are out of order or cut off")
        if number >= CRITICAL:
            raise BadEncoding("content", f"field {number} is critical, and not known here")
        fields[number] = data[at : at + length]
        at, last = at + length, number
    return fields


def _message_id(raw: bytes) -> str:
    text = raw.decode("ascii")
    if len(text) > MESSAGE_ID_CHARS or not MESSAGE_ID.match(text):
        raise ValueError
    return text
