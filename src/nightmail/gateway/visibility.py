"""Who may see whose presence. The one place that says it."""

from __future__ import annotations

from collections.abc import Mapping

from nightmail.engine.ports import Sighting
from nightmail.model.rows import Account, KnownAccounts
from nightmail.model.words import Audience, PresenceState
from nightmail.wire.items import PersonSeen


def may_see(
    watcher: int, watcher_audience: Audience, watched: int, audience: Audience, row: Account | None,
    known: KnownAccounts | None,
) -> bool:  # fmt: skip
    """`row` and `known` are those of the watched account. An account sees its own presence."""
    if row is None or row.closed:
        return False
    if watcher == watched:
        return True
    if watcher in row.blocked or Audience.NOBODY in (audience, watcher_audience):
        return False
    return audience is Audience.EVERYONE or knows(known, watcher)


def knows(known: KnownAccounts | None, account: int) -> bool:
    return known is not None and account in known.accounts


def person_seen(
    watcher: int, watched: int, sightings: Mapping[int, Sighting], row: Account | None, known: KnownAccounts | None
) -> PersonSeen:
    """What the watcher is told. The same of an account that does not exist as of one that hides."""
    seen = sightings[watched]
    if not may_see(watcher, sightings[watcher].audience, watched, seen.audience, row, known):
        return PersonSeen(watched, PresenceState.UNAVAILABLE, 0)
    if seen.online:
        return PersonSeen(watched, PresenceState.ONLINE, 0)
    return PersonSeen(watched, PresenceState.OFFLINE, seen.last_seen)
