"""Limits on what presence and typing may cost."""

from __future__ import annotations

from msgspec import Struct


class PresenceLimits(Struct, frozen=True):
    tell_ms: int = 1_000
    """Watchers are told of an account's changes no more often than this, in ms."""
    recheck_ms: int = 30_000
    """How often it is checked, in ms, whether watchers may still see what they watch: they may have been blocked."""
    watched: int = 32
    """Accounts that one connection may watch: those whose conversations are open."""
    asked: int = 100
    """Accounts that may be asked for at once."""
    asks_per_s: int = 20
    """Accounts per second whose presence one account may ask for, on average; watching and typing count, too."""
    asks_burst: int = 500
    """Accounts that it may ask for at once: those of a list of conversations, and then some."""
    typing_ms: int = 3_000
    """An account is said to be typing in one conversation no more often than this, in ms."""
    typing_members: int = 100
    """Members of the largest group in which it is told who is typing."""
