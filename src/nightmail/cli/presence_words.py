"""A person's presence and a device's, in words."""

from __future__ import annotations

from datetime import datetime

from nightmail.client.events import Sight
from nightmail.model.words import PresenceState


def sight_words(sight: Sight, now: datetime | None = None) -> str:
    """In the reader's time zone. `now` is for tests."""
    if sight.state is PresenceState.ONLINE:
        return "online"
    if sight.state is PresenceState.UNAVAILABLE:
        return "last seen: unavailable"
    if not sight.last_seen:
        return "offline"
    return f"last seen {moment_words(sight.last_seen, now)}"


def moment_words(at_ms: int, now: datetime | None = None) -> str:
    now = now or datetime.now().astimezone()
    then = datetime.fromtimestamp(at_ms / 1000, now.tzinfo)
    if then.date() == now.date():
        return f"at {then:%H:%M}"
    return f"on {then.day} {then:%B %Y} at {then:%H:%M}"
