"""What members' shards say about their accounts, and which of it comes too late."""

from __future__ import annotations

from nightmail.model.group_notices import GroupNotice, NoticeKind
from nightmail.model.group_rows import GroupMember, MemberDevice, MemberState
from nightmail.model.ids import SERVER
from nightmail.model.records import Blocked, Closed, Registered, Unlinked
from nightmail.model.words import Platform
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import Person


def epoch(town: GroupWorld) -> int:
    group = town.group()
    assert group is not None
    return group.epoch


def state(town: GroupWorld, person: Person) -> MemberState:
    return town.roster()[person.account].state


def test_a_join_is_told_to_who_joined_and_to_who_added(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.add(alice[1], carol)
    joined = GroupNotice(NoticeKind.JOINED, carol.account, 2, since=2)
    assert town.notices(carol[1]) == [joined]
    assert town.notices(alice[1])[-1] == joined
    assert joined not in town.notices(bob[1])


def test_a_blocked_adder_is_refused_and_everybody_is_told_so_without_a_reason(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.do(carol[1], Blocked(carol.account, alice.account, on=True))
    town.add(alice[1], carol)
    assert state(town, carol) is MemberState.REFUSED
    refused = GroupNotice(NoticeKind.REFUSED, carol.account, 2)
    assert (town.notices(alice[1])[-1], town.notices(bob[1])[-1], town.notices(carol[1])) == (refused, refused, [])
    town.write(alice[1], text="without carol")
    assert (town.messages(bob[1]), town.messages(carol[1])) == (["without carol"], [])


def test_an_answer_that_comes_after_the_removal_changes_nothing() -> None:
    town = GroupWorld(256)
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice)
    town.carries = False
    town.add(alice[1], bob)
    town.remove(alice[1], bob)
    town.carries = True
    town.write(alice[1])
    assert list(town.roster()) == [alice.account]
    assert town.member(bob) is None
    mine = town.groups_of(bob)
    assert mine is not None
    assert mine.groups == {}


def test_of_two_additions_only_the_answer_to_the_second_counts() -> None:
    town = GroupWorld(256)
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice)
    town.carries = False
    town.add(alice[1], bob)
    town.remove(alice[1], bob)
    town.add(alice[1], bob)
    town.carries = True
    town.write(alice[1], epoch=0)
    entry, mine = town.roster()[bob.account], town.groups_of(bob)
    assert mine is not None
    assert (entry.ask, entry.state, mine.groups) == (4, MemberState.JOINED, {GROUP: 4})
    group = town.group()
    assert group is not None
    assert group.joined == 2


def test_a_new_device_is_known_and_moves_the_epoch(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    before = epoch(town)
    town.write(alice[1])
    tablet = town.link(bob)
    assert town.member(bob) == GroupMember(1, [], {bob[1]: MemberDevice(1), tablet: MemberDevice(2, cursor=1)})
    assert epoch(town) == before + 1
    assert town.roster()[bob.account].revision == town.account(bob).revision


def test_an_unlinked_device_is_forgotten_and_moves_the_epoch_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    before = epoch(town)
    town.do(bob[1], Unlinked(bob[2]))
    assert town.member(bob) == GroupMember(1, [], {bob[1]: MemberDevice(1)})
    assert epoch(town) == before + 1


def test_a_list_that_removes_a_device_moves_the_epoch_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    before = epoch(town)
    town.list_devices(bob[1], bob, (bob[1],))
    assert epoch(town) == before + 1


def test_a_member_who_closes_the_account_is_addressed_no_more(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.do(bob[1], Closed(bob.account))
    assert state(town, bob) is MemberState.CLOSED
    assert town.notices(alice[1])[-1] == GroupNotice(NoticeKind.CLOSED, bob.account, 1)
    group = town.group()
    assert group is not None
    assert group.joined == 1


def test_an_account_that_registers_again_is_suspended_until_an_admin_adds_it_again(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.do(SERVER, Registered(bob.account, "bob", 7, b"another", "phone", Platform.CLI, verified=True))
    assert state(town, bob) is MemberState.SUSPENDED
    assert town.notices(alice[1])[-1] == GroupNotice(NoticeKind.SUSPENDED, bob.account, 1)
    town.write(alice[1], text="not for bob")
    town.remove(alice[1], bob)
    town.add(alice[1], bob)
    assert state(town, bob) is MemberState.JOINED
    town.write(alice[1], 2, text="for bob")
    (device,) = town.account(bob).listed
    assert town.messages(device) == ["for bob"]


def test_coming_back_keeps_the_memberships_before(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    town.remove(alice[1], bob)
    town.write(alice[1], 2)
    town.add(alice[1], bob)
    assert town.member(bob) == GroupMember(5, [1, 2], {bob[1]: MemberDevice(1)})
