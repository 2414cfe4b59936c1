"""Every no that concerns blobs."""

from __future__ import annotations

from .refusal import Refusal


class UnknownBlob(Refusal, frozen=True, tag=0xA0):
    """There is none under this name, it has ended, or it is not for the one who asks: nobody is told which."""

    word = "unknown_blob"

    @property
    def sentence(self) -> str:
        return "there is no such blob"


class BlobTooLarge(Refusal, frozen=True, tag=0xA1):
    word = "blob_too_large"
    limit: int

    @property
    def sentence(self) -> str:
        return f"a blob has at most {self.limit} bytes"


class BlobQuota(Refusal, frozen=True, tag=0xA2):
    """The account's blobs of this purpose would have more bytes than they may."""

    word = "blob_quota"
    limit: int
    used: int

    @property
    def sentence(self) -> str:
        return f"blobs of an account can have {self.limit} bytes, and {self.used} are used"


class TooManyBlobs(Refusal, frozen=True, tag=0xA3):
    word = "too_many_blobs"
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} blobs"


class TooManyUploads(Refusal, frozen=True, tag=0xA4):
    """The account has as many uploads that are not finished as it may."""

    word = "too_many_uploads"
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} uploads at once; finish or delete one"


class TooManyAddressed(Refusal, frozen=True, tag=0xA5):
    word = "too_many_addressed"
    limit: int

    @property
    def sentence(self) -> str:
        return f"a blob can be for {self.limit} devices"


class BlobUnfinished(Refusal, frozen=True, tag=0xA6):
    """Its bytes are not all there: nobody can be sent to fetch it."""

    word = "blob_unfinished"

    @property
    def sentence(self) -> str:
        return "the blob is not whole yet"


class BackupPrivate(Refusal, frozen=True, tag=0xA7):
    word = "backup_private"

    @property
    def sentence(self) -> str:
        return "a backup is for nobody but its owner"
