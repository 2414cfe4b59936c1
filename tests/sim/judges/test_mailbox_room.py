from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.model.ids import account_id, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.words import Lane
from sim.judges.history import Message
from sim.judges.mailbox_room import check_failed, check_refused, had_room
from sim.world.town import Town
from sim.world.world import World

ADA, BOB = account_id("ada"), account_id("bob")
PHONE, TABLET = device_id(ADA, 1), device_id(BOB, 1)
LIMIT = 3


class Street:
    """Ada writes to Bob, whose mailbox has room for three."""

    def __init__(self) -> None:
        self.world = World(1)
        self.town = Town(self.world, "node", 2)
        self.town.limits = self.town.limits._replace(fold=FoldLimits(mailbox_entries=LIMIT))
        self.history = self.town.history
        self.sent = [self.write(n) for n in range(1, LIMIT + 2)]

    def write(self, n: int, lane: Lane = Lane.NORMAL) -> Message:
        message = Message(f"{lane}/{n}", PHONE, BOB, lane, n, None, 0, sealed_at=self.world.now)
        self.history.add(message)
        self.history.sealed_for.setdefault(TABLET, {})[message.id] = message
        return message

    def arrives(self, nth: int, seq: int) -> None:
        self.history.of(TABLET).arrived[self.sent[nth].key] = seq

    def pass_time(self) -> int:
        self.world.run_until(self.world.now + 10)
        return self.world.now


@pytest.fixture
def street() -> Street:
    return Street()


def test_as_many_as_have_room_may_wait_so_that_the_next_may_be_refused(street: Street) -> None:
    *_, last = street.sent
    now = street.pass_time()
    assert check_refused(street.town, last, [TABLET], now) is None
    assert check_failed(street.town, last, TABLET) is None


def test_what_stands_behind_in_its_own_stream_does_not_wait_yet(street: Street) -> None:
    third = street.sent[LIMIT - 1]
    broken = check_refused(street.town, third, [TABLET], street.pass_time())
    assert broken is not None
    assert broken.promise == "who has room gets it"
    assert check_failed(street.town, third, TABLET) is not None


def test_what_somebody_was_told_to_be_delivered_has_made_room_with_all_before_it(street: Street) -> None:
    *_, last = street.sent
    street.write(1, Lane.HIGH)
    street.arrives(0, 1)
    street.arrives(1, 2)
    told = street.pass_time()
    street.history.delivered(street.sent[1].key, TABLET)
    assert not had_room(street.town, TABLET, told, last)  # It was asked before anybody knew.
    assert had_room(street.town, TABLET, street.pass_time(), last)
    street.history.attacks[TABLET] += 1
    assert not had_room(street.town, TABLET, street.pass_time(), last)


def test_where_bytes_fill_a_mailbox_nothing_is_judged(street: Street) -> None:
    assert had_room(street.town, TABLET, street.pass_time(), street.sent[0])
    street.town.limits = street.town.limits._replace(fold=replace(street.town.limits.fold, mailbox_bytes=200))
    assert not had_room(street.town, TABLET, street.pass_time(), street.sent[0])
