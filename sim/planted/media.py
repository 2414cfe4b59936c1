"""Bugs in blobs: their rows, their audiences, and what keeps the bytes in step."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.api.media.upload_routes import UploadRoutes
from nightmail.core.blobs import audiences, keeping, looking, uploads
from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.keeper import BlobKeeper

from .tools import Bug, all_of, edit, edit_method

MEDIA = ("media",)
KEEPER = ("tests/api/media/test_media.py",)
BLOBS = ("tests of blobs",)

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
    Bug("a blob whose bytes are lost goes on living",
        edit_method(BlobKeeper, "_held", "elif held is None:", "elif False:"), MEDIA, KEEPER),
    Bug("the bytes of a blob that has ended stay",
        all_of((
            edit_method(BlobKeeper, "on_bytes", "isinstance(effect, RemoveBytes)", "False"),
            edit_method(BlobKeeper, "_looked", "if is_known:", "if True:"),
        )), MEDIA, KEEPER),
    Bug("backups end like media",
        edit(uploads.step_completed, "0 if blob.purpose is Purpose.BACKUP else", "0 if False else"), MEDIA),
    Bug("a backup counts towards the quota of media",
        edit(keeping.count, "blob.purpose is Purpose.BACKUP", "False"), MEDIA),
    Bug("an upload may take for ever once it was addressed",
        edit(uploads.step_begun, "life_ms = state.shard.limits.upload_ms", "life_ms = 0"), MEDIA),
    Bug("a chunk counts whatever its checksum says",
        edit_method(UploadRoutes, "_receive", "if checksum and digest and not", "if False and not"), BLOBS, ()),
    Bug("anybody may end anybody's upload",
        edit_method(UploadRoutes, "_owner", "account_of(device) != name.owner", "False"), BLOBS, ()),
    Bug("any offset is taken",
        edit_method(UploadRoutes, "continue_upload", "!= said", "is None"), BLOBS, ()),
    Bug("uploads take the space that is reserved for the log",
        edit_method(FolderBlobs, "_write", "self._reserve + len(data)", "0"), BLOBS, ()),
    Bug("bytes count before they are synced",
        edit_method(FolderBlobs, "_confirm", "before = _confirmed(descriptor)\n        os.fdatasync(descriptor)",
                    "before = _confirmed(descriptor)"), BLOBS, ()),
)  # fmt: skip
