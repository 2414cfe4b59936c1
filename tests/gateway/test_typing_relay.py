"""Typing: who is told, how often, and what is dropped."""

from __future__ import annotations

import pytest

from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.gateway.typing_relay import GROUP_COST
from nightmail.model.ids import account_id
from nightmail.model.records import Blocked, Known
from nightmail.model.words import Audience
from nightmail.wire.items import (
    Foreground,
    FromDevice,
    ShowTo,
    Types,
    Typing,
)
from tests.gateway.group_rig import EVES, GROUP, GroupTown
from tests.gateway.presence_rig import CAROL, CAROLS, LAPTOP, friends, present, with_laptop
from tests.gateway.rig import ADA, BEN, PHONE, TABLET, Phone


def test_typing_is_passed_on_to_every_device_in_the_foreground_and_to_no_other() -> None:
    town = friends()
    with_laptop(town)
    ben, phone, laptop = town.connect(), present(town), town.connect(LAPTOP)
    ben.say(Typing(ADA))
    town.turn()
    first = phone.take(), laptop.take(), ben.take()
    laptop.say(Foreground(True))
    town.wait(3_000)
    ben.say(Typing(ADA))
    assert (first, phone.take(), laptop.take()) == (([Types(BEN)], [], []), [Types(BEN)], [Types(BEN)])


def test_typing_is_passed_on_once_in_three_seconds_whatever_the_connection() -> None:
    town = friends()
    with_laptop(town)
    ben, phone, laptop = present(town, TABLET), present(town), present(town, LAPTOP)
    phone.say(Typing(BEN))
    laptop.say(Typing(BEN))
    town.wait(2_980)
    phone.say(Typing(BEN))
    one = ben.take()
    town.wait(20)
    laptop.say(Typing(BEN))
    assert (one, ben.take()) == ([Types(ADA)], [Types(ADA)])


def test_an_account_that_types_to_thousands_fills_no_memory() -> None:
    town = friends()
    phone = present(town)
    phone.say(*(Typing(account) for account in range(1, 8_001, 2)))
    assert town.gateway.presence is not None
    remembered = len(town.gateway.presence.typing._said)  # pyright: ignore[reportPrivateUsage]
    assert remembered == PresenceLimits().asks_burst
    assert town.gateway.counters.typing_limited == 4_000 - remembered


def test_the_limit_on_typing_is_counted_for_each_conversation() -> None:
    town = friends()
    town.fold(CAROLS, Known(CAROL, ADA, True))
    town.fold(PHONE, Known(ADA, CAROL, True))
    ben, carol, ada = present(town, TABLET), present(town, CAROLS), town.connect(PHONE)
    ada.say(Typing(BEN), Typing(CAROL))
    town.turn()
    assert (ben.take(), carol.take()) == ([Types(ADA)], [Types(ADA)])


@pytest.mark.parametrize("why", ["a stranger", "hidden", "reader hides", "blocked", "blocks", "oneself", "nobody"])
def test_typing_is_not_passed_on(why: str) -> None:
    town = friends()
    ada, ben, carol = present(town), present(town, TABLET), present(town, CAROLS)
    says: dict[str, tuple[Phone, FromDevice]] = {
        "hidden": (ada, ShowTo(1, Audience.NOBODY)),
        "reader hides": (ben, ShowTo(1, Audience.NOBODY)),
    }
    if why in says:
        phone, item = says[why]
        phone.say(item)
    if why == "blocked":
        town.fold(TABLET, Blocked(BEN, ADA, True))
    if why == "blocks":
        town.fold(PHONE, Blocked(ADA, BEN, True))
    if why == "a stranger":
        carol.say(ShowTo(1, Audience.EVERYONE), Typing(BEN))
    else:
        ada.say(Typing({"oneself": ADA, "nobody": account_id("nobody at all")}.get(why, BEN)))
    town.turn()
    told = [item for phone in (ada, ben, carol) for item in phone.take() if isinstance(item, Types)]
    assert (told, town.gateway.counters.typing_passed) == ([], 0)


# --- in groups ------------------------------------------------------------------------------------


def a_group(limits: PresenceLimits | None = None) -> GroupTown:
    """Of Ada, Ben and Carol. Eve is no member."""
    town = GroupTown(presence=limits)
    town.make(BEN, CAROL)
    return town


def signs(phone: Phone) -> list[Types]:
    return [item for item in phone.take() if isinstance(item, Types)]


def test_typing_in_a_group_is_passed_on_to_the_other_members_who_need_not_know_each_other() -> None:
    town = a_group()
    ada, ben, carol, eve = (present(town, device) for device in (PHONE, TABLET, CAROLS, EVES))
    before = town.log.last
    ada.say(Typing(GROUP))
    told = [signs(phone) for phone in (ada, ben, carol, eve)]
    assert (told, town.log.last) == ([[], [Types(ADA, GROUP)], [Types(ADA, GROUP)], []], before)


def test_typing_in_a_group_is_passed_on_once_in_three_seconds_and_apart_from_that_to_a_member() -> None:
    town = a_group()
    town.fold(PHONE, Known(ADA, BEN, True))
    town.fold(TABLET, Known(BEN, ADA, True))
    ada, ben = present(town), present(town, TABLET)
    ada.say(Typing(GROUP), Typing(GROUP), Typing(BEN))
    first = signs(ben)
    town.wait(3_000)
    ada.say(Typing(GROUP))
    assert (first, signs(ben)) == ([Types(ADA, GROUP), Types(ADA)], [Types(ADA, GROUP)])


@pytest.mark.parametrize(
    "why",
    ["no member", "no more", "no group", "too large", "hidden", "reader hides", "blocked", "blocks", "background"],
)
def test_typing_in_a_group_is_not_passed_on(why: str) -> None:
    town = GroupTown(presence=PresenceLimits(typing_members=1 if why == "too large" else 2))
    town.make(BEN)
    ada, ben, eve = present(town), present(town, TABLET), present(town, EVES)
    match why:
        case "no more":
            town.remove(BEN)
            town.add(CAROL)
        case "hidden":
            ada.say(ShowTo(1, Audience.NOBODY))
        case "reader hides":
            ben.say(ShowTo(1, Audience.NOBODY))
        case "blocked":
            town.fold(TABLET, Blocked(BEN, ADA, True))
        case "blocks":
            town.fold(PHONE, Blocked(ADA, BEN, True))
        case "background":
            ben.say(Foreground(False))
        case _:
            pass
    (eve if why == "no member" else ada).say(Typing(GROUP + 2 if why == "no group" else GROUP))
    town.turn()
    told = [sign for phone in (ada, ben, eve) for sign in signs(phone)]
    assert (told, town.gateway.counters.typing_passed) == ([], 0)


def test_a_flood_of_typing_in_groups_is_dropped_after_a_few() -> None:
    town = a_group()
    ada = present(town)
    ada.say(*(Typing(group) for group in range(2, 2_002, 2)))
    taken = PresenceLimits().asks_burst // GROUP_COST
    assert (town.gateway.counters.typing_limited, ada.goodbye) == (1_000 - taken, None)
