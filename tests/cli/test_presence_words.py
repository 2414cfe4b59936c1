"""Presence in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nightmail.cli.presence_words import sight_words
from nightmail.client.events import Sight
from nightmail.model.words import PresenceState

NOW = datetime(2024, 2, 1, 12, 30, tzinfo=UTC)
MS = 1_000


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        (Sight(PresenceState.ONLINE, 0), "online"),
        (Sight(PresenceState.UNAVAILABLE, 0), "last seen: unavailable"),
        (Sight(PresenceState.OFFLINE, 0), "offline"),
        (Sight(PresenceState.OFFLINE, int(NOW.timestamp() - 3_600) * MS), "last seen at 11:30"),
        (Sight(PresenceState.OFFLINE, int(NOW.timestamp() - 86_400) * MS), "last seen on 31 January 2024 at 12:30"),
    ],
)
def test_presence_is_told_in_a_few_words(sight: Sight, words: str) -> None:
    assert sight_words(sight, NOW) == words
