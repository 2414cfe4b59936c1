"""Words from device to device that the server has, and the other device has not: kept, to be sealed again.

Knows:   that no message in the store stands for a control message, so that its content must be kept by itself.
Touches: one errand per word, by its original id.
Never:   keeps one for longer than the server does, or seals it again more often than a message.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.model.ids import MessageId
from nightmail.model.limits import DAY_MS
from nightmail.model.words import Lane

from .hub import Hub
from .store import Outgoing

ERRAND = "word "
TO_ALL = "word to all "
TO_ALL_MAX = 64
"""Words to all own devices that are kept: nobody says that the last of them has one."""
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
        self.on_said: Callable[[Outgoing], None] = lambda _: None
        """Called with a word that the server has now, the first time; also if it was written before a restart."""

    def accepted(self, row: Outgoing) -> None:
        """The server has it: whether the device can open it, is to be seen."""
        store = self._hub.store
        if not row.content or row.void or self._name(row.original) is not None:
            return
        name = (ERRAND if row.only else TO_ALL) + row.original
        store.put_errand(name, _encode(Word(row.to, row.lane, row.only, row.content)))
        for oldest in store.errands(TO_ALL)[:-TO_ALL_MAX]:
            store.drop_errand(oldest)
        self.on_said(row)

    def settled(self, original: str, device: int) -> None:
        """The device has it, or is gone."""
        state = self._hub.store.errand(ERRAND + original)
        if state is not None and _word(state).only == device:
            self._hub.store.drop_errand(ERRAND + original)

    def has_all(self, device: int) -> None:
        """The device says that nothing is missing. The server tells nobody that a control message was delivered."""
        for name in self._hub.store.errands(ERRAND):
            self.settled(name.removeprefix(ERRAND), device)  # those to all have another name, and stay

    def again(self, original: str, device: int) -> Word | None:
        """What to seal once more for a device that could not open it; None: nothing, or too often."""
        store, name = self._hub.store, self._name(original)
        if name is None or (state := store.errand(name)) is None or (word := _word(state)).only not in (0, device):
            return None
        if word.reseals >= self._hub.limits.reseals:
            store.drop_errand(name)
            return None
        store.put_errand(name, _encode(replace(word, reseals=word.reseals + 1)))
        return word

    def _name(self, original: str) -> str | None:
        names = (ERRAND + original, TO_ALL + original)
        return next((name for name in names if self._hub.store.errand(name) is not None), None)

    def forget(self) -> None:
        """Let go of what the server has let go of."""
        for name in self._hub.store.errands(ERRAND):
            if MessageId.parse(name.rpartition(" ")[2]).at_ms < self._hub.now - KEPT_MS:
                self._hub.store.drop_errand(name)
