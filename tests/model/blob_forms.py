"""Blobs, well formed and malformed."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.model.blob_rows import Purpose
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import (
    AnyBody,
    BlobAddressed,
    BlobBegun,
    BlobCompleted,
    BlobLooked,
    BlobRemoved,
    BlobVerified,
)

ADA = account_id("ada")
PHONE = device_id(account_id("bob"), 1)
SECRET = bytes(range(16))
BEGUN = BlobBegun(ADA, SECRET, Purpose.MEDIA, 1_000)
ADDRESSED = BlobAddressed(ADA, SECRET, (PHONE, PHONE + 1), 30_000)
VERIFIED = BlobVerified(ADA, SECRET, PHONE)

WELL_FORMED_BLOBS: dict[str, AnyBody] = {
    "a blob begins": BEGUN,
    "an empty blob begins": replace(BEGUN, size=0),
    "a backup begins": replace(BEGUN, purpose=Purpose.BACKUP),
    "a blob is whole": BlobCompleted(ADA, SECRET),
    "a blob is for devices": ADDRESSED,
    "a blob is for 256 devices": replace(ADDRESSED, devices=tuple(range(1, 257)), life_ms=0),
    "a device has a blob": VERIFIED,
    "a blob is no more": BlobRemoved(ADA, SECRET),
}

MALFORMED_BLOBS: dict[str, tuple[AnyBody, str]] = {
    "a blob of nobody": (replace(BEGUN, owner=0), "owner is not between"),
    "a blob with a short secret": (replace(BEGUN, secret=b"x"), "secret is not 16 bytes"),
    "a blob of negative size": (replace(BEGUN, size=-1), "size is not between"),
    "a whole blob of nobody": (BlobCompleted(0, SECRET), "owner is not between"),
    "a blob for 257 devices": (replace(ADDRESSED, devices=tuple(range(1, 258))), "at most 256 devices"),
    "a blob for no device": (replace(ADDRESSED, devices=(0,)), "device is not between"),
    "a blob that has ended": (replace(ADDRESSED, life_ms=-1), "life_ms is not between"),
    "a blob that nobody has": (replace(VERIFIED, device=0), "device is not between"),
    "a blob without a name is no more": (BlobRemoved(ADA, b""), "secret is not 16 bytes"),
}

SERVERS_BLOBS: list[AnyBody] = [BlobLooked(ADA, 5, 7)]
