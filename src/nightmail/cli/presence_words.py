"""A person's presence, in words."""

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
    now = now or datetime.now().astimezone()
    then = datetime.fromtimestamp(sight.last_seen / 1000, now.tzinfo)
    if then.date() == now.date():
        return f"last seen at {then:%H:%M}"
    return f"last seen on {then.day} {then:%B %Y} at {then:%H:%M}"
