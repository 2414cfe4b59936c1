from __future__ import annotations

import hashlib

import pytest

from nightmail.model.roster import (
    MEMBERS_MAX,
    Addition,
    ChangeFault,
    Creation,
    Departure,
    GroupChange,
    GroupReceipts,
    GroupSettings,
    Member,
    NewMember,
    Removal,
    Role,
    RoleChange,
    Roster,
    SettingsChange,
    changed,
    created,
    may_write,
)

ADA, BOB, CYD, EVE = 11, 13, 15, 17
OPEN = GroupSettings(changers=Role.MEMBER)


def key(account: int, life: int = 1) -> bytes:
    return bytes((account % 251, life)) * 16


def new(account: int, life: int = 1) -> NewMember:
    return NewMember(account, key(account, life))


def a_roster(*members: int, admins: tuple[int, ...] = (ADA,), settings: GroupSettings | None = None) -> Roster:
    return Roster(
        settings or GroupSettings(),
        {one: Member(one, key(one), Role.ADMIN if one in admins else Role.MEMBER) for one in members},
    )


TRIO = a_roster(ADA, BOB, CYD)


def test_who_creates_a_group_is_its_admin() -> None:
    assert created(ADA, Creation(OPEN, (new(ADA), new(BOB)))) == a_roster(ADA, BOB, settings=OPEN)


@pytest.mark.parametrize(
    ("actor", "change", "after"),
    [
        (ADA, Addition((new(EVE),)), a_roster(ADA, BOB, CYD, EVE)),
        (ADA, Removal((BOB, CYD)), a_roster(ADA)),
        (BOB, Departure(), a_roster(ADA, CYD)),
        (ADA, RoleChange(BOB, Role.ADMIN), a_roster(ADA, BOB, CYD, admins=(ADA, BOB))),
        (ADA, Departure(BOB), a_roster(BOB, CYD, admins=(BOB,))),
        (ADA, SettingsChange(OPEN), a_roster(ADA, BOB, CYD, settings=OPEN)),
    ],
)
def test_what_an_allowed_change_does(actor: int, change: GroupChange, after: Roster) -> None:
    assert changed(TRIO, actor, change) == after


@pytest.mark.parametrize(
    ("actor", "change", "fault"),
    [
        (EVE, Departure(), ChangeFault.NOT_A_MEMBER),
        (EVE, Addition((new(EVE),)), ChangeFault.NOT_A_MEMBER),
        (ADA, Creation(OPEN, (new(ADA),)), ChangeFault.ALREADY_CREATED),
        (BOB, Addition((new(EVE),)), ChangeFault.NOT_AN_ADMIN),
        (BOB, Removal((CYD,)), ChangeFault.NOT_AN_ADMIN),
        (BOB, RoleChange(BOB, Role.ADMIN), ChangeFault.NOT_AN_ADMIN),
        (BOB, SettingsChange(OPEN), ChangeFault.NOT_AN_ADMIN),
        (BOB, Departure(CYD), ChangeFault.NOT_AN_ADMIN),
        (ADA, Addition((new(BOB), new(EVE))), ChangeFault.ALREADY_A_MEMBER),
        (ADA, Addition((new(ADA, 2),)), ChangeFault.ALREADY_A_MEMBER),
        (ADA, Removal((BOB, EVE)), ChangeFault.NO_SUCH_MEMBER),
        (ADA, RoleChange(EVE, Role.ADMIN), ChangeFault.NO_SUCH_MEMBER),
        (ADA, Departure(EVE), ChangeFault.NO_SUCH_MEMBER),
        (ADA, Departure(ADA), ChangeFault.NO_SUCH_MEMBER),
        (ADA, Removal((ADA,)), ChangeFault.REMOVES_ITSELF),
        (ADA, Departure(), ChangeFault.LAST_ADMIN),
        (ADA, RoleChange(ADA, Role.MEMBER), ChangeFault.LAST_ADMIN),
    ],
)
def test_what_is_refused_and_why(actor: int, change: GroupChange, fault: ChangeFault) -> None:
    assert changed(TRIO, actor, change) is fault


def test_an_admin_who_is_not_the_last_may_resign_leave_or_be_removed() -> None:
    two = a_roster(ADA, BOB, CYD, admins=(ADA, BOB))
    assert changed(two, ADA, RoleChange(ADA, Role.MEMBER)) == a_roster(ADA, BOB, CYD, admins=(BOB,))
    assert changed(two, ADA, Departure()) == a_roster(BOB, CYD, admins=(BOB,))
    assert changed(two, ADA, Removal((BOB,))) == a_roster(ADA, CYD)


def test_the_last_member_leaves_and_nobody_can_change_the_group_any_more() -> None:
    nobody = Roster(GroupSettings(), {})
    assert changed(a_roster(ADA), ADA, Departure()) == nobody
    assert changed(nobody, ADA, Addition((new(ADA),))) is ChangeFault.NOT_A_MEMBER


def test_where_members_may_change_things_they_add_people_and_set_the_timer_and_no_more() -> None:
    trio = a_roster(ADA, BOB, CYD, settings=OPEN)
    timed = GroupSettings(changers=Role.MEMBER, receipts=GroupReceipts.NONE, timer_ms=30_000)
    assert changed(trio, BOB, Addition((new(EVE),))) == a_roster(ADA, BOB, CYD, EVE, settings=OPEN)
    assert changed(trio, BOB, SettingsChange(timed)) == a_roster(ADA, BOB, CYD, settings=timed)
    for change in (
        SettingsChange(GroupSettings(changers=Role.ADMIN)),
        SettingsChange(GroupSettings(changers=Role.MEMBER, writers=Role.ADMIN)),
        Removal((CYD,)),
        RoleChange(BOB, Role.ADMIN),
        Addition((new(ADA, 2),)),
    ):
        assert changed(trio, BOB, change) is ChangeFault.NOT_AN_ADMIN


def test_an_account_that_registered_again_is_added_by_an_admin_and_comes_back_without_its_role() -> None:
    two = a_roster(ADA, BOB, CYD, admins=(ADA, BOB))
    after = changed(two, ADA, Addition((new(BOB, 2),)))
    assert isinstance(after, Roster)
    assert after.members[BOB] == Member(BOB, key(BOB, 2), Role.MEMBER)


def test_a_group_has_5000_members_and_not_one_more() -> None:
    full = a_roster(*range(1, 2 * MEMBERS_MAX, 2))
    assert full.size == 5_000
    stranger = 2 * MEMBERS_MAX + 1
    assert changed(full, ADA, Addition((new(stranger),))) is ChangeFault.TOO_MANY_MEMBERS
    assert isinstance(changed(full, ADA, Addition((new(BOB, 2),))), Roster)


def test_who_may_write() -> None:
    quiet = a_roster(ADA, BOB, settings=GroupSettings(writers=Role.ADMIN))
    assert [may_write(TRIO, one) for one in (ADA, BOB, EVE)] == [True, True, False]
    assert [may_write(quiet, one) for one in (ADA, BOB, EVE)] == [True, False, False]


def test_the_hash_covers_settings_accounts_keys_and_roles_in_one_order() -> None:
    roster = a_roster(ADA, BOB, settings=GroupSettings(timer_ms=30_000))
    settings = b"\1\2\1" + (30_000).to_bytes(4, "big")
    members = b"".join(one.to_bytes(8, "big") + key(one) + bytes((role,)) for one, role in ((ADA, 2), (BOB, 1)))
    assert roster.hash() == hashlib.sha256(b"nightmail/v1/group-roster\0" + settings + b"\0\2" + members).digest()
    assert roster.hash() == a_roster(BOB, ADA, settings=GroupSettings(timer_ms=30_000)).hash()


@pytest.mark.parametrize("timer_ms", [1, 29_999, 7 * 86_400_000 + 1])
def test_a_timer_that_is_too_short_or_too_long_is_refused(timer_ms: int) -> None:
    with pytest.raises(ValueError, match="a timer is 0 or between 30000 and 604800000 ms"):
        GroupSettings.decode(GroupSettings(timer_ms=timer_ms).encode())


@pytest.mark.parametrize("data", [b"\0\1\1\0\0\0\0", b"\1\3\1\0\0\0\0", b"\1\1\4\0\0\0\0"])
def test_a_setting_that_is_not_known_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        GroupSettings.decode(data)
