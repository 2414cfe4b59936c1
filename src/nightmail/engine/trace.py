"""`trace <message id>`: asks the delivery log twice, first its author's notes, then those of whoever it went to."""

from __future__ import annotations

from itertools import chain

from nightmail.core.tracing import Trace, author_of, placements, trace

from .ports import Rows


def trace_message(rows: Rows, message_id: str, since: int = 0) -> Trace:
    """What the delivery log still knows about a message. Raises ValueError for what is no id.

    Reads block by block, and blocks while it does: not for the loop's thread.
    """
    placed = list(placements(message_id, rows.recall(author_of(message_id), since)))
    devices = {device for note in placed for device, _ in note.places}
    blocks = chain.from_iterable(rows.recall(device, since) for device in sorted(devices))
    # One block may speak of several of these devices.
    return trace(message_id, placed, dict.fromkeys(blocks))
