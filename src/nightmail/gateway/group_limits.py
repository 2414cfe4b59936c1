"""Limits on what questions about groups may cost."""

from __future__ import annotations

from msgspec import Struct


class GroupLimits(Struct, frozen=True):
    asks_per_s: int = 50
    """Questions about groups per second and account, on average. One about receipts counts once for each number."""
    asks_burst: int = 2_000
    """Questions of an account at once: a device that starts asks for the chain and the log of each of its groups."""
    waiting: int = 64
    """Questions of one connection that may wait for their answer."""
    attended: int = 1_000
    """Groups whose growth one connection is told of: as many as an account may be in."""
    tell_ms: int = 250
    """How often, in ms, it is told at most how far the log of a very large group has come."""
    push_entries: int = 16
    """Entries that news of a log may carry; of more, devices are only told how far the log has come."""
    push_bytes: int = 131_072
    """Likewise, in bytes of ciphertext."""
