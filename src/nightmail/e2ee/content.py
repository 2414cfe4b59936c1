"""The content of a message, in a form whose unknown fields every version can skip.

Spec:    our own, byte by byte in docs/e2ee.md.

    version u8 ‖ kind u8 ‖ fields: number u8 ‖ length u32 ‖ value, numbers ascending, each at most once

Knows:   the fields. One content has one encoding, because its tag is made from the bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from nightmail.model.ids import MESSAGE_ID, MESSAGE_ID_CHARS
from nightmail.model.limits import DAY_MS
from nightmail.model.words import Kind

from .errors import BadEncoding, UnknownVersion

VERSION = 1
CONTENT_BYTES_MAX = 64 * 1024
CRITICAL = 128
"""A reader skips an unknown field with a number below this, and refuses the content for one from here on."""
_FIELD = struct.Struct(">BI")
_CONTROL = struct.Struct(">H")
_LIFE = struct.Struct(">I")

_MENTION = struct.Struct(">Q")

TEXT, REPLY_TO, DATA, CONTROL, LIFE, MENTIONS = 1, 2, 3, 4, 5, 6
MENTIONS_MAX = 64
"""Accounts that one message may be meant for."""
LIFE_MS_MAX = 7 * DAY_MS


class Content(NamedTuple):
    kind: Kind
    text: str | None = None
    reply_to: str | None = None
    """The id of the message this one answers."""
    data: bytes | None = None
    """What a media pointer or a control message carries; its own module knows the form."""
    control: int | None = None
    """Which control message."""
    life_ms: int | None = None
    """Delete it this long after it was read; None: never. Of a timer change: the life of the messages after it."""
    mentions: tuple[int, ...] = ()
    """In a group: the accounts that it is meant for."""

    def __repr__(self) -> str:
        return f"<Content: {self.kind.name.lower()}>"


def encode_content(content: Content) -> bytes:
    fields = [
        (TEXT, None if content.text is None else content.text.encode()),
        (REPLY_TO, None if content.reply_to is None else content.reply_to.encode("ascii")),
        (DATA, content.data),
        (CONTROL, None if content.control is None else _CONTROL.pack(content.control)),
        (LIFE, None if content.life_ms is None else _LIFE.pack(content.life_ms)),
        (MENTIONS, b"".join(map(_MENTION.pack, sorted(set(content.mentions)))) or None),
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
        life, mentions = fields.get(LIFE), fields.get(MENTIONS)
        return Content(
            kind,
            None if text is None else text.decode(),
            None if reply_to is None else _message_id(reply_to),
            fields.get(DATA),
            None if control is None else _CONTROL.unpack(control)[0],
            None if life is None else _life_ms(life),
            () if mentions is None else _accounts(mentions),
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


def _life_ms(raw: bytes) -> int:
    """No timer is written as no field: so a content without one has one encoding."""
    (life_ms,) = _LIFE.unpack(raw)
    if not 0 < life_ms <= LIFE_MS_MAX:
        raise ValueError
    return life_ms


def _accounts(raw: bytes) -> tuple[int, ...]:
    """Ascending, so that one content has one encoding."""
    accounts = tuple(account for (account,) in _MENTION.iter_unpack(raw))
    if not 0 < len(accounts) <= MENTIONS_MAX or list(accounts) != sorted(set(accounts)):
        raise ValueError
    return accounts
