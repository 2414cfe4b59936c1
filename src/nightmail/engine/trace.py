"""`trace <message id>`: reads the delivery log twice, first the notes of the author, then those of the recipients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from nightmail.core.tracing import author_of, placements, trace
from nightmail.model.ids import SERVER
from nightmail.model.notes import Note
from nightmail.model.traces import Trace

from .early_encoding import encode_pieces
from .ports import EngineError, Post, Rows
from .worker import Execute


def trace_message(rows: Rows, message_id: str, since: int = 0, fresh: Sequence[bytes] = ()) -> Trace:
    """What the delivery log still knows about a message. Raises ValueError if `message_id` is not an id.

    `fresh` are pieces that may not be saved yet. Holds one piece at a time, and blocks while it
    reads: call it on another thread than the loop's.
    """
    placed = list(placements(message_id, chain(rows.recall((author_of(message_id),), since), fresh)))
    devices = {device for note in placed for device, _ in note.places}
    return trace(message_id, placed, chain(rows.recall({SERVER, *devices}, since), fresh) if devices else ())


class Tracer:
    """Traces messages outside of the loop, on the thread of `execute`."""

    def __init__(self, rows: Rows, execute: Execute, post: Post) -> None:
        self._rows, self._execute, self._post = rows, execute, post

    def ask(
        self, message_id: str, saving: Sequence[bytes], unsaved: Sequence[Note], then: Callable[[Trace | None], None]
    ) -> None:
        """`saving` and `unsaved` are what the rows may not have yet; the caller must not change them any more."""

        def look() -> None:
            try:
                fresh = [*saving, *encode_pieces(unsaved)]
                found = trace_message(self._rows, message_id, fresh=fresh)
            except EngineError:
                self._post(lambda: then(None))
            else:
                self._post(lambda: then(found))

        self._execute(look)
