"""An account's groups: may it be added, and when do they hear of its devices?"""

from __future__ import annotations

from nightmail.model.group_rows import AccountGroups, MemberState
from nightmail.model.records import Closed, Unlinked
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START

HOUR = 3_600_000


def test_an_account_is_in_no_more_groups_than_it_may(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(account_groups=1)
    town.make(bob[1], bob, group=GROUP + 2)
    town.make(alice[1], alice, bob)
    assert town.roster()[bob.account].state is MemberState.REFUSED
    mine = town.groups_of(bob)
    assert mine is not None
    assert mine.groups == {GROUP + 2: 1}


def test_an_account_that_is_closed_or_was_never_there_does_not_join(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.do(bob[1], Closed(bob.account))
    town.make(alice[1], alice, bob)
    assert town.roster()[bob.account].state is MemberState.REFUSED


def test_a_device_that_is_linked_but_not_listed_is_no_news(town: GroupWorld) -> None:
    alice = town.join("alice")
    town.make(alice[1], alice)
    before = town.group()
    tablet = town.link(alice, listed=False)
    town.do(alice[1], Unlinked(tablet))
    assert town.group() == before


def test_beyond_its_bound_a_relisting_waits_for_the_end_of_the_hour_and_is_told_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(relistings=1)
    town.make(alice[1], alice, bob)
    first = town.link(bob)
    group = town.group()
    assert group is not None
    second, third = town.link(bob), town.link(bob)
    town.do(bob[1], Unlinked(second))
    assert town.group() == group
    assert town.groups_of(bob) == AccountGroups({GROUP: 1}, 2, (START, 1), waits=True)
    town.wait(HOUR)
    after, member = town.group(), town.member(bob)
    assert after is not None
    assert member is not None
    assert (after.epoch, list(member.devices)) == (group.epoch + 1, [bob[1], first, third])
    assert town.groups_of(bob) == AccountGroups({GROUP: 1}, 5, (START + HOUR, 1))


def test_an_account_that_ends_is_told_at_once_however_often_it_was_relisted(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(relistings=1)
    town.make(alice[1], alice, bob)
    town.link(bob)
    town.link(bob)
    town.do(bob[1], Closed(bob.account))
    assert town.roster()[bob.account].state is MemberState.CLOSED
