"""Packs many items into few frames, none larger than the server reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightmail.model.records import Acked, Read, Sent
from nightmail.wire.frames import encode
from nightmail.wire.items import Ask, FromDevice

ITEM_BYTES = 256
"""An upper bound for an item without lists: numbers, an id, a tag."""
ENVELOPE_BYTES = 32
"""An upper bound for what an envelope adds to its ciphertext."""
SPAN_BYTES = 32
REF_BYTES = 8
"""A question may be measured before it has its number."""


def pack(items: Sequence[FromDevice], frame_bytes: int) -> Iterator[bytes]:
    """Frames in the order of the items. An item that is too large gets a frame of its own."""
    batch: list[FromDevice] = []
    size = 0
    for item in items:
        more = size_of(item)
        if batch and size + more > frame_bytes:
            yield encode(batch)
            batch, size = [], 0
        batch.append(item)
        size += more
    if batch:
        yield encode(batch)


def size_of(item: FromDevice) -> int:
    """An upper bound for its size on the wire. What is said most often is not encoded for that."""
    if isinstance(item, Ask):
        match item.body:
            case Sent() as sent:
                envelopes = (*sent.envelopes, *sent.own_envelopes)
                return ITEM_BYTES + sum(ENVELOPE_BYTES + len(envelope.ciphertext) for envelope in envelopes)
            case Acked() | Read() as body:
                lists = body.unreadable if isinstance(body, Acked) else body.spans
                return ITEM_BYTES + SPAN_BYTES * len(lists)
            case _:
                pass
    return max(ITEM_BYTES, len(encode([item])) + REF_BYTES)
