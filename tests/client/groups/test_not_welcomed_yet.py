"""Between being added and being welcomed: what a device keeps, and what it learns meanwhile."""

from __future__ import annotations

import pytest

from nightmail.client.errors import ClientError
from nightmail.client.group_events import MembersDiffer
from nightmail.client.groups import waiting
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.group_rows import FanOut
from nightmail.model.ids import log_of
from nightmail.model.limits import FoldLimits
from nightmail.model.roster import Departure, GroupChange, GroupSettings, Removal, Role, RoleChange
from nightmail.model.words import Lane
from nightmail.wire.items import LogFetch
from tests.client.groups.town import a_group, a_town, add, change, texts, writes
from tests.client.town import Device, Town

LARGE = FoldLimits(group_write_members=2, group_read_members=30)


def makes_and_goes(town: Town, maker: Device, *others: Device) -> int:
    """Somebody makes a group, and is gone before anybody could be welcomed."""
    found: list[int | ClientError] = []
    accounts = [other.me.account for other in others]
    maker.machine.groups(town.now).changes.make("Friends", accounts, GroupSettings(), found.append)
    maker.look()
    while not found:
        maker.carry_up()
        maker.carry_down()
    maker.cut()
    town.settle(*others)
    assert isinstance(found[0], int), found[0]
    return found[0]


def returns_with(town: Town, device: Device, group: int, made: GroupChange) -> None:
    """Somebody connects again, and makes a change before anything else."""
    device.machine.groups(town.now).changes.change(group, lambda _: made, lambda _: None)
    device.connect()
    town.settle()


def standing(device: Device, group: int) -> GroupStanding:
    row = device.store.group(group)
    assert row is not None
    return row.standing


@pytest.mark.parametrize("limits", [LARGE, FoldLimits()], ids=["log", "mailboxes"])
def test_who_is_removed_before_the_welcome_learns_it(limits: FoldLimits) -> None:
    town, people = a_town("ada", "bob", "cleo", "dan", limits=limits)
    ada, bob = people[:2]
    group = makes_and_goes(town, *people)
    assert standing(bob, group) is GroupStanding.INVITED
    returns_with(town, ada, group, Removal((bob.me.account,)))
    assert standing(bob, group) is GroupStanding.REMOVED


def test_the_log_does_not_wait_for_somebody_who_was_never_welcomed() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan", limits=LARGE)
    ada, bob = people[:2]
    group = makes_and_goes(town, *people)
    returns_with(town, ada, group, Removal((bob.me.account,)))
    member = town.loop.state.members[group, bob.me.account]
    assert member is not None
    assert member.devices[bob.me.device].cursor == member.former[-1]


def test_what_is_written_before_the_welcome_is_shown_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "ENTRIES_MAX", 4)
    town, people = a_town("ada", "bob", "cleo", "dan", "eve", limits=LARGE)
    ada, bob, cleo, _, eve = people
    group = a_group(town, *people[:4])
    eve.cut()
    add(town, ada, group, eve)
    ada.cut()
    written = [f"message {number}" for number in range(10)]
    for text in written:
        writes(cleo, group, text)
        town.settle(bob, cleo)
    eve.connect()
    town.settle(bob, cleo, eve)
    ada.connect()
    town.settle()
    assert texts(eve, group) == written


def test_a_device_that_is_added_again_waits_for_a_welcome() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan", limits=LARGE)
    ada, bob, cleo, _ = people
    group = a_group(town, *people)
    change(town, ada, group, Removal((bob.me.account,)))
    assert standing(bob, group) is GroupStanding.REMOVED
    found: list[int | ClientError] = []
    ada.machine.groups(town.now).changes.add(group, [bob.me.account], found.append)
    ada.look()
    while not found:
        ada.carry_up()
        ada.carry_down()
    ada.cut()
    town.settle(bob, cleo)
    assert standing(bob, group) is GroupStanding.INVITED
    writes(cleo, group, "are you there?")
    town.settle(bob, cleo)
    ada.connect()
    town.settle()
    assert standing(bob, group) is GroupStanding.JOINED
    assert texts(bob, group) == ["are you there?"]


def test_a_group_that_has_no_log_is_asked_for_it_once() -> None:
    town, people = a_town("ada", "bob")
    group = a_group(town, *people)
    row = people[1].store.group(group)
    assert row is not None
    assert row.fan_out is FanOut.WRITE
    assert town.loop.state.mailboxes.there(log_of(group)).lanes[Lane.NORMAL].head == 0


def test_a_newcomer_reads_what_was_written_by_somebody_who_has_left_since() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan")
    ada, bob, cleo, dan = people
    group = a_group(town, ada, bob, cleo)
    dan.cut()
    add(town, ada, group, dan)
    writes(cleo, group, "farewell")
    town.settle()
    ada.cut()
    change(town, cleo, group, Departure())
    ada.connect()
    town.settle()
    change(town, ada, group, RoleChange(bob.me.account, Role.ADMIN))
    dan.connect()
    town.settle()
    assert texts(dan, group) == ["farewell"]
    assert dan.told(MembersDiffer) == []


def test_news_of_the_log_of_an_unknown_group_is_a_reason_to_fetch_it() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan", "eve", limits=LARGE)
    eve = people[4]
    group = a_group(town, *people[:4])
    eve.machine.groups(town.now).logs.grew(group, 3)  # to a device that was linked a moment ago
    assert standing(eve, group) is GroupStanding.INVITED
    assert [item.group for item in eve.machine.parts.context.items if isinstance(item, LogFetch)] == [group]
