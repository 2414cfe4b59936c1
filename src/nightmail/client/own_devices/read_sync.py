"""What the person reads on one device is no longer new on the others.

Knows:   the control message READ.
Touches: the read marks; the outbox.
"""

from __future__ import annotations

from nightmail.client.inbox.read_marks import ReadMarks
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.trust.believed_lists import BelievedLists

from .controls import read, read_of

READ_IDS = 500
"""How many messages one control message names."""


class ReadSync:
    def __init__(self, context: Context, believed: BelievedLists, outbox: Outbox, read_marks: ReadMarks) -> None:
        self._context, self._believed, self._outbox, self._read_marks = context, believed, outbox, read_marks

    def tell(self, ids: list[str]) -> None:
        """The person has read these here: tell the other own devices."""
        own = self._context.identity.account
        listed = self._believed.of(own)
        if listed is not None and len(listed.devices) > 1:
            for at in range(0, len(ids), READ_IDS):
                self._outbox.control(own, read(ids[at : at + READ_IDS]))

    def take(self, by: int, data: bytes) -> None:
        """Another own device says what was read there."""
        self._read_marks.mark_elsewhere(set(read_of(data)))
