"""Blobs: begun, whole, addressed, verified, removed. The bytes are never in the log.

The HTTP side says these, after it has seen who asks: a name's secret is drawn by the server, and a blob is whole only
where its bytes are durable.
"""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Done
from nightmail.model.blob_rows import PAGE_DEVICES, Purpose
from nightmail.model.blobs import SECRET_BYTES
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX, Complaint, Form, not_long, out_of

from .body import Author, Body


class BlobBegun(Body, frozen=True, tag=150):
    """An upload of so many bytes begins; they count towards the owner's quota from now on."""

    said_by = Author.SERVER
    since = 7
    answered_by = (Done,)

    owner: int
    secret: bytes
    purpose: Purpose
    size: int

    def home(self, by: int) -> int:
        return self.owner

    def form(self, by: int, limits: Form) -> Complaint:
        return _wrong_name(self.owner, self.secret) or out_of(self.size, 0, NUMBER_MAX, "size")


class BlobCompleted(Body, frozen=True, tag=151):
    """All its bytes are durable. Said again, it changes nothing."""

    said_by = Author.SERVER
    since = 7
    answered_by = (Done,)

    owner: int
    secret: bytes

    def home(self, by: int) -> int:
        return self.owner

    def form(self, by: int, limits: Form) -> Complaint:
        return _wrong_name(self.owner, self.secret)


class BlobAddressed(Body, frozen=True, tag=152):
    """These devices may fetch it, besides those named before."""

    said_by = Author.SERVER
    since = 7
    answered_by = (Done,)

    owner: int
    secret: bytes
    devices: tuple[int, ...]
    life_ms: int = 0
    """It ends so long after now, if it would not end before that; 0: when it would."""

    def home(self, by: int) -> int:
        return self.owner

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            _wrong_name(self.owner, self.secret)
            or (len(self.devices) > PAGE_DEVICES and f"at most {PAGE_DEVICES} devices are named at once")
            or next((wrong for device in self.devices if (wrong := out_of(device, 1, DEVICE_MAX, "device"))), None)
            or out_of(self.life_ms, 0, NUMBER_MAX, "life_ms")
        )


class BlobVerified(Body, frozen=True, tag=153):
    """A device has all of it, and has checked it. When the last one has, the blob ends."""

    said_by = Author.SERVER
    since = 7
    answered_by = (Done,)

    owner: int
    secret: bytes
    device: int

    def home(self, by: int) -> int:
        return self.owner

    def form(self, by: int, limits: Form) -> Complaint:
        return _wrong_name(self.owner, self.secret) or out_of(self.device, 1, DEVICE_MAX, "device")


class BlobRemoved(Body, frozen=True, tag=154):
    """Its owner ends it, whole or not; or its bytes are lost."""

    said_by = Author.SERVER
    since = 7
    answered_by = (Done,)

    owner: int
    secret: bytes

    def home(self, by: int) -> int:
        return self.owner

    def form(self, by: int, limits: Form) -> Complaint:
        return _wrong_name(self.owner, self.secret)


class BlobLooked(Body, frozen=True, tag=155):
    """One due item: has it ended, does somebody own it, are its bytes still there?"""

    said_by = Author.FOLD
    since = 7

    owner: int
    key: int
    moment: int
    """That it was planned for. If it is to be looked at in another one, this does nothing. 0: only plan."""

    def home(self, by: int) -> int:
        return self.owner


__all__ = ("BlobAddressed", "BlobBegun", "BlobCompleted", "BlobLooked", "BlobRemoved", "BlobVerified")
Bodies: TypeAlias = BlobBegun | BlobCompleted | BlobAddressed | BlobVerified | BlobRemoved | BlobLooked


def _wrong_name(owner: int, secret: bytes) -> Complaint:
    return out_of(owner, 1, ACCOUNT_MAX, "owner") or not_long(secret, SECRET_BYTES, "secret")
