from __future__ import annotations

import pytest

from nightmail.e2ee import lists
from nightmail.e2ee.curves import sign
from nightmail.e2ee.errors import BadEncoding, ChainBroken, GroupRefused, UnknownVersion
from nightmail.e2ee.groups.chain import GroupWelcome, Membership, begin, begin_welcomed, follow, sign_change
from nightmail.e2ee.labels import Label
from nightmail.model.group_chain import SIGNATURE_BYTES, head_of
from nightmail.model.roster import (
    Addition,
    ChangeFault,
    Departure,
    GroupSettings,
    Member,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
    changed,
)
from tests.e2ee.devices import Device
from tests.e2ee.group_people import GROUP, People, Person, Trio, added, change_by, creation


def test_a_group_begins_with_its_creator_as_admin() -> None:
    trio = Trio()
    people = (trio.ada, trio.bob, trio.cyd)
    assert trio.known.genesis == trio.known.head
    assert trio.known.roster == Roster(
        GroupSettings(),
        {p.account: Member(p.account, p.key, Role.ADMIN if p is trio.ada else Role.MEMBER) for p in people},
    )


def test_every_kind_of_change_is_followed_by_everybody() -> None:
    trio = Trio()
    slow = GroupSettings(writers=Role.ADMIN, timer_ms=30_000)
    for person, change in (
        (trio.ada, RoleChange(trio.bob.account, Role.ADMIN)),
        (trio.bob, Addition((trio.eve.new,))),
        (trio.bob, SettingsChange(slow)),
        (trio.ada, Departure()),
        (trio.bob, Removal((trio.eve.account,))),
    ):
        assert trio.does(person, change).fault is None
    members = {
        trio.bob.account: Member(*trio.bob.new, Role.ADMIN),
        trio.cyd.account: Member(*trio.cyd.new, Role.MEMBER),
    }
    assert trio.known.roster == Roster(slow, members)


def test_the_head_is_the_hash_of_the_whole_change_with_its_signature() -> None:
    trio = Trio()
    blob = added(trio.ada, trio.known, trio.eve)
    resigned = blob[:-1] + bytes((blob[-1] ^ 1,))
    assert trio.follow(blob).membership.head == head_of(blob)
    assert head_of(blob) != head_of(resigned)


def test_a_change_that_this_device_may_not_make_is_not_even_signed() -> None:
    trio = Trio()
    bob = trio.bob
    fault = sign_change(bob.device.keys.identity, bob.address, trio.known, Addition((trio.eve.new,)))
    assert fault is ChangeFault.NOT_AN_ADMIN


# --- an evil server ---------------------------------------------------------------------------


def test_a_member_that_the_server_invents_is_none_and_the_chain_goes_on_over_it() -> None:
    trio = Trio()
    after = changed(trio.known.roster, trio.ada.account, Addition((trio.eve.new,)))
    assert isinstance(after, Roster)
    claimed = Membership(GROUP, trio.known.genesis, trio.known.head, after)
    invented = trio.forged(trio.ada, Addition((trio.eve.new,)), roster=claimed)
    body = invented[:-SIGNATURE_BYTES]
    forged = body + sign(trio.eve.device.keys.identity.signing, Label.GROUP_CHANGE, body)
    followed = trio.follow(forged)
    assert followed.fault is ChangeFault.BAD_SIGNATURE
    assert followed.membership == Membership(GROUP, trio.known.genesis, head_of(forged), trio.known.roster)
    # The next change is made by somebody who saw the same.
    trio.known = followed.membership
    assert trio.does(trio.ada, Removal((trio.bob.account,))).fault is None
    assert trio.eve.account not in trio.known.roster.members


def test_a_signature_made_for_something_else_is_none_for_a_change() -> None:
    trio = Trio()
    body = added(trio.ada, trio.known, trio.eve)[:-SIGNATURE_BYTES]
    wrong = body + sign(trio.ada.device.keys.identity.signing, Label.DEVICE_LIST, body)
    assert trio.follow(wrong).fault is ChangeFault.BAD_SIGNATURE


def test_a_change_of_a_device_that_no_list_names_is_refused() -> None:
    trio = Trio()
    blob = added(trio.ada, trio.known, trio.eve)
    laptop = Device("ada", 2, stock=0)
    trio.ada.list = lists.sign_list(
        trio.ada.device.keys.account, trio.ada.account, 9, {laptop.keys.address: laptop.keys.identity.public}
    )
    assert trio.follow(blob).fault is ChangeFault.SIGNER_UNKNOWN


def test_an_account_that_registered_again_acts_as_nobody_until_an_admin_adds_its_new_key() -> None:
    trio = Trio()
    thief = Person("eve")
    # Somebody took over Ada's number: the server hands out a list under another account key.
    device = trio.ada.device
    trio.ada.list = lists.sign_list(
        thief.device.keys.account, trio.ada.account, 1, {device.keys.address: device.keys.identity.public}
    )
    followed = trio.follow(added(trio.ada, trio.known, trio.eve))
    assert (followed.fault, followed.membership.roster) == (ChangeFault.OTHER_ACCOUNT_KEY, trio.known.roster)


def test_a_change_that_is_dropped_or_comes_twice_breaks_the_chain_visibly() -> None:
    trio = Trio()
    start = trio.known
    first = added(trio.ada, start, trio.eve)
    trio.known = trio.follow(first).membership
    second = change_by(trio.ada, trio.known, Removal((trio.eve.account,)))
    with pytest.raises(ChainBroken):
        follow(start, second, trio.people.lookup)
    with pytest.raises(ChainBroken):
        trio.follow(first)
    assert trio.follow(second).fault is None


def test_a_fork_shows_two_halves_two_heads_and_neither_can_follow_the_other() -> None:
    trio = Trio()
    left = trio.follow(added(trio.ada, trio.known, trio.eve)).membership
    right = trio.follow(change_by(trio.ada, trio.known, Removal((trio.bob.account,)))).membership
    assert left.head != right.head
    with pytest.raises(ChainBroken):
        follow(right, change_by(trio.ada, left, Departure(trio.cyd.account)), trio.people.lookup)


def test_a_change_of_another_group_is_refused() -> None:
    trio = Trio()
    other = Membership(GROUP + 2, trio.known.genesis, trio.known.head, trio.known.roster)
    with pytest.raises(ChainBroken):
        trio.follow(added(trio.ada, other, trio.eve))


def test_a_change_whose_author_saw_other_members_is_refused() -> None:
    trio = Trio()
    followed = trio.follow(trio.forged(trio.ada, Addition((trio.eve.new,))))
    assert (followed.fault, followed.membership.roster) == (ChangeFault.ROSTER_DIFFERS, trio.known.roster)


def test_a_member_without_the_right_is_refused_by_everybody_whatever_the_server_takes() -> None:
    trio = Trio()
    for person, change, fault in (
        (trio.bob, Addition((trio.eve.new,)), ChangeFault.NOT_AN_ADMIN),
        (trio.bob, Removal((trio.ada.account,)), ChangeFault.NOT_AN_ADMIN),
        (trio.bob, RoleChange(trio.bob.account, Role.ADMIN), ChangeFault.NOT_AN_ADMIN),
        (trio.eve, Departure(), ChangeFault.NOT_A_MEMBER),
        (trio.ada, Departure(), ChangeFault.LAST_ADMIN),
    ):
        followed = trio.follow(trio.forged(person, change))
        assert (followed.fault, followed.membership.roster) == (fault, trio.known.roster)


def test_bytes_of_no_known_form_move_nothing() -> None:
    trio = Trio()
    blob = added(trio.ada, trio.known, trio.eve)
    for wrong in (b"", blob[:-1], blob + b"\0"):
        with pytest.raises(BadEncoding):
            trio.follow(wrong)
    with pytest.raises(UnknownVersion):
        trio.follow(b"\2" + blob[1:])


# --- where a device begins --------------------------------------------------------------------


def test_a_group_that_nobody_signed_does_not_begin() -> None:
    ada, bob, eve = Person("ada"), Person("bob"), Person("eve")
    people = People(ada, bob, eve)
    blob = creation(ada, bob)
    body = blob[:-SIGNATURE_BYTES]
    forged = body + sign(eve.device.keys.identity.signing, Label.GROUP_CHANGE, body)
    with pytest.raises(GroupRefused, match="bad signature"):
        begin(GROUP, forged, people.lookup)
    with pytest.raises(GroupRefused, match="not its creation"):
        begin(GROUP + 2, blob, people.lookup)
    with pytest.raises(GroupRefused, match="not its creation"):
        begin(GROUP, added(ada, begin(GROUP, blob, people.lookup), eve), people.lookup)


def test_a_newcomer_begins_at_its_welcome_and_follows_from_there() -> None:
    trio = Trio()
    trio.does(trio.ada, Addition((trio.eve.new,)))
    welcome = GroupWelcome.of(trio.known)
    assert GroupWelcome.decode(welcome.encode()) == welcome
    newcomer = begin_welcomed(GroupWelcome.decode(welcome.encode()), trio.known.roster)
    blob = change_by(trio.ada, trio.known, Removal((trio.bob.account,)))
    assert newcomer == trio.known
    assert follow(newcomer, blob, trio.people.lookup).membership == trio.follow(blob).membership


def test_members_that_are_not_those_of_the_welcome_are_refused() -> None:
    trio = Trio()
    welcome = GroupWelcome.of(trio.known)
    members = trio.known.roster.members
    more = members | {trio.eve.account: Member(*trio.eve.new, Role.MEMBER)}
    raised = members | {trio.bob.account: members[trio.bob.account]._replace(role=Role.ADMIN)}
    rekeyed = members | {trio.bob.account: members[trio.bob.account]._replace(key=trio.eve.key)}
    for wrong in (
        Roster(GroupSettings(), more),
        Roster(GroupSettings(), raised),
        Roster(GroupSettings(), rekeyed),
        Roster(GroupSettings(timer_ms=30_000), members),
    ):
        with pytest.raises(GroupRefused, match="not those of the welcome"):
            begin_welcomed(welcome, wrong)


def test_bytes_of_no_known_form_are_no_welcome() -> None:
    data = GroupWelcome.of(Trio().known).encode()
    assert len(data) == 105
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(BadEncoding):
            GroupWelcome.decode(wrong)
    with pytest.raises(UnknownVersion):
        GroupWelcome.decode(b"\2" + data[1:])
    with pytest.raises(BadEncoding, match="no group's number"):
        GroupWelcome.decode(GroupWelcome.of(Trio().known)._replace(group=GROUP | 1).encode())
