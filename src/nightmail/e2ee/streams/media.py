"""Where a sealed file is, and what opens it: what a media message carries in its field `data`.

Spec:    our own, byte by byte in docs/e2ee.md. The file itself is a sealed stream (`stream.py`) under a key of its own.
Knows:   the bounds of each part. A name is a file's name and never a path: who saves it may use it as it is.
Never:   shows a key, a name or a thumbnail in a repr.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from nightmail.e2ee.errors import BadEncoding, UnknownVersion
from nightmail.model.forms import ACCOUNT_MAX

from .stream import KEY_BYTES, sealed_size

VERSION = 1
BLOB_BYTES = 16
DIGEST_BYTES = 32
SIZE_MAX = 1 << 40
NAME_BYTES_MAX = 255
TYPE_CHARS_MAX = 127
THUMBNAIL_BYTES_MAX = 32 * 1024
ANY_TYPE = "application/octet-stream"

_HEAD = struct.Struct(f">BQ{BLOB_BYTES}s{KEY_BYTES}s{DIGEST_BYTES}sQBBH")
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_BLOB_ID = re.compile(r"([0-9a-f]{13})-([0-9a-f]{32})")


class MediaPointer(NamedTuple):
    owner: int
    """The account that uploaded it."""
    blob: bytes
    """16 bytes that the server drew for it."""
    key: bytes
    digest: bytes
    """Of the sealed stream."""
    size: int
    """Of the file, without padding."""
    name: str
    type: str = ANY_TYPE
    thumbnail: bytes = b""
    """A small picture, in a form that its readers know; empty: none."""

    @property
    def blob_id(self) -> str:
        """How the server names it."""
        return f"{self.owner:013x}-{self.blob.hex()}"

    @property
    def is_placed(self) -> bool:
        """Whether it names a blob: while a file is being sent, the own copy of its message does not."""
        return any(self.blob)

    @property
    def sealed_bytes(self) -> int:
        """The size of the sealed stream."""
        return sealed_size(self.size)

    def __repr__(self) -> str:
        return f"<media {self.blob_id}>"


def parse_blob_id(text: str) -> tuple[int, bytes]:
    """The owner and the drawn bytes of a blob. Raises BadEncoding."""
    if (found := _BLOB_ID.fullmatch(text)) is None or not 0 < (owner := int(found[1], 16)) <= ACCOUNT_MAX:
        raise BadEncoding("blob id", "it is malformed")
    return owner, bytes.fromhex(found[2])


def encode_pointer(pointer: MediaPointer) -> bytes:
    """Raises BadEncoding if no reader would take it."""
    name, kind = pointer.name.encode(), pointer.type.encode()
    if why := _why_unfit(pointer):
        raise BadEncoding("media pointer", why)
    head = _HEAD.pack(
        VERSION, pointer.owner, pointer.blob, pointer.key, pointer.digest, pointer.size, len(name), len(kind),
        len(pointer.thumbnail),
    )  # fmt: skip
    return head + name + kind + pointer.thumbnail


def decode_pointer(data: bytes) -> MediaPointer:
    """Raises BadEncoding, UnknownVersion."""
    if data and data[0] != VERSION:
        raise UnknownVersion("media pointer", data[0])
    try:
        _, owner, blob, key, digest, size, name_bytes, type_bytes, thumbnail_bytes = _HEAD.unpack_from(data)
        name_at = _HEAD.size
        type_at = name_at + name_bytes
        thumbnail_at = type_at + type_bytes
        end = thumbnail_at + thumbnail_bytes
        if end != len(data):
            raise ValueError
        pointer = MediaPointer(
            owner, blob, key, digest, size, data[name_at:type_at].decode(), data[type_at:thumbnail_at].decode("ascii"),
            data[thumbnail_at:end],
        )  # fmt: skip
    except (ValueError, struct.error):
        # Without details: they are private, and errors may be logged.
        raise BadEncoding("media pointer", "a part is malformed") from None
    if why := _why_unfit(pointer):
        raise BadEncoding("media pointer", why)
    return pointer


def _why_unfit(pointer: MediaPointer) -> str:
    """Which bound it breaks; empty: none."""
    is_drawn = len(pointer.blob) == BLOB_BYTES and len(pointer.key) == KEY_BYTES
    checks = {
        "its owner, blob, key or digest cannot be": (
            0 < pointer.owner <= ACCOUNT_MAX and is_drawn and len(pointer.digest) == DIGEST_BYTES
        ),
        "its size cannot be": 0 <= pointer.size <= SIZE_MAX,
        "its name is no name of a file": is_file_name(pointer.name),
        "its type is no media type": is_media_type(pointer.type),
        "its thumbnail is too large": len(pointer.thumbnail) <= THUMBNAIL_BYTES_MAX,
    }
    return next((why for why, is_fit in checks.items() if not is_fit), "")


def is_file_name(name: str) -> bool:
    """Whether it can be shown, and used as a file's name in any folder on any system, without leaving the folder."""
    is_plain = name.isprintable() and not set(name) & set('/\\:*?"<>|')
    is_named = bool(name) and name == name.strip() and not name.endswith(".")
    return is_plain and is_named and len(name.encode()) <= NAME_BYTES_MAX


def is_media_type(kind: str) -> bool:
    return len(kind) <= TYPE_CHARS_MAX and bool(_TYPE.fullmatch(kind))
