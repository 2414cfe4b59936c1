"""Presence and typing, from connection to connection."""

from __future__ import annotations

import pytest

from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.model.ids import account_id
from nightmail.model.records import Blocked, Closed, Unlinked
from nightmail.model.refusals import Malformed, NotYet, RateLimited, Unavailable
from nightmail.model.words import Audience, PresenceState
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import (
    GROUP_ITEMS,
    Answered,
    Foreground,
    FromDevice,
    Goodbye,
    Peek,
    PersonSeen,
    Ping,
    Pong,
    ShownTo,
    ShowTo,
    Typing,
    Watch,
    Welcome,
)
from tests.gateway.presence_rig import (
    CAROLS,
    HIDDEN_ADA,
    LAPTOP,
    LIFETIME_MS,
    NEVER,
    ONLINE_ADA,
    friends,
    look,
    offline_ada,
    present,
    with_laptop,
)
from tests.gateway.rig import ADA, BEN, PHONE, Town, a_town

# --- online, and last seen -----------------------------------------------------------------------


def test_an_account_is_online_while_a_device_is_in_the_foreground_and_then_last_seen_at_its_last_heartbeat() -> None:
    town = friends()
    ben, ada = town.connect(), town.connect(PHONE)
    found = [look(ben)]
    ada.say(Foreground(True))
    found.append(look(ben))
    town.wait(30_000)
    ada.say(Ping(1))
    beat = town.clock
    town.wait(1_000)
    ada.say(Foreground(False))
    found.append(look(ben))
    assert found == [offline_ada(NEVER), ONLINE_ADA, offline_ada(beat)]


def test_a_device_in_the_background_counts_for_nothing_however_often_it_is_heard() -> None:
    town = friends()
    ben, ada = town.connect(), town.connect(PHONE)
    ada.say(Ping(1))
    first = look(ben)
    ada.say(Foreground(True), Foreground(False), Ping(2))
    assert (first, look(ben)) == (offline_ada(NEVER), offline_ada(town.clock))


def test_a_connection_that_ends_is_offline_at_once() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    ada.session.lost()
    assert look(ben) == offline_ada(town.clock)


def test_a_device_that_is_not_heard_for_its_lifetime_is_offline_although_it_is_connected() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    beat = town.clock
    town.wait(LIFETIME_MS - 20)
    ben.say(Ping(1))
    before = look(ben)
    town.wait(20)
    assert (before, look(ben), ada.link.closed) == (ONLINE_ADA, offline_ada(beat), None)


def test_an_account_stays_online_until_its_last_device_leaves() -> None:
    town = friends()
    with_laptop(town)
    ben, phone, laptop = town.connect(), present(town), present(town, LAPTOP)
    phone.session.lost()
    one_left = look(ben)
    laptop.session.lost()
    assert (one_left, look(ben)) == (ONLINE_ADA, offline_ada(town.clock))


def test_a_newer_connection_of_a_device_begins_in_the_background() -> None:
    town = friends()
    ben = town.connect()
    present(town)
    town.connect(PHONE)
    assert look(ben) == offline_ada(town.clock)


# --- who may see it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("audience", "seen_by_ben", "seen_by_carol"),
    [
        (Audience.EVERYONE, ONLINE_ADA, ONLINE_ADA),
        (Audience.CONTACTS, ONLINE_ADA, HIDDEN_ADA),
        (Audience.NOBODY, HIDDEN_ADA, HIDDEN_ADA),
    ],
)
def test_presence_is_shown_to_those_whom_the_account_chose(
    audience: Audience, seen_by_ben: PersonSeen, seen_by_carol: PersonSeen
) -> None:
    town = friends()
    ada = present(town)
    ada.say(ShowTo(3, audience), ShowTo(4, None))
    assert ada.take() == [ShownTo(3, audience), ShownTo(4, audience)]
    assert (look(town.connect()), look(town.connect(CAROLS))) == (seen_by_ben, seen_by_carol)


def test_who_has_not_chosen_is_shown_to_contacts() -> None:
    town = friends()
    ada = present(town)
    ada.say(ShowTo(3, None))
    assert ada.take() == [ShownTo(3, Audience.CONTACTS)]
    assert (look(town.connect()), look(town.connect(CAROLS))) == (ONLINE_ADA, HIDDEN_ADA)


def test_who_hides_sees_nobody() -> None:
    town = friends()
    present(town)
    ben = town.connect()
    ben.say(ShowTo(3, Audience.NOBODY))
    ben.take()
    assert look(ben) == HIDDEN_ADA


def test_a_blocked_account_sees_nothing_not_even_of_somebody_who_shows_it_to_everyone() -> None:
    town = friends()
    present(town).say(ShowTo(3, Audience.EVERYONE))
    town.fold(PHONE, Blocked(ADA, BEN, True))
    assert look(town.connect()) == HIDDEN_ADA


def test_an_account_that_does_not_exist_answers_like_one_that_hides() -> None:
    town = friends()
    nobody = account_id("nobody at all")
    assert look(town.connect(), nobody) == PersonSeen(nobody, PresenceState.UNAVAILABLE, 0)


def test_a_closed_account_is_seen_by_nobody_and_nothing_of_it_stays_stored() -> None:
    town = friends()
    ada = present(town)
    ada.say(ShowTo(3, Audience.EVERYONE))
    town.wait(10_000)
    before = set(town.presence_file.read([ADA]))
    town.fold(PHONE, Closed(ADA))
    town.turn()
    assert (before, town.presence_file.read([ADA]), look(town.connect())) == ({ADA}, {}, HIDDEN_ADA)


def test_a_revoked_device_goes_and_its_accounts_choice_stays() -> None:
    town = friends()
    with_laptop(town)
    present(town, LAPTOP).say(ShowTo(3, Audience.EVERYONE))
    town.fold(PHONE, Unlinked(LAPTOP))
    town.turn()
    assert look(town.connect(CAROLS)) == offline_ada(town.clock)


def test_nothing_of_presence_is_in_the_log() -> None:
    town = friends()
    ada, ben = town.connect(PHONE), town.connect()
    before = town.log.last
    ben.say(Watch(1, (ADA,)), Peek(2, (ADA,)))
    ada.say(Foreground(True), Typing(BEN), ShowTo(1, Audience.EVERYONE), Ping(1), Foreground(False))
    town.wait(120_000)
    assert town.log.last == before


# --- bad input -----------------------------------------------------------------------------------

MANY = tuple(range(1, 102))


@pytest.mark.parametrize(
    ("item", "refusal"),
    [
        (Watch(1, MANY[:33]), Malformed("at most 32 accounts at once")),
        (Peek(1, MANY), Malformed("at most 100 accounts at once")),
        (Watch(1, (0,)), Malformed("no such account")),
        (Peek(1, (1 << 49,)), Malformed("no such account")),
    ],
)
def test_a_question_out_of_bounds_is_refused_under_its_ref(item: FromDevice, refusal: Malformed) -> None:
    town = friends()
    ben = town.connect()
    ben.say(item)
    assert ben.take() == [Answered(1, refusal)]


@pytest.mark.parametrize(
    "item", [Watch(0, MANY), Peek(-1, (ADA,)), ShowTo(1 << 24, None), Typing(0), Typing(1 << 49)], ids=str
)
def test_what_cannot_be_answered_ends_the_connection(item: FromDevice) -> None:
    town = friends()
    ben = town.connect()
    ben.say(item)
    assert (ben.goodbye or Goodbye(0, "", 0)).code == CloseCode.MALFORMED


def test_an_account_that_asks_too_much_is_told_when_to_ask_again_on_whatever_connection() -> None:
    town = friends(PresenceLimits(asks_per_s=10, asks_burst=100))
    with_laptop(town)
    phone, laptop = town.connect(PHONE), town.connect(LAPTOP)
    phone.say(Peek(1, MANY[:100]))
    phone.take()
    laptop.say(Peek(1, MANY[:10]), Watch(2, (BEN,)), Peek(0, (BEN,)))
    assert laptop.take() == [Answered(1, RateLimited(1_001)), Answered(2, RateLimited(101))]
    town.wait(1_000)
    assert look(laptop, BEN) == PersonSeen(BEN, PresenceState.OFFLINE, 0)


def test_a_choice_that_cannot_be_stored_is_not_confirmed() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    ben.say(Watch(1, (ADA,)))
    ben.take()
    town.presence_file.close()
    ada.say(ShowTo(7, Audience.NOBODY))
    assert (ada.take(), ben.take()) == ([Answered(7, Unavailable())], [])


# --- who is not asked ----------------------------------------------------------------------------


def test_a_device_that_says_nothing_of_presence_hears_nothing_of_it() -> None:
    town = friends()
    older = town.connect()
    ada = present(town)
    ada.say(Typing(BEN))
    town.wait(5_000)
    older.say(Ping(1))
    assert older.take() == [Pong(1, town.clock)]


def test_a_server_without_presence_has_groups_and_refuses_questions_about_presence() -> None:
    town = a_town()
    town.gateway.presence = None
    ben = town.stranger()
    ben.hello()
    (welcome,) = [item for item in ben.take() if isinstance(item, Welcome)]
    ben.say(Foreground(True), Typing(ADA), Watch(7, (ADA,)))
    assert (welcome.items, ben.take(), ben.goodbye) == (GROUP_ITEMS, [Answered(7, NotYet())], None)


def test_a_server_with_presence_and_groups_says_so() -> None:
    town = friends()
    ben = town.stranger()
    ben.hello()
    (welcome,) = [item for item in ben.take() if isinstance(item, Welcome)]
    assert welcome.items == GROUP_ITEMS


# --- devices --------------------------------------------------------------------------------------


def devices_seen(town: Town, *devices: int) -> object:
    found: list[object] = []
    town.presence.devices_seen(devices, found.append)
    return found[0]


def test_a_device_is_last_seen_when_it_was_last_heard_in_the_background_too() -> None:
    town = friends()
    ada = town.connect(PHONE)
    found, times = [devices_seen(town, PHONE)], [town.clock]
    town.wait(20_000)
    ada.say(Ping(1))
    times.append(town.clock)
    town.wait(5_000)
    ada.session.lost()
    found.append(devices_seen(town, PHONE))
    assert found == [{PHONE: at} for at in times]


def test_a_device_that_is_revoked_is_not_seen_any_more() -> None:
    town = friends()
    with_laptop(town)
    town.connect(LAPTOP)
    before = devices_seen(town, LAPTOP)
    town.fold(PHONE, Unlinked(LAPTOP))
    town.turn()
    assert (before, devices_seen(town, LAPTOP)) == ({LAPTOP: town.clock}, {})
