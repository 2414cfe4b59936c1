"""Control messages that the server has and their device perhaps not: kept, to be sealed again.

Knows:   that no message row stands for a control message, so its content must be kept separately.
Touches: one errand per control message, under its original id.
Never:   keeps one longer than the server does, or seals it again more often than a message.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.store.rows import Outgoing
from nightmail.model.group_chain import is_group
from nightmail.model.ids import MessageId
from nightmail.model.limits import DAY_MS
from nightmail.model.words import Lane

ERRAND = "word "
TO_ALL = "word to all "
"""Errands: a control message for one device; one for all own devices."""
TO_ALL_MAX = 64
"""How many of those for all devices are kept: no device says that it was the last to get one."""
KEPT_MS = 31 * DAY_MS


class ControlCopy(Struct, frozen=True, array_like=True):
    to: int
    lane: Lane
    only: int
    content: bytes
    reseals: int = 0

    def __repr__(self) -> str:
        return f"<control copy for {self.only:x}>"


_encode = msgspec.msgpack.Encoder().encode
_copy = msgspec.msgpack.Decoder(ControlCopy).decode


class ControlCopies:
    def __init__(self, context: Context) -> None:
        self._context = context

    def accepted(self, row: Outgoing) -> None:
        """The server has this row. If it is a control message, keep it until its device has opened it."""
        store = self._context.store
        if not row.content or row.void or self._name(row.original) is not None:
            return
        if is_group(row.to):
            # A device that lacks something of a group asks for it.
            self._context.signals.control_accepted(row)
            return
        name = (ERRAND if row.only else TO_ALL) + row.original
        store.put_errand(name, _encode(ControlCopy(row.to, row.lane, row.only, row.content)))
        for oldest in store.errands(TO_ALL)[:-TO_ALL_MAX]:
            store.drop_errand(oldest)
        self._context.signals.control_accepted(row)

    def settled(self, original: str, device: int) -> None:
        """The device has it, or is gone."""
        state = self._context.store.errand(ERRAND + original)
        if state is not None and _copy(state).only == device:
            self._context.store.drop_errand(ERRAND + original)

    def has_all(self, device: int) -> None:
        """The device says that nothing is missing. The server sends no receipts for control messages."""
        for name in self._context.store.errands(ERRAND):
            self.settled(name.removeprefix(ERRAND), device)  # those for all devices have another name, and stay

    def take(self, original: str, device: int) -> ControlCopy | None:
        """What to seal again for a device that could not open it; None: nothing, or too often."""
        store, name = self._context.store, self._name(original)
        if name is None or (state := store.errand(name)) is None or (copy := _copy(state)).only not in (0, device):
            return None
        if copy.reseals >= self._context.limits.reseals:
            store.drop_errand(name)
            return None
        store.put_errand(name, _encode(replace(copy, reseals=copy.reseals + 1)))
        return copy

    def connected(self) -> None:
        """Drop what the server has dropped by now."""
        for name in self._context.store.errands(ERRAND):
            if MessageId.parse(name.rpartition(" ")[2]).at_ms < self._context.now - KEPT_MS:
                self._context.store.drop_errand(name)

    def _name(self, original: str) -> str | None:
        names = (ERRAND + original, TO_ALL + original)
        return next((name for name in names if self._context.store.errand(name) is not None), None)
