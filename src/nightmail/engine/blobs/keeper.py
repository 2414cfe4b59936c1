"""Keeps bytes and rows in step: removes the bytes of blobs that are no more, and finds what was left behind.

Knows:   how far the present sweep has come.
Touches: the store of bytes, and the shards: by questions, and by `BlobRemoved` where bytes are lost.
Never:   removes bytes before their row is gone. A row is there before the first byte is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from nightmail.engine.ports import Desk
from nightmail.model.blobs import BlobId
from nightmail.model.effects import LookForBytes, RemoveBytes
from nightmail.model.ids import SERVER
from nightmail.model.records import BlobRemoved, Record

from .port import BlobFailed, BlobRecords, Blobs, Held

PAGE = 100
"""Names that are looked at in one go; then others have their turn."""


class RecordDesk(Desk, BlobRecords, Protocol):
    """Both are asked here."""


class BlobKeeper:
    def __init__(
        self, desk: RecordDesk, blobs: Blobs, pace: Callable[[], int], soon: Callable[[], None], sweep_ms: int
    ) -> None:
        self._desk, self._blobs, self._pace, self._soon, self._sweep_ms = desk, blobs, pace, soon, sweep_ms
        self._next_at = pace()
        """A sweep begins with the start: effects of the last process may be lost."""
        self._after: BlobId | None = None
        self._busy = 0
        """Questions of the present page that are not answered yet."""
        self.removed = self.swept = self.lost = self.failed = 0

    def on_bytes(self, effect: RemoveBytes | LookForBytes) -> None:
        name = BlobId(effect.owner, effect.secret)
        if isinstance(effect, RemoveBytes):
            self._blobs.remove(name, self._removed)
        else:
            self._blobs.held(name, lambda held: self._held(name, held))

    def _removed(self, failed: BlobFailed | None) -> None:
        self.removed += failed is None
        self.failed += failed is not None

    def _held(self, name: BlobId, held: Held | BlobFailed | None) -> None:
        if isinstance(held, BlobFailed):
            self.failed += 1  # Asked again tomorrow: a store that is away has lost nothing.
        elif held is None:
            self.lost += 1
            self._desk.submit([Record(SERVER, 0, BlobRemoved(*name))])
            self._soon()

    # --- the sweep ----------------------------------------------------------------------------

    def tick(self) -> None:
        """The next page, if one is due and the last one is done. To be called often."""
        if not self._busy and self._pace() >= self._next_at:
            self._busy = 1
            self._blobs.names(self._after, PAGE, self._listed)

    def _listed(self, names: Sequence[BlobId] | BlobFailed) -> None:
        self._busy = 0
        if isinstance(names, BlobFailed):
            self.failed += 1
            self._rest()
            return
        for name in names:
            self._busy += 1
            self._desk.blob(name, SERVER, lambda seen, name=name: self._looked(name, is_known=seen is not None))
        if len(names) < PAGE:
            self._rest()
        else:
            self._after = names[-1]

    def _looked(self, name: BlobId, *, is_known: bool) -> None:
        if is_known:
            self._busy -= 1
        else:
            self.swept += 1
            self._blobs.remove(name, self._dropped)

    def _dropped(self, failed: BlobFailed | None) -> None:
        self._busy -= 1
        self.failed += failed is not None

    def _rest(self) -> None:
        self._after = None
        self._next_at = self._pace() + self._sweep_ms
