"""Words from device to device that the server has, and the other device has not: kept, to be sealed again.

Knows:   that no message in the store stands for a control message, so that its content must be kept by itself.
Touches: one errand per word, by its original id.
Never:   keeps one for longer than the server does, or seals it again more often than a message.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.model.ids import MessageId
from nightmail.model.limits import DAY_MS
from nightmail.model.words import Lane

from .hub import Hub
from .store import Outgoing

ERRAND = "word "
KEPT_MS = 31 * DAY_MS


class Word(Struct, frozen=True, array_like=True):
    to: int
    lane: Lane
    only: int
    content: bytes
    reseals: int = 0

    def __repr__(self) -> str:
        return f"<word for {self.only:x}>"


_encode = msgspec.msgpack.Encoder().encode
_word = msgspec.msgpack.Decoder(Word).decode


class Spoken:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def accepted(self, row: Outgoing) -> None:
        """The server has it: whether the device can open it, is to be seen."""
        name = ERRAND + row.original
        if row.content and row.only and not row.void and self._hub.store.errand(name) is None:
            self._hub.store.put_errand(name, _encode(Word(row.to, row.lane, row.only, row.content)))

    def settled(self, original: str, device: int) -> None:
        """The device has it, or is gone."""
        state = self._hub.store.errand(ERRAND + original)
        if state is not None and _word(state).only == device:
            self._hub.store.drop_errand(ERRAND + original)

    def has_all(self, device: int) -> None:
        """The device says that nothing is missing. The server tells nobody that a control message was delivered."""
        for name in self._hub.store.errands(ERRAND):
            self.settled(name.removeprefix(ERRAND), device)

    def again(self, original: str, device: int) -> Word | None:
        """What to seal once more for a device that could not open it; None: nothing, or too often."""
        store, name = self._hub.store, ERRAND + original
        if (state := store.errand(name)) is None or (word := _word(state)).only != device:
            return None
        if word.reseals >= self._hub.limits.reseals:
            store.drop_errand(name)
            return None
        store.put_errand(name, _encode(replace(word, reseals=word.reseals + 1)))
        return word

    def forget(self) -> None:
        """Let go of what the server has let go of."""
        for name in self._hub.store.errands(ERRAND):
            if MessageId.parse(name.removeprefix(ERRAND)).at_ms < self._hub.now - KEPT_MS:
                self._hub.store.drop_errand(name)
