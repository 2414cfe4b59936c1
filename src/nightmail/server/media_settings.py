"""The section [media]: where the bytes of blobs are kept. `media.py` uses it."""

from __future__ import annotations

from msgspec import Struct


class MediaSettings(Struct, frozen=True):
    folder: str = ""
    """Where the bytes of blobs are kept; empty: in the folder media beside the log. Backups of the data folder do not
    contain them."""
    reserve_bytes: int = 256 * 1024 * 1024
    """Space on that disk that uploads leave free: the log may be on the same one."""
    threads: int = 4
    """Threads that read and write the bytes of blobs."""
    s3_bucket: str = ""
    """A bucket of S3, used for nothing else, that keeps the bytes of blobs once they are whole; until then they are in
    the folder. Empty: they stay in the folder. Needs nightmail[s3]."""
    s3_endpoint: str = ""
    """The address of S3, for one that is not Amazon's; with http:// nothing protects the credentials on their way."""
    s3_region: str = ""
    """The region of the bucket; empty: us-east-1."""
    s3_key_id: str = ""
    """The access key; empty: from AWS_ACCESS_KEY_ID, or from the role of the machine."""
    s3_secret_key: str = ""
    """What belongs to it."""
    sweep_ms: int = 24 * 60 * 60 * 1000
    """How often all names are looked through for bytes that belong to no blob, in ms."""
