"""`trace <message id>`: asks the delivery log twice, first its author's notes, then those of whoever it went to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import msgspec

from nightmail.core.tracing import author_of, placements, trace
from nightmail.model.notes import Note
from nightmail.model.traces import Trace

from .ports import EngineError, Post, Rows
from .writer import Execute

encode_notes = msgspec.msgpack.Encoder().encode

NOTES_AT_ONCE = 1_000
"""Encoding keeps other threads waiting, the loop among them: so much in one piece."""


def trace_message(rows: Rows, message_id: str, since: int = 0, fresh: Sequence[bytes] = ()) -> Trace:
    """What the delivery log still knows about a message. Raises ValueError for what is no id.

    `fresh` are blocks that may not be saved yet. Reads block by block, and blocks while it does:
    not for the loop's thread.
    """
    placed = list(placements(message_id, chain(rows.recall(author_of(message_id), since), fresh)))
    devices = {device for note in placed for device, _ in note.places}
    blocks = chain.from_iterable(rows.recall(device, since) for device in sorted(devices))
    # One block may speak of several of these devices.
    return trace(message_id, placed, dict.fromkeys(chain(blocks, fresh)))


class Tracer:
    """Traces aside from the loop, on whatever thread `execute` has."""

    def __init__(self, rows: Rows, execute: Execute, post: Post) -> None:
        self._rows, self._execute, self._post = rows, execute, post

    def ask(
        self, message_id: str, saving: bytes, unsaved: Sequence[Note], then: Callable[[Trace | None], None]
    ) -> None:
        """`saving` and `unsaved` are what the rows may not have yet; they must not change any more."""

        def look() -> None:
            try:
                fresh = [*([saving] if saving else ()), *_blocks(unsaved)]
                found = trace_message(self._rows, message_id, fresh=fresh)
            except EngineError:
                self._post(lambda: then(None))
            else:
                self._post(lambda: then(found))

        self._execute(look)


def _blocks(notes: Sequence[Note]) -> Iterator[bytes]:
    for first in range(0, len(notes), NOTES_AT_ONCE):
        yield encode_notes(notes[first : first + NOTES_AT_ONCE])
