"""Many items into few frames, none above what the server reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightmail.model.records import Acked, Read, Sent
from nightmail.wire.frames import encode
from nightmail.wire.items import Ask, FromDevice

ITEM_BYTES = 256
"""More than an item without lists can have: numbers, an id, a tag."""
ENVELOPE_BYTES = 32
"""More than an envelope adds to its ciphertext."""
SPAN_BYTES = 32


def pack(items: Sequence[FromDevice], frame_bytes: int) -> Iterator[bytes]:
    """Frames in the order of the items; an item that is too large by itself has its own frame."""
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
    """At least what it takes on the wire, without encoding it."""
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
    return ITEM_BYTES
