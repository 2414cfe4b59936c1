"""Points in time, as people type them: RFC 3339 with a zone, or a length of time from now on."""

from __future__ import annotations

from datetime import datetime, timedelta

from .durations import OFF, duration_ms


def time_typed(typed: str) -> datetime:
    """Raises ValueError, with the end of a sentence."""
    try:
        time = datetime.fromisoformat(typed)
    except ValueError:
        raise ValueError("is no time: 2026-03-01T12:00:00Z is one") from None
    if time.utcoffset() is None:
        raise ValueError("has no zone: 2026-03-01T12:00:00Z, or +01:00 instead of Z")
    return time


def time_or_delay(typed: str) -> datetime | timedelta:
    """What somebody typed into one field that takes both. Raises ValueError, with a sentence without its full stop."""
    typed = typed.strip()
    if "-" in typed or ":" in typed:
        try:
            return time_typed(typed)
        except ValueError as error:
            raise ValueError(f"{typed!r} {error}") from None
    if typed.lower() != OFF:
        try:
            return timedelta(milliseconds=duration_ms(typed))
        except ValueError:
            pass
    raise ValueError(f"{typed!r} is no time: write 30s, 5m, 1h, 7d, or 2026-03-01T12:00:00Z")
