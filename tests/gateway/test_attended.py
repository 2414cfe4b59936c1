"""Attending a group: who does is told when its log grows, with the entry or without, and nobody else is."""

from __future__ import annotations

from nightmail.engine.ports import Desk
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.group_questions import GroupAnswer, GroupQuestion, GrowthAsked
from nightmail.model.records import GroupAcked
from nightmail.model.words import Lane
from nightmail.wire.items import Ask, LogFetch
from tests.gateway.group_rig import (
    BEN,
    CAROL,
    CAROLS,
    GROUP,
    HYBRID,
    PHONE,
    READ,
    TABLET,
    GroupTown,
    a_group_town,
    in_short,
    logs,
)
from tests.gateway.rig import Phone


def attends(town: GroupTown, device: int, after: int = 0, group: int = GROUP) -> Phone:
    phone = town.connect(device)
    phone.say(LogFetch(1, group, after, True))
    phone.take()
    return phone


def told(phone: Phone) -> list[tuple[object, ...]]:
    return [in_short(log) for log in logs(phone.take())]


def test_an_entry_is_handed_out_as_it_comes() -> None:
    town = a_group_town()
    ben = attends(town, TABLET)
    town.say_in_group("one")
    town.say_in_group("two")
    assert told(ben) == [(0, 0, ["one"], 1), (0, 1, ["two"], 2)]


def test_the_author_hears_only_how_far_the_log_has_come() -> None:
    town = a_group_town()
    ada = attends(town, PHONE)
    town.say_in_group("one")
    assert told(ada) == [(0, 0, [], 1)]


def test_who_does_not_attend_any_longer_is_told_nothing() -> None:
    town = a_group_town()
    ben = attends(town, TABLET)
    ben.say(LogFetch(2, GROUP, 0, False))
    ben.take()
    town.say_in_group("one")
    assert told(ben) == []
    assert len(town.gateway.groups.attended) == 0


def test_a_member_that_is_removed_hears_its_end_and_nothing_behind_it() -> None:
    town = a_group_town()
    town.add(CAROL)
    ben, carol = attends(town, TABLET, 1), attends(town, CAROLS, 1)
    town.remove(BEN)
    town.say_in_group("without ben")
    assert told(ben) == [(0, 1, ["notice"], 2)]
    assert told(carol) == [(0, 1, ["notice"], 2), (0, 2, ["without ben"], 3)]
    assert set(town.gateway.groups.attended._groups[GROUP].connections) == {CAROLS}  # pyright: ignore[reportPrivateUsage]


def test_a_new_member_that_attends_is_told_of_what_comes_after_it_joined() -> None:
    town = a_group_town()
    town.say_in_group("before carol")
    ben = attends(town, TABLET, 1)
    town.add(CAROL)
    carol = town.connect(CAROLS)
    carol.say(LogFetch(1, GROUP, 0, True))
    assert told(carol) == [(1, 0, ["gap 1-2 not_member"], 2)]
    town.say_in_group("with carol")
    assert told(carol) == [(0, 2, ["with carol"], 3)]
    assert told(ben) == [(0, 1, ["notice"], 2), (0, 2, ["with carol"], 3)]


def test_of_a_very_large_group_devices_hear_now_and_then_how_far_its_log_has_come() -> None:
    town = a_group_town(READ, GroupLimits(tell_ms=1_000))
    ben = attends(town, TABLET)
    for n in range(5):
        town.say_in_group(f"text {n}")
        town.turn()
    assert told(ben) == [(0, 0, [], 1)]
    town.wait(1_100)
    assert told(ben) == [(0, 0, [], 5)]


def test_keys_go_out_before_the_news_that_needs_them() -> None:
    town = a_group_town()
    ben = attends(town, TABLET)
    town.hand_key(TABLET)
    town.say_in_group("needs the key")
    items = ben.take()
    (log,) = logs(items)
    (key,) = [item for item in items if getattr(item, "lane", None) is Lane.HIGH]
    assert items.index(key) < items.index(log)


def test_a_device_that_does_not_keep_up_hears_only_how_far_the_log_has_come() -> None:
    town = GroupTown(HYBRID, limits=GatewayLimits(unsent_bytes=10))
    town.make(BEN)
    ben = attends(town, TABLET)
    ben.link.unsent_bytes = 100
    for n in range(20):
        town.say_in_group(f"text {n}")
    assert told(ben) == []
    ben.link.unsent_bytes = 0
    ben.session.wake()
    assert told(ben) == [(0, 0, ["text 0"], 1), (0, 0, [], 20)]


def test_more_entries_at_once_than_news_may_carry_are_fetched() -> None:
    town = a_group_town(groups=GroupLimits(push_entries=2))
    ben = attends(town, TABLET)
    attended = town.gateway.groups.attended._groups[GROUP]  # pyright: ignore[reportPrivateUsage]
    attended.is_asking = True
    for n in range(3):
        town.say_in_group(f"text {n}")
    attended.is_asking = False
    town.gateway.groups.attended.grew(GROUP)
    assert told(ben) == [(0, 0, [], 3)]


def test_one_connection_attends_no_more_groups_than_it_may() -> None:
    town = GroupTown(HYBRID, GroupLimits(attended=2))
    groups = [GROUP + 2 * n for n in range(4)]
    for group in groups:
        town.make(BEN, group=group)
    ben = town.connect(TABLET)
    ben.say(*(LogFetch(ref, group, 0, True) for ref, group in enumerate(groups, 1)))
    assert [log.ref for log in logs(ben.take())] == [1, 2, 3, 4]
    assert len(town.gateway.groups.attended) == 2


def test_attending_groups_that_one_is_not_in_leaves_nothing_behind() -> None:
    town = a_group_town(groups=GroupLimits(asks_burst=10_000, waiting=10_000))
    carol = town.connect(CAROLS)
    for first in range(0, 4_000, 1_000):
        carol.say(*(LogFetch(1 + n, GROUP + 2 * n, 0, True) for n in range(first, first + 1_000)))
        town.wait(1_100)
    assert logs(carol.take()) == []
    assert (len(town.gateway.groups.attended), carol.link.closed) == (0, None)


def test_what_grew_while_the_log_was_read_is_told() -> None:
    """The growth comes between the reading of the log and the beginning of the attendance."""
    town = GroupTown(HYBRID)
    town.make(BEN)
    ben = town.connect(TABLET)
    ask, asked = town.desk.about_group, list[GroupQuestion]()

    def late(question: GroupQuestion, then: object) -> None:
        def shown(answer: GroupAnswer) -> None:
            if not isinstance(question, GrowthAsked):
                town.say_in_group("meanwhile")
            asked.append(question)
            then(answer)  # type: ignore[operator]

        ask(question, shown)

    town.desk.about_group = late  # type: ignore[method-assign]
    ben.say(LogFetch(1, GROUP, 0, True))
    assert told(ben) == [(1, 0, [], 0), (0, 0, ["meanwhile"], 1)]
    assert [type(question).__name__ for question in asked] == ["LogAsked", "GrowthAsked"]


def test_an_entry_is_encoded_once_for_all_who_attend() -> None:
    town = a_group_town()
    town.add(CAROL)
    ben, carol = attends(town, TABLET, 1), attends(town, CAROLS, 1)
    items: list[object] = []
    for phone in (ben, carol):
        phone.link.unsent_bytes = 1 << 20
    town.say_in_group("one")
    for phone in (ben, carol):
        connection = phone.session._groups  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        items += [item for _, item, _ in connection._held]  # pyright: ignore[reportPrivateUsage]
    assert len(items) == 2
    assert items[0] is items[1]


def test_an_acknowledged_log_brings_nothing_twice() -> None:
    town = a_group_town()
    ben = attends(town, TABLET)
    town.say_in_group("one")
    assert told(ben) == [(0, 0, ["one"], 1)]
    ben.say(Ask(2, GroupAcked(GROUP, 1)), LogFetch(3, GROUP, 1, True))
    assert told(ben) == [(3, 1, [], 1)]


def test_the_desk_is_told_when_the_first_attends_and_when_the_last_goes() -> None:
    heard: list[tuple[int, bool]] = []

    def wrap(desk: Desk) -> Desk:
        def attend_group(group: int, *, here: bool) -> None:
            heard.append((group, here))

        desk.attend_group = attend_group  # type: ignore[method-assign]
        return desk

    town = GroupTown(HYBRID, wrap=wrap)
    town.make(BEN)
    ben, ada = attends(town, TABLET), attends(town, PHONE)
    ben.session.lost()
    assert heard == [(GROUP, True)]
    ada.session.lost()
    assert heard == [(GROUP, True), (GROUP, False)]
