"""Acknowledgements whose fate is unknown, because an append failed: they are said again.

Knows:   one for each queue of a device: the farthest, with every number that any of them could not open.
Never:   grows beyond one acknowledgement for a queue, or counts as delivered what one of them could not open.

A device sends an acknowledgement without an address once, and takes it for heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from nightmail.model.limits import FormLimits
from nightmail.model.records import Acked, ReceiptsAcked, Record
from nightmail.model.words import Lane

LISTED = FormLimits().unreadable
_Queue: TypeAlias = tuple[int, Lane | None]


class UnheardAcks:
    def __init__(self) -> None:
        self._kept: dict[_Queue, Acked | ReceiptsAcked] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def keep(self, unknown: Iterable[Record]) -> None:
        """Keep those of these records that are acknowledgements, and that nobody is told the fate of."""
        for record in unknown:
            body = record.body
            if record.via:
                continue
            if isinstance(body, Acked):
                before = self._kept.get((record.by, body.lane))
                self._kept[record.by, body.lane] = _together(before, body) if isinstance(before, Acked) else body
            elif isinstance(body, ReceiptsAcked):
                before = self._kept.get((record.by, None))
                if before is None or before.upto < body.upto:
                    self._kept[record.by, None] = body

    def take(self) -> list[Record]:
        """What is to be said again, once."""
        kept, self._kept = self._kept, {}
        return [Record(by, 0, body) for (by, _), body in kept.items()]


def _together(first: Acked, second: Acked) -> Acked:
    """What both say, as far as one acknowledgement can list it: what is behind that is handed out again."""
    upto, unreadable = max(first.upto, second.upto), sorted({*first.unreadable, *second.unreadable})
    if len(unreadable) > LISTED:
        upto, unreadable = unreadable[LISTED] - 1, unreadable[:LISTED]
    return Acked(first.lane, upto, tuple(unreadable))
