"""What is shown of a blob, and to whom: its owner, and accounts that its audience names.

Knows:   the rows of one account's blobs.
Never:   changes a row, or tells a blob that is for others from one that there is not.
"""

from __future__ import annotations

from nightmail.core.state import ShardState, missing_pair, missing_row
from nightmail.model.blob_rows import AccountBlobs, Blob, BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.ids import SERVER, account_of
from nightmail.model.rows import Kept, Need

from .keeping import find, needs_audience, pages_of


def needs_seen(state: ShardState, name: BlobId, device: int) -> list[Need]:
    missing: list[Need] = []
    if missing_pair(state.blobs, Kept.BLOB, name.owner, name.key, missing) or _is_own(name, device):
        return missing
    if blob := find(state, name):
        needs_audience(state, name.owner, name.key, blob, missing)
    return missing


def blob_seen(state: ShardState, name: BlobId, device: int) -> BlobSeen | None:
    """As `device` sees it, or the server itself."""
    blob = find(state, name)
    if blob is None or not (_is_own(name, device) or _is_addressed(state, name, blob, device)):
        return None
    return _seen(blob)


def _is_own(name: BlobId, device: int) -> bool:
    return device == SERVER or account_of(device) == name.owner


def _is_addressed(state: ShardState, name: BlobId, blob: Blob, device: int) -> bool:
    """Also for a device that was linked since: its account is named."""
    pages, account = pages_of(state, name.owner, name.key, blob), account_of(device)
    return any(device in page.devices for page in pages) or any(
        account_of(each) == account for page in pages for each in page.devices
    )


def needs_backups(state: ShardState, account: int) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.account_blobs, Kept.ACCOUNT_BLOBS, account, missing):
        for secret in (state.account_blobs[account] or AccountBlobs()).backups:
            missing_pair(state.blobs, Kept.BLOB, account, BlobId(account, secret).key, missing)
    return missing


def backups_seen(state: ShardState, account: int) -> list[tuple[BlobId, BlobSeen]]:
    """Those that are whole, in the order in which they were begun."""
    names = [BlobId(account, secret) for secret in (state.account_blobs[account] or AccountBlobs()).backups]
    found = ((name, find(state, name)) for name in names)
    return [(name, _seen(blob)) for name, blob in found if blob and blob.is_whole]


def _seen(blob: Blob) -> BlobSeen:
    ends_at = blob.since_at + blob.life_ms if blob.life_ms else 0
    return BlobSeen(blob.purpose, blob.size, blob.is_whole, blob.since_at, ends_at)
