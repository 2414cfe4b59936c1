"""Watching: who is told of whom, and how often."""

from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.desk import LoopDesk
from nightmail.gateway.watchers import SHARE, TOLD_AT_ONCE
from nightmail.gateway.wheel import SLOT_MS
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Blocked
from nightmail.model.rows import Account, KnownAccounts
from nightmail.model.words import Audience, PresenceState
from nightmail.wire.items import (
    Foreground,
    PersonSeen,
    Seen,
    ShownTo,
    ShowTo,
    Watch,
)
from tests.gateway.presence_rig import CAROL, HIDDEN_ADA, NEVER, ONLINE_ADA, friends, offline_ada, present
from tests.gateway.rig import ADA, BEN, PHONE, Phone, Town


def a_crowd(count: int) -> tuple[Town, list[Phone]]:
    """Many who watch Ada."""
    town = friends()
    names = [f"person {n}" for n in range(count)]
    town.register(*names, with_keys=False)
    ada = town.connect(PHONE)
    ada.say(ShowTo(3, Audience.EVERYONE))
    ada.session.lost()
    crowd = [town.connect(device_id(account_id(name), 1)) for name in names]
    for phone in crowd:
        phone.say(Watch(1, (ADA,)))
        phone.take()
    return town, crowd


def test_a_watcher_is_told_at_once_and_then_of_each_change() -> None:
    town = friends()
    ben, ada = town.connect(), town.connect(PHONE)
    ben.say(Watch(5, (ADA, CAROL)))
    hidden_carol = PersonSeen(CAROL, PresenceState.UNAVAILABLE, 0)
    assert ben.take() == [Seen(5, (offline_ada(NEVER), hidden_carol))]
    ada.say(Foreground(True))
    assert ben.take() == [Seen(0, (ONLINE_ADA,))]
    town.wait(2_000)
    ada.say(Foreground(False))
    assert ben.take() == [Seen(0, (offline_ada(town.clock - 2_000),))]


def test_a_watcher_is_told_no_more_than_once_a_second_and_then_what_is_true() -> None:
    town = friends()
    ben, ada = town.connect(), town.connect(PHONE)
    ben.say(Watch(5, (ADA,)))
    ben.take()
    for on in (True, False, True, False, True, False):
        ada.say(Foreground(on))
        town.wait(100)
    early = ben.take()
    town.wait(1_000)
    assert (early, ben.take()) == ([Seen(0, (ONLINE_ADA,))], [Seen(0, (offline_ada(town.clock - 1_200),))])


def test_a_watcher_hears_nothing_if_it_is_as_before_when_its_time_has_come() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    ben.say(Watch(5, (ADA,)))
    ben.take()
    ada.say(Foreground(False))
    ben.take()
    ada.say(Foreground(True), Foreground(False))
    town.wait(1_000)
    assert ben.take() == []


def live_on(town: Town, ms: int) -> None:
    """Slot by slot, as the wheel of a server turns."""
    for _ in range(ms // SLOT_MS):
        town.wait(SLOT_MS)


def test_a_thousand_watchers_of_one_account_cost_one_item_each_and_a_look_at_its_rows_for_every_few() -> None:
    asked: list[int] = []

    class CountingDesk(LoopDesk):
        def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
            asked.append(account)
            super().relations(account, then)

    town = friends(desk=CountingDesk)
    names = [f"person {n}" for n in range(1_000)]
    town.register(*names, with_keys=False)
    ada = present(town)
    ada.say(ShowTo(3, Audience.EVERYONE))
    crowd = [town.connect(device_id(account_id(name), 1)) for name in names]
    for phone in crowd:
        phone.say(Watch(1, (ADA,)))
        phone.take()
    asked.clear()
    left_at = town.clock
    ada.say(Foreground(False))
    live_on(town, 500)
    first = [phone.link.take() for phone in crowd]
    for on in (True, False, True):
        ada.say(Foreground(on))
        town.wait(20)
    live_on(town, 1_000)
    then = [phone.link.take() for phone in crowd]
    assert first == [[Seen(0, (offline_ada(left_at),))]] * 1_000
    assert (then, asked) == ([[Seen(0, (ONLINE_ADA,))]] * 1_000, [ADA] * 2 * 63)


def test_a_crowd_is_told_over_half_of_the_time_until_it_may_be_told_again() -> None:
    town, crowd = a_crowd(300)
    ada = town.connect(PHONE)
    ada.say(Foreground(True))
    told: list[int] = []
    for _ in range(20):
        town.turn()
        told.append(sum(len(phone.link.take()) for phone in crowd))
        town.wait(SLOT_MS)
    assert told[:6] == [SHARE, SHARE, SHARE, SHARE, 300 - 4 * SHARE, 0]


def test_in_one_turn_only_a_few_watchers_are_told() -> None:
    town, crowd = a_crowd(40)
    ada = town.connect(PHONE)
    ada.say(Foreground(True))
    told: list[int] = []
    while town.turn_once():
        told.append(sum(len(phone.link.take()) for phone in crowd))
    assert (sum(told), max(told)) == (40, TOLD_AT_ONCE)


def test_watchers_that_leave_while_others_are_told_cost_nobody_the_news() -> None:
    town, crowd = a_crowd(40)
    ada = town.connect(PHONE)
    ada.say(Foreground(True))
    while town.turn_once():
        for phone in crowd[:2] + crowd[-2:]:
            phone.session.lost()
        del crowd[:2], crowd[-2:]
        if len(crowd) < 30:
            break
    town.turn()
    assert [phone.link.take() for phone in crowd] == [[Seen(0, (ONLINE_ADA,))]] * len(crowd)


def test_a_new_list_replaces_the_watched_accounts_and_an_empty_one_ends_it() -> None:
    town = friends()
    ben, ada = town.connect(), town.connect(PHONE)
    ben.say(Watch(1, (ADA,)), Watch(2, (CAROL,)))
    ben.take()
    ada.say(Foreground(True))
    other = ben.take()
    ben.say(Watch(3, ()))
    assert (other, ben.take(), len(town.gateway.presence.watchers if town.gateway.presence else [1])) == (
        [], [Seen(3, ())], 0,
    )  # fmt: skip


def test_a_connection_that_ends_watches_nobody() -> None:
    town = friends()
    ben = town.connect()
    ben.say(Watch(1, (ADA,)))
    ben.session.lost()
    assert town.gateway.presence is not None
    assert len(town.gateway.presence.watchers) == 0
    present(town)


def test_a_watcher_who_hides_sees_no_more_of_those_it_watches() -> None:
    town = friends()
    ben = town.connect()
    present(town)
    ben.say(Watch(1, (ADA,)))
    ben.take()
    ben.say(ShowTo(2, Audience.NOBODY))
    assert ben.take() == [ShownTo(2, Audience.NOBODY), Seen(0, (HIDDEN_ADA,))]


def test_a_watched_account_that_hides_is_seen_no_more() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    ben.say(Watch(1, (ADA,)))
    ben.take()
    ada.say(ShowTo(2, Audience.NOBODY))
    hidden = ben.take()
    town.wait(2_000)
    ada.say(Foreground(False))
    assert (hidden, ben.take()) == ([Seen(0, (HIDDEN_ADA,))], [])


def test_a_watcher_who_is_blocked_is_told_nothing_more_from_within_half_a_minute() -> None:
    town = friends()
    ben, ada = town.connect(), present(town)
    ben.say(Watch(1, (ADA,)))
    ben.take()
    town.fold(PHONE, Blocked(ADA, BEN, True))
    town.wait(30_000)
    hidden = ben.take()
    ada.say(Foreground(False))
    assert (hidden, ben.take()) == ([Seen(0, (HIDDEN_ADA,))], [])
