"""Bugs in blobs: their rows, their audiences, and what keeps the bytes in step."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core.blobs import audiences, keeping, looking
from nightmail.engine.blobs.keeper import BlobKeeper

from .tools import Bug, edit, edit_method

MEDIA = ("media",)
KEEPER = ("tests/api/test_media.py",)

BUGS = (
    Bug("a blob ends at the first verification",
        edit(audiences.step_verified, "blob.verified == blob.devices", "blob.verified"), MEDIA),
    Bug("a device that says twice that it has a blob counts twice",
        edit(audiences.step_verified, "if not has_it:", "if True:"), MEDIA),
    Bug("the last verification does not end a blob",
        edit(audiences.step_verified, "blob.verified == blob.devices", "False"), MEDIA),
    Bug("a timer makes the end of a blob later",
        edit(audiences._name, "min(blob.life_ms, life_ms)", "max(blob.life_ms, life_ms)"), MEDIA),
    Bug("an upload that is not finished never ends",
        edit(looking._is_over, "bool(blob.life_ms)", "blob.is_whole and bool(blob.life_ms)"), MEDIA),
    Bug("what has ended still counts towards the quota",
        edit(keeping.remove, "count(own, blob, -1)", "pass"), MEDIA),
    Bug("bytes that belong to no blob are never swept",
        edit_method(BlobKeeper, "tick", "self._pace() >= self._next_at", "False"), MEDIA, KEEPER),
    Bug("a sweep removes the bytes of blobs that live",
        edit_method(BlobKeeper, "_looked", "if is_known:", "if False:"), MEDIA, KEEPER),
)  # fmt: skip
