"""A group's chain: who may change what, and what a change leaves behind."""

from __future__ import annotations

import pytest

from nightmail.model.answers import GroupHead
from nightmail.model.group_notices import GroupNotice, NoticeKind
from nightmail.model.group_rows import GroupMember, MemberDevice, MemberState, RosterEntry
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import GroupMade
from nightmail.model.refusals import (
    AlreadyMember,
    AnyRefusal,
    GroupFull,
    GroupIdTaken,
    LastAdmin,
    NotGroupAdmin,
    NotMember,
    RateLimited,
    RemovesItself,
    StaleGroup,
    UnknownGroup,
    UnknownMember,
)
from nightmail.model.roster import (
    Addition,
    Departure,
    GroupChange,
    GroupSettings,
    NewMember,
    Removal,
    Role,
    RoleChange,
    SettingsChange,
)
from nightmail.model.rows import Kept
from tests.core.group_world import GROUP, GroupWorld, ascending, new_member
from tests.core.world import Person

HOUR = 3_600_000
NAMES = ("alice", "bob", "carol")


def test_everybody_that_a_creation_names_joins_with_their_devices(town: GroupWorld) -> None:
    alice, bob = town.join("alice", 2), town.join("bob")
    said = town.make(alice[1], alice, bob)
    assert said == GroupHead(town.heads[GROUP], 1, 1)
    assert town.roster() == {
        member.account: RosterEntry(
            Role.ADMIN if member.account == alice.account else Role.MEMBER, member.key, 1, MemberState.JOINED,
            town.account(alice if member.account == alice.account else bob).revision,
        )
        for member in ascending(alice, bob)
    }  # fmt: skip
    assert town.member(alice) == GroupMember(1, [], {alice[1]: MemberDevice(1), alice[2]: MemberDevice(1)})
    group = town.group()
    assert group is not None
    assert (group.joined, group.length, group.epoch, group.seq) == (2, 1, 3, 0)


def test_a_creation_that_is_repeated_is_answered_alike(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    made = town.made(alice[1], alice, bob)
    assert town.do(alice[1], made) == town.do(alice[1], made) == GroupHead(town.heads[GROUP], 1, 1)
    assert town.of(GROUP).row(Kept.CHAIN, GROUP, 1).blob == made.blob
    group = town.group()
    assert group is not None
    assert group.joined == 2


def test_another_group_under_a_taken_number_is_refused(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice)
    before = town.everything()
    assert town.do(bob[1], GroupMade(GROUP, town.made(bob[1], bob).blob)) == GroupIdTaken(GROUP)
    assert town.everything().keys() == before.keys()
    assert list(town.roster()) == [alice.account]


def test_a_change_is_announced_to_all_also_to_those_it_removes_and_to_nobody_else(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    blob = town.changed(alice[1], Removal((bob.account,))).blob
    assert town.remove(alice[1], bob) == GroupHead(town.heads[GROUP], 2, 4)
    told = GroupNotice(NoticeKind.CHANGED, alice.account, 2, blob=blob)
    assert (town.notices(alice[1])[-1], town.notices(bob[1])[-1], town.notices(carol[1])) == (told, told, [])
    assert list(town.roster()) == [alice.account]
    assert town.member(bob) == GroupMember(0, [1, 1], {bob[1]: MemberDevice(1)})
    mine = town.groups_of(bob)
    assert mine is not None
    assert mine.groups == {}


def test_a_change_that_is_repeated_is_answered_alike_and_announced_once(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    body = town.changed(alice[1], RoleChange(bob.account, Role.ADMIN))
    first, notices = town.do(alice[1], body), town.notices(bob[1])
    assert town.do(alice[1], body) == first
    assert town.notices(bob[1]) == notices


def test_of_two_admins_on_one_head_the_second_learns_where_the_chain_is(town: GroupWorld) -> None:
    alice, bob, carol, dave = (town.join(name) for name in ("alice", "bob", "carol", "dave"))
    town.make(alice[1], alice, bob)
    town.change(alice[1], RoleChange(bob.account, Role.ADMIN))
    late = town.changed(bob[1], Addition(ascending(dave)))
    town.add(alice[1], carol)
    group = town.group()
    assert group is not None
    assert town.do(bob[1], late) == StaleGroup(group.epoch, group.head, 3)
    assert dave.account not in town.roster()


def test_a_leaver_is_gone_and_its_successor_is_admin(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.change(alice[1], Departure(bob.account))
    assert {account: entry.role for account, entry in town.roster().items()} == {bob.account: Role.ADMIN}


def test_settings_are_those_of_the_newest_change(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    settings = GroupSettings(writers=Role.ADMIN, timer_ms=30_000)
    town.change(alice[1], SettingsChange(settings))
    group = town.group()
    assert group is not None
    assert group.settings == settings


ALICE, BOB, CAROL = (Person(name, account_id(name), {1: device_id(account_id(name), 1)}) for name in NAMES)
REFUSED: dict[str, tuple[Person, GroupChange, AnyRefusal]] = {
    "a stranger": (CAROL, Addition(ascending(CAROL)), NotMember(GROUP)),
    "a member who is no admin": (BOB, Addition(ascending(CAROL)), NotGroupAdmin(GROUP)),
    "adds a member": (ALICE, Addition(ascending(BOB)), AlreadyMember(GROUP)),
    "removes a stranger": (ALICE, Removal((CAROL.account,)), UnknownMember(GROUP)),
    "removes itself": (ALICE, Removal((ALICE.account,)), RemovesItself(GROUP)),
    "the last admin leaves": (ALICE, Departure(), LastAdmin(GROUP)),
}


@pytest.mark.parametrize(("by", "change", "refusal"), list(REFUSED.values()), ids=list(REFUSED))
def test_a_change_that_is_not_allowed_leaves_no_trace(
    town: GroupWorld, by: Person, change: GroupChange, refusal: AnyRefusal
) -> None:
    alice, bob, _ = [town.join(name) for name in NAMES]
    town.make(alice[1], alice, bob)
    before = town.group(), town.roster()
    assert town.change(by[1], change) == refusal
    assert (town.group(), town.roster()) == before


def test_a_group_that_nobody_made_is_unknown(town: GroupWorld) -> None:
    alice = town.join("alice")
    town.made(alice[1], alice)
    assert town.change(alice[1], Departure()) == UnknownGroup(GROUP)


def test_a_group_has_no_more_members_than_it_may(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_members=2)
    assert town.make(alice[1], alice, bob, carol) == GroupFull(2)
    assert town.group() is None
    town.make(alice[1], alice, bob)
    assert town.add(alice[1], carol) == GroupFull(2)


def test_a_device_that_the_group_does_not_know_changes_nothing(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice)
    tablet = town.link(alice, listed=False)
    assert town.add(tablet, bob) == NotMember(GROUP)


def test_changes_are_bounded_per_hour_by_time_that_has_passed(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_changes=2)
    town.make(alice[1], alice)
    town.add(alice[1], bob)
    town.wait(HOUR // 2)
    assert town.remove(alice[1], bob) == RateLimited(HOUR // 2)
    town.wait(HOUR // 2)
    assert isinstance(town.remove(alice[1], bob), GroupHead)


def test_only_the_newest_changes_are_kept(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(chain_kept=2)
    town.make(alice[1], alice)
    town.add(alice[1], bob)
    town.remove(alice[1], bob)
    kept = [town.of(GROUP).row(Kept.CHAIN, GROUP, index) is not None for index in (1, 2, 3)]
    assert kept == [False, True, True]


def test_an_account_with_another_key_is_asked_again_and_has_lost_its_role(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    town.change(alice[1], RoleChange(bob.account, Role.ADMIN))
    other = NewMember(bob.account, b"another key".ljust(32, b"."))
    assert other.key != new_member(bob).key
    assert isinstance(town.change(alice[1], Addition((other,))), GroupHead)
    entry = town.roster()[bob.account]
    assert (entry.role, entry.key, entry.ask, entry.state) == (Role.MEMBER, other.key, 3, MemberState.JOINED)
    mine = town.groups_of(bob)
    assert mine is not None
    assert mine.groups == {GROUP: 3}
