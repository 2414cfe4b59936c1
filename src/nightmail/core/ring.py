"""The answers that a sender may still ask for again, packed: a stream at rest is one piece of memory.

Knows:   the numbers `low` to `last` of one lane, one slot each, in order and without holes.
Touches: a `Numbers` row.

Of an id only a checksum is kept: a sender that asks again says the id. Contents are told apart by their
tags, so all that could slip through, once in four billion times, is a sender that gives one content
two ids under one number. As rarely, a new id has the checksum of one that is kept, and is refused as reused: its
sender gives the message the next number, and is heard once the other answer is forgotten.
"""

from __future__ import annotations

import struct
from typing import TypeAlias
from zlib import crc32

from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.forms import TAG_BYTES
from nightmail.model.records import GroupSealed, GroupSent, GroupVoided, Sent, Voided
from nightmail.model.refusals import IdReused, NumberVoided
from nightmail.model.rows import Numbers

VOID = b""
"""The content tag of a number that was given up."""

_SLOT = struct.Struct(f">{TAG_BYTES + 1}p4sQQ")
"""Tag with its length, checksum of the id, stamp, list version; in a stream to a group, `group_seq` in its place."""
SLOT_BYTES = _SLOT.size
CHECKSUM_AT = TAG_BYTES + 1
"""Where in a slot the checksum stands."""
slot = _SLOT.pack
"""Cuts a longer tag silently. The tag of a `Sent` need not be measured: its form has TAG_BYTES."""


Numbered: TypeAlias = Sent | Voided | GroupSent | GroupSealed | GroupVoided
"""What takes a number of a stream."""


def checksum_of(ident: str) -> bytes:
    return crc32(ident.encode()).to_bytes(4)


def keep(numbers: Numbers, answer: Accepted) -> None:
    """Take the next number, and remember what it was answered."""
    assert len(answer.tag) <= TAG_BYTES, len(answer.tag)
    numbers.last += 1
    numbers.ring += slot(answer.tag, checksum_of(answer.id), answer.at, answer.list_version)


def answer_again(numbers: Numbers, sent: Numbered) -> Said:
    """What a number that is taken was answered: word for word, if it is the same message."""
    if sent.n < numbers.low:
        return Settled(sent.id)
    tag, checksum, at, list_version = _SLOT.unpack_from(numbers.ring, (sent.n - numbers.low) * SLOT_BYTES)
    if checksum != checksum_of(sent.id):
        return IdReused(sent.id)
    if not isinstance(sent, Voided | GroupVoided):
        if tag == VOID:
            return NumberVoided(sent.id)
        if tag != sent.tag:
            return IdReused(sent.id)
    return Accepted(sent.id, tag, at, list_version)


def is_reused(lanes: tuple[Numbers, Numbers], ident: str, tag: bytes) -> bool:
    """Whether an answer that is kept, of either lane, has the id of this message under other content.

    A number that was given up had none.
    """
    checksum = checksum_of(ident)
    normal, high = lanes
    return _is_taken(normal.ring, checksum, tag) or _is_taken(high.ring, checksum, tag)


def _is_taken(ring: bytearray, checksum: bytes, tag: bytes) -> bool:
    """Look at each slot with this checksum: its bytes may stand elsewhere by chance."""
    # Not `in`: that would take the checksum for a number first, and raise and drop an error within.
    at = ring.find(checksum)
    while at >= 0:
        first = at - CHECKSUM_AT
        if first % SLOT_BYTES == 0 and _SLOT.unpack_from(ring, first)[0] not in (VOID, tag):
            return True
        at = ring.find(checksum, at + 1)
    return False


def forget(numbers: Numbers, floor: int, ring_acks: int) -> None:
    """Let go of the answers that nobody can ask for any more."""
    last, low = numbers.last, numbers.low
    kept = last - ring_acks + 1
    if floor > kept:
        # Whatever a sender claims, it does wait for the newest one.
        kept = floor if floor < last else last
    if kept > low:
        del numbers.ring[: (kept - low) * SLOT_BYTES]
        numbers.low = kept
