"""Two friends, a stranger, and their devices: for everything about presence."""

from __future__ import annotations

from hashlib import sha256

from nightmail.engine.desk import LoopDesk
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Linked, Listed
from nightmail.model.words import Platform, PresenceState
from nightmail.wire.items import (
    Foreground,
    Peek,
    PersonSeen,
    Seen,
)
from tests.gateway.rig import ADA, PHONE, Phone, Town, befriend, token_of

CAROL = account_id("carol")
CAROLS = device_id(CAROL, 1)
LAPTOP = device_id(ADA, 2)
NEVER = 0
LIFETIME_MS = 60_000
ONLINE_ADA, HIDDEN_ADA = PersonSeen(ADA, PresenceState.ONLINE, 0), PersonSeen(ADA, PresenceState.UNAVAILABLE, 0)


def offline_ada(at: int) -> PersonSeen:
    return PersonSeen(ADA, PresenceState.OFFLINE, at)


def friends(limits: PresenceLimits | None = None, desk: type[LoopDesk] = LoopDesk) -> Town:
    """Ada and Ben know each other; Carol is a stranger to both."""
    town = Town(presence=limits, make_desk=desk)
    town.register("ada", "ben", "carol")
    befriend(town)
    return town


def present(town: Town, device: int = PHONE) -> Phone:
    """A device in the foreground."""
    phone = town.connect(device)
    phone.say(Foreground(True))
    phone.take()
    return phone


def look(phone: Phone, account: int = ADA) -> PersonSeen:
    phone.say(Peek(9, (account,)))
    (seen,) = [item for item in phone.take() if isinstance(item, Seen)]
    return seen.people[0]


def with_laptop(town: Town) -> None:
    """Ada links a second device."""
    town.fold(PHONE, Linked(ADA, 8, sha256(token_of(LAPTOP)).digest(), "laptop", Platform.CLI))
    town.fold(PHONE, Listed(ADA, 2, (PHONE, LAPTOP), b""))
