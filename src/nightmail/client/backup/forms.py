"""What is inside a segment of a backup: a head, then parts, each with its length before it.

Knows:   the forms, as docs/e2ee.md has them. New fields are appended, with defaults.
Never:   has a place for a key, a session, a chain or anything that waits to be sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from nightmail.client.own_devices.controls import HistoryPart, PastGroup, PastMessage
from nightmail.client.store.group_rows import GroupStanding
from nightmail.client.store.rows import Contact, Conversation, Trusted
from nightmail.e2ee.errors import BadEncoding, UnknownVersion

FORM = 1
LENGTH_BYTES = 4
PART_BYTES_MAX = 16 * 1024 * 1024
WHAT = "backup"

_encode = msgspec.msgpack.Encoder().encode
_any = msgspec.msgpack.Decoder(list[Any]).decode


class BackupHead(Struct, frozen=True, array_like=True):
    """The first thing in every segment."""

    form: int
    account: int
    handle: str
    at: int
    """When it was made, by the clock of its device, in milliseconds since 1970."""
    is_whole: bool
    """It holds everything; otherwise what changed since the segment before it."""
    messages: int
    """How many messages the backup has with this segment."""


class BackupPart(Struct, frozen=True, array_like=True):
    """Some of the content of a segment. Later segments replace what earlier ones say."""

    conversations: tuple[Conversation, ...] = ()
    trusted: tuple[Trusted, ...] = ()
    contacts: tuple[Contact, ...] = ()
    dropped_contacts: tuple[int, ...] = ()
    groups: tuple[PastGroup, ...] = ()
    messages: tuple[PastMessage, ...] = ()
    settings: dict[str, float | int] = {}

    def check(self) -> None:
        """Raises BadEncoding unless it can be stored as it is."""
        handles = {row.peer: row.handle for row in self.conversations}
        HistoryPart(1, 1, 0, handles, self.trusted, self.contacts, self.messages).check()
        numbers = [*self.dropped_contacts, *(row.seen for row in self.conversations)]
        numbers += [number for row in self.groups for number in (row.group, row.joined_at)]
        known = set(GroupStanding)
        if any(not 0 <= number < 1 << 62 for number in numbers) or any(
            row.standing not in known for row in self.groups
        ):
            raise BadEncoding(WHAT, "a number that is none")
        if any(past.life_ms for past in self.messages):
            raise BadEncoding(WHAT, "a message that disappears")


_head = msgspec.msgpack.Decoder(BackupHead).decode
_part = msgspec.msgpack.Decoder(BackupPart).decode


def encode(item: BackupHead | BackupPart) -> bytes:
    data = _encode(item)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def split(content: Iterable[bytes]) -> Iterator[bytes]:
    """The items of a segment's content, however it is cut. Raises BadEncoding."""
    held = bytearray()
    for piece in content:
        held += piece
        at = 0
        while len(held) - at >= LENGTH_BYTES:
            length = int.from_bytes(held[at : at + LENGTH_BYTES], "big")
            if length > PART_BYTES_MAX:
                raise BadEncoding(WHAT, "a part that is too long")
            if len(held) - at - LENGTH_BYTES < length:
                break
            yield bytes(held[at + LENGTH_BYTES : at + LENGTH_BYTES + length])
            at += LENGTH_BYTES + length
        del held[:at]
    if held:
        raise BadEncoding(WHAT, "a part that is not whole")


def head_of(data: bytes) -> BackupHead:
    """Raises UnknownVersion if a newer program wrote it, BadEncoding."""
    try:
        form = _any(data)[0]
        if isinstance(form, int) and form > FORM:
            raise UnknownVersion(WHAT, form)
        head = _head(data)
    except (msgspec.DecodeError, IndexError):
        raise BadEncoding(WHAT, "its head") from None
    if head.form != FORM or any(not 0 <= number < 1 << 62 for number in (head.account, head.at, head.messages)):
        raise BadEncoding(WHAT, "its head")
    return head


def part_of(data: bytes) -> BackupPart:
    """Raises BadEncoding."""
    try:
        part = _part(data)
    except msgspec.DecodeError:
        raise BadEncoding(WHAT, "one of its parts") from None
    part.check()
    return part
