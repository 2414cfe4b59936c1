from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.group_chain import (
    CHANGE_BYTES_MAX,
    NO_HEAD,
    SIGNATURE_BYTES,
    ChainedChange,
    decode_change,
    encode_change,
    is_group,
    next_roster,
)
from nightmail.model.ids import account_id, device_id
from nightmail.model.roster import (
    Addition,
    ChangeFault,
    Creation,
    Departure,
    GroupChange,
    GroupReceipts,
    GroupSettings,
    NewMember,
    Removal,
    Role,
    RoleChange,
    SettingsChange,
    changed,
    created,
)

GROUP = 1 << 40
ADA, BOB = sorted((account_id("ada"), account_id("bob")))
DEVICE = device_id(ADA, 1)
HEAD = b"h" * 32
SIGNATURE = b"s" * SIGNATURE_BYTES

accounts = st.integers(0, (1 << 48) - 1).map(lambda number: number * 2 + 1)
timers = st.just(0) | st.integers(30_000, 7 * 86_400_000)
settings = st.builds(
    GroupSettings, st.sampled_from(Role), st.sampled_from(Role), st.sampled_from(GroupReceipts), timers
)
members = st.dictionaries(accounts, st.binary(min_size=32, max_size=32), min_size=1, max_size=256)
ordered = members.map(lambda found: tuple(NewMember(account, found[account]) for account in sorted(found)))
later_changes: st.SearchStrategy[GroupChange] = st.one_of(
    st.builds(Addition, ordered),
    st.sets(accounts, min_size=1, max_size=256).map(lambda found: Removal(tuple(sorted(found)))),
    st.builds(Departure, st.just(0) | accounts),
    st.builds(RoleChange, accounts, st.sampled_from(Role)),
    st.builds(SettingsChange, settings),
)
creations = st.builds(
    lambda settings, found: Creation(
        settings,
        tuple(sorted({*(member for member in found[:255] if member.account != ADA), NewMember(ADA, b"a" * 32)})),
    ),
    settings,
    ordered,
)


def blob_of(change: GroupChange, previous: bytes = HEAD, group: int = GROUP, device: int = DEVICE) -> bytes:
    return encode_change(ChainedChange(group, previous, device, 7, change, b"r" * 32)) + SIGNATURE


@given(later_changes)
def test_a_change_comes_through_its_bytes(change: GroupChange) -> None:
    assert decode_change(blob_of(change)) == ChainedChange(GROUP, HEAD, DEVICE, 7, change, b"r" * 32)


@given(creations)
def test_a_creation_comes_through_its_bytes(creation: Creation) -> None:
    blob = blob_of(creation, NO_HEAD)
    assert len(blob) <= CHANGE_BYTES_MAX
    assert decode_change(blob) == ChainedChange(GROUP, NO_HEAD, DEVICE, 7, creation, b"r" * 32)


@given(later_changes, st.data())
def test_other_bytes_are_another_change_or_none(change: GroupChange, data: st.DataObject) -> None:
    blob = blob_of(change)
    at = data.draw(st.integers(0, len(blob) - 1 - SIGNATURE_BYTES))
    other = bytearray(blob)
    other[at] ^= data.draw(st.integers(1, 255))
    with suppress(ValueError):
        decoded = decode_change(bytes(other))
        assert decoded != decode_change(blob)
        assert encode_change(decoded) + SIGNATURE == bytes(other)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_change_or_are_refused_with_a_sentence(data: bytes) -> None:
    with suppress(ValueError):
        assert encode_change(decode_change(b"\1" + data)) == b"\1" + data[:-SIGNATURE_BYTES]


def a_member(account: int) -> NewMember:
    return NewMember(account, b"k" * 32)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Addition(()), "names 1 to 256 accounts"),
        (Addition(tuple(a_member(2 * at + 1) for at in range(257))), "bytes"),
        (Removal(tuple(2 * at + 1 for at in range(257))), "names 1 to 256 accounts"),
        (Addition((a_member(ADA), a_member(ADA))), "named twice"),
        (Removal((BOB, ADA)), "out of order"),
        (Removal((ADA + 1,)), "no account's number"),
        (Removal(((1 << 49) + 1,)), "no account's number"),
        (Departure(ADA + 1), "no account's number"),
        (RoleChange(0, Role.ADMIN), "no account's number"),
        (SettingsChange(GroupSettings(timer_ms=29_000)), "a timer"),
    ],
)
def test_a_change_outside_its_bounds_is_refused(change: GroupChange, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_change(blob_of(change))


def test_a_role_or_a_kind_that_is_not_known_is_refused() -> None:
    blob = bytearray(blob_of(RoleChange(BOB, Role.ADMIN)))
    role_at, kind_at = len(blob) - SIGNATURE_BYTES - 33, 57
    assert (blob[kind_at], blob[role_at]) == (5, 2)
    for at, value in ((role_at, 3), (role_at, 0), (kind_at, 7), (kind_at, 0)):
        wrong = bytearray(blob)
        wrong[at] = value
        with pytest.raises(ValueError):
            decode_change(bytes(wrong))


def test_a_creation_names_its_creator_and_follows_nothing() -> None:
    with pytest.raises(ValueError, match="names its creator"):
        decode_change(blob_of(Creation(GroupSettings(), (a_member(BOB),)), NO_HEAD))
    for change, previous in ((Departure(), NO_HEAD), (Creation(GroupSettings(), (a_member(ADA),)), HEAD)):
        with pytest.raises(ValueError, match="follows"):
            decode_change(blob_of(change, previous))


@pytest.mark.parametrize("length", [-1, 1, 8])
def test_a_change_that_is_longer_or_shorter_than_its_kind_is_refused(length: int) -> None:
    for change in (Addition((a_member(BOB),)), Removal((BOB,)), Departure(), SettingsChange(GroupSettings())):
        blob = blob_of(change)
        end = len(blob) - 96
        wrong = blob[: end + min(length, 0)] + b"\0" * max(length, 0) + blob[end:]
        with pytest.raises(ValueError, match="length"):
            decode_change(wrong)


@pytest.mark.parametrize(
    ("group", "device", "why"),
    [
        (0, DEVICE, "no group's number"),
        (GROUP | 1, DEVICE, "no group's number"),
        (1 << 49, DEVICE, "no group's number"),
        (GROUP, ADA << 12, "no device's number"),
        (GROUP, 1 << 61 | 1, "no device's number"),
        (GROUP, (ADA + 1) << 12 | 1, "no account's number"),
    ],
)
def test_a_group_or_a_device_that_cannot_be_is_refused(group: int, device: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_change(blob_of(Departure(), group=group, device=device))


def test_groups_have_the_numbers_that_no_account_has() -> None:
    assert [is_group(number) for number in (0, 1, 2, ADA, ADA + 1, (1 << 49) - 2, 1 << 49)] == [
        False, False, True, False, True, True, False,
    ]  # fmt: skip


# --- the roster after it ----------------------------------------------------------------------


def chained(change: GroupChange, roster_hash: bytes, device: int = DEVICE) -> ChainedChange:
    return ChainedChange(GROUP, HEAD, device, 7, change, roster_hash)


FIRST = Creation(GroupSettings(), (a_member(ADA), a_member(BOB)))
START = created(ADA, FIRST)


def test_the_roster_after_a_change_is_the_one_that_its_author_signed_or_there_is_none() -> None:
    assert next_roster(None, chained(FIRST, START.hash())) == START
    assert next_roster(None, chained(FIRST, b"r" * 32)) is ChangeFault.ROSTER_DIFFERS
    after = changed(START, ADA, Removal((BOB,)))
    assert not isinstance(after, ChangeFault)
    assert next_roster(START, chained(Removal((BOB,)), after.hash())) == after
    assert next_roster(START, chained(Removal((BOB,)), START.hash())) is ChangeFault.ROSTER_DIFFERS


def test_a_change_without_the_right_or_before_the_creation_is_refused() -> None:
    by_bob = chained(Removal((ADA,)), START.hash(), device_id(BOB, 1))
    assert next_roster(START, by_bob) is ChangeFault.NOT_AN_ADMIN
    assert next_roster(START, chained(FIRST, START.hash())) is ChangeFault.ALREADY_CREATED
    assert next_roster(None, chained(Departure(), START.hash())) is ChangeFault.NOT_A_MEMBER
