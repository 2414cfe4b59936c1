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
    sweep_ms: int = 24 * 60 * 60 * 1000
    """How often all names are looked through for bytes that belong to no blob, in ms."""
