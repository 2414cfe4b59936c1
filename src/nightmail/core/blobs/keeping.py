"""The rows of one blob: found, counted, removed together.

Knows:   a blob, its audience, and what its owner's blobs take.
Touches: those rows; through an effect, the bytes. The row goes first: what then has no row is swept away.
"""

from __future__ import annotations

import hmac

from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.blob_rows import AccountBlobs, AudiencePage, Blob, Purpose, page_number
from nightmail.model.blobs import BlobId
from nightmail.model.effects import RemoveBytes
from nightmail.model.rows import Kept, Need


def needs_blob(state: ShardState, owner: int, key: int, missing: list[Need]) -> Blob | None:
    """The blob, and its owner's row; returns it if it is in memory and exists."""
    missing_row(state.account_blobs, Kept.ACCOUNT_BLOBS, owner, missing)
    if missing_pair(state.blobs, Kept.BLOB, owner, key, missing):
        return None
    return state.blobs[owner, key]


def needs_audience(state: ShardState, owner: int, key: int, blob: Blob, missing: list[Need]) -> None:
    for page in range(blob.pages):
        missing_pair(state.audiences, Kept.AUDIENCE, page_number(owner, page), key, missing)


def find(state: ShardState, name: BlobId) -> Blob | None:
    """The secret is compared whole: a row's key has a part of it."""
    blob = state.blobs[name.owner, name.key]
    return blob if blob and hmac.compare_digest(blob.secret, name.secret) else None


def pages_of(state: ShardState, owner: int, key: int, blob: Blob) -> list[AudiencePage]:
    return [state.audiences.there((page_number(owner, page), key)) for page in range(blob.pages)]


def count(own: AccountBlobs, blob: Blob, sign: int) -> None:
    own.files += sign
    if blob.purpose is Purpose.BACKUP:
        own.backup_bytes += sign * blob.size
    else:
        own.media_bytes += sign * blob.size
    if not blob.is_whole:
        own.uploads += sign


def remove(state: ShardState, owner: int, key: int, blob: Blob) -> None:
    """It is no more. An item that is planned finds nothing to do."""
    own = state.account_blobs.there(owner)
    count(own, blob, -1)
    if blob.purpose is Purpose.BACKUP:
        own.backups.remove(blob.secret)
    state.account_blobs.put(owner, own, state.offset)
    for page in range(blob.pages):
        state.audiences.put((page_number(owner, page), key), None, state.offset)
    state.blobs.put((owner, key), None, state.offset)
    state.effects.append(RemoveBytes(owner, blob.secret))
