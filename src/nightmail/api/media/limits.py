"""All limits on what the transfer of a blob may cost."""

from __future__ import annotations

from msgspec import Struct


class MediaLimits(Struct, frozen=True):
    piece_bytes: int = 262_144
    """Bytes of a blob that a transfer holds in memory: so much is read from the network, or from the store, at once."""
    piece_ms: int = 30_000
    """How long one such piece may take over the network, in ms."""
    streams: int = 256
    """Uploads and downloads under way at once; others are told to come back."""
    account_streams: int = 8
    """Of these, of one account: a download that nobody reads keeps its place for a while."""
    begun_per_minute: int = 1_200
    """Uploads that one account may begin in a minute, over time and at once; 0: no limit."""
    fetched_per_minute: int = 6_000
    """Downloads of one account, likewise. Each range counts."""
