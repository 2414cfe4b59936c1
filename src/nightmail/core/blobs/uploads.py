"""A blob is begun, becomes whole, and is removed by its owner.

Knows:   what an account's blobs may take.
Touches: the rows of one blob.
Never:   takes a blob for whole before it is told so: the bytes are durable by then.
"""

from __future__ import annotations

from nightmail.core.rights import check_rights
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.answers import Done, Said
from nightmail.model.blob_rows import AccountBlobs, Blob, Purpose
from nightmail.model.blobs import BlobId
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER
from nightmail.model.records import BlobBegun, BlobCompleted, BlobLooked, BlobRemoved
from nightmail.model.refusals import (
    AnyRefusal,
    BlobQuota,
    BlobTooLarge,
    TooManyBlobs,
    TooManyUploads,
    Unavailable,
    UnknownBlob,
)
from nightmail.model.rows import Kept, Need

from .keeping import count, find, needs_audience, needs_blob, remove

# --- begun --------------------------------------------------------------------------------------


def needs_begun(state: ShardState, _by: int, begun: BlobBegun) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, begun.owner, missing)
    missing_row(state.account_blobs, Kept.ACCOUNT_BLOBS, begun.owner, missing)
    missing_pair(state.blobs, Kept.BLOB, begun.owner, BlobId(begun.owner, begun.secret).key, missing)
    return missing


def step_begun(state: ShardState, _by: int, via: int, begun: BlobBegun) -> None:
    name, own = BlobId(begun.owner, begun.secret), state.account_blobs[begun.owner] or AccountBlobs()
    said: Said | None = check_rights(SERVER, state.accounts[begun.owner], begun.owner)
    if said is None and state.blobs[name.owner, name.key] is not None:
        said = Unavailable()  # Two secrets that begin alike: the next one that is drawn does not.
    said = said or _too_much(state, own, begun)
    if said is None:
        life_ms = state.shard.limits.upload_ms
        blob = Blob(begun.secret, begun.purpose, begun.size, state.elapsed, state.now, life_ms)
        count(own, blob, 1)
        if begun.purpose is Purpose.BACKUP:
            own.backups.append(begun.secret)
        state.account_blobs.put(name.owner, own, state.offset)
        state.blobs.put((name.owner, name.key), blob, state.offset)
        state.derived.append(BlobLooked(name.owner, name.key, 0))
    state.effects.append(Answer(via, said or Done()))


def _too_much(state: ShardState, own: AccountBlobs, begun: BlobBegun) -> AnyRefusal | None:
    limits = state.shard.limits
    is_backup = begun.purpose is Purpose.BACKUP
    quota, used = (
        (limits.backup_quota_bytes, own.backup_bytes) if is_backup else (limits.media_quota_bytes, own.media_bytes)
    )
    if begun.size > min(limits.media_bytes, quota):
        return BlobTooLarge(min(limits.media_bytes, quota))
    if used + begun.size > quota:
        return BlobQuota(quota, used)
    if own.uploads >= limits.media_uploads:
        return TooManyUploads(limits.media_uploads)
    if own.files >= limits.media_files or (is_backup and len(own.backups) >= limits.backups):
        return TooManyBlobs(limits.backups if is_backup else limits.media_files)
    return None


# --- whole --------------------------------------------------------------------------------------


def needs_completed(state: ShardState, _by: int, completed: BlobCompleted) -> list[Need]:
    missing: list[Need] = []
    needs_blob(state, completed.owner, BlobId(completed.owner, completed.secret).key, missing)
    return missing


def step_completed(state: ShardState, _by: int, via: int, completed: BlobCompleted) -> None:
    name = BlobId(completed.owner, completed.secret)
    blob = find(state, name)
    if blob is not None and not blob.is_whole:
        own = state.account_blobs.there(name.owner)
        own.uploads -= 1
        blob.is_whole, blob.since, blob.since_at = True, state.elapsed, state.now
        blob.life_ms = 0 if blob.purpose is Purpose.BACKUP else state.shard.limits.media_ms
        state.account_blobs.put(name.owner, own, state.offset)
        state.blobs.put((name.owner, name.key), blob, state.offset)
    state.effects.append(Answer(via, Done() if blob else UnknownBlob()))


# --- removed ------------------------------------------------------------------------------------


def needs_removed(state: ShardState, _by: int, removed: BlobRemoved) -> list[Need]:
    missing: list[Need] = []
    key = BlobId(removed.owner, removed.secret).key
    if blob := needs_blob(state, removed.owner, key, missing):
        needs_audience(state, removed.owner, key, blob, missing)
    return missing


def step_removed(state: ShardState, _by: int, via: int, removed: BlobRemoved) -> None:
    name = BlobId(removed.owner, removed.secret)
    blob = find(state, name)
    if blob is not None:
        remove(state, name.owner, name.key, blob)
    state.effects.append(Answer(via, Done() if blob else UnknownBlob()))


STEPS: Steps = {
    7: {
        BlobBegun: (needs_begun, step_begun),
        BlobCompleted: (needs_completed, step_completed),
        BlobRemoved: (needs_removed, step_removed),
    }
}
