"""Keys: published once, handed out once, oldest first; a lost answer is given again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.core.state import encode_row
from nightmail.model.answers import Bundle, Done, Stocked
from nightmail.model.effects import Dismissed, Low
from nightmail.model.forms import LAST_RESORT, kem_id, key_id
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import Claimed, Closed, KeysAsked, Published, Unlinked
from nightmail.model.refusals import IdentityFixed, NoKeys, RateLimited, UnknownDevice
from nightmail.model.rows import Claim, Keys
from tests.core.world import START, Person, World, published

MINUTE_MS = 60_000
UNLIMITED = 1 << 30


@pytest.fixture
def alice(world: World) -> Person:
    return world.join("alice", devices=2)


@pytest.fixture
def bob(world: World) -> Person:
    return world.join("bob", devices=2)


def publish(world: World, device: int, ids: range, kem_ids: range, renewed: int = 1) -> None:
    assert isinstance(world.do(device, published(device, ids, kem_ids, renewed=renewed)), Stocked)


def claim(world: World, by: int, device: int, request: int) -> tuple[int, int]:
    """The ids of the two keys that were handed out; 0: none, or the last resort."""
    bundle = world.do(by, Claimed(device, request))
    assert isinstance(bundle, Bundle), bundle
    kem = 0 if bundle.kem[0] == LAST_RESORT else kem_id(bundle.kem)
    return key_id(bundle.one_time) if bundle.one_time else 0, kem


def claims(world: World, by: int, device: int, requests: range) -> list[tuple[int, int]]:
    return [claim(world, by, device, request) for request in requests]


# --- publishing -------------------------------------------------------------------------------


def test_what_is_published_is_kept_as_it_was_said(world: World, bob: Person) -> None:
    body = published(bob[1], range(2, 5), range(3, 5))
    assert world.do(bob[1], body) == Stocked(3, 2)
    assert world.keys(bob[1]) == Keys(
        101, body.identity, body.signed, body.last_resort, list(body.one_time), list(body.one_time_kem), 4, 4, low=True
    )
    assert world.keys(bob[2]) is None


def test_an_upload_again_adds_nothing(world: World, alice: Person, bob: Person) -> None:
    body = published(bob[1], range(2, 32), range(2, 12))
    assert world.do(bob[1], body) == world.do(bob[1], body) == Stocked(30, 10)
    claim(world, alice[1], bob[1], 1)
    before = world.keys(bob[1])
    assert world.do(bob[1], body) == Stocked(29, 9)
    assert world.keys(bob[1]) == before


def test_an_upload_adds_what_lies_above_the_highest_id(world: World, bob: Person) -> None:
    publish(world, bob[1], range(2, 5), range(2, 4))
    assert world.do(bob[1], published(bob[1], range(1, 8), range(3, 6))) == Stocked(6, 4)
    keys = world.keys(bob[1])
    assert keys is not None
    assert ([*map(key_id, keys.one_time)], [*map(kem_id, keys.one_time_kem)]) == ([2, 3, 4, 5, 6, 7], [2, 3, 4, 5])


def test_an_id_that_was_let_go_never_comes_back(world: World, bob: Person) -> None:
    world.limit(stock_one_time=3, stock_kem=2)
    publish(world, bob[1], range(1, 6), range(1, 4))
    assert world.do(bob[1], published(bob[1], range(1, 6), range(1, 4))) == Stocked(3, 2)
    keys = world.keys(bob[1])
    assert keys is not None
    assert ([*map(key_id, keys.one_time)], [*map(kem_id, keys.one_time_kem)]) == ([3, 4, 5], [2, 3])


def test_a_prekey_is_renewed_and_a_late_upload_does_not_bring_the_old_one_back(world: World, bob: Person) -> None:
    old, new = published(bob[1], range(0), range(0), renewed=3), published(bob[1], range(0), range(0), renewed=9)
    for body in (old, new, old):
        assert world.do(bob[1], body) == Stocked(0, 0)
    keys = world.keys(bob[1])
    assert keys is not None
    assert (keys.signed, keys.last_resort) == (new.signed, new.last_resort)


def test_an_identity_never_changes(world: World, bob: Person) -> None:
    publish(world, bob[1], range(2, 5), range(2, 4))
    before = world.keys(bob[1])
    assert world.do(bob[1], published(bob[1], range(5, 9), range(5, 9), identity="another")) == IdentityFixed()
    assert world.keys(bob[1]) == before


def test_keys_of_another_registration_are_refused(world: World, bob: Person) -> None:
    assert world.do(bob[1], published(bob[2], range(2, 5), range(2, 4))) == IdentityFixed()
    assert world.keys(bob[1]) is None


def test_who_is_no_device_publishes_nothing(world: World, bob: Person) -> None:
    for device in (device_id(bob.account, 9), device_id(account_id("eve"), 1)):
        assert world.do(device, published(device, range(2, 5), range(2, 4))) == UnknownDevice(device)
        assert world.keys(device) is None


# --- claiming ---------------------------------------------------------------------------------


def test_a_bundle_is_what_the_device_published(world: World, alice: Person, bob: Person) -> None:
    body = published(bob[1], range(2, 5), range(2, 4))
    world.do(bob[1], body)
    assert world.do(alice[1], Claimed(bob[1], 7)) == Bundle(
        bob[1], 101, body.identity, body.signed, body.one_time_kem[0], body.one_time[0]
    )
    keys = world.keys(bob[1])
    assert keys is not None
    assert (keys.one_time, keys.one_time_kem) == ([*body.one_time[1:]], [*body.one_time_kem[1:]])
    assert keys.claims == {(alice[1], 7): Claim(START, body.one_time[0], body.one_time_kem[0])}


def test_keys_are_handed_out_oldest_first_and_each_once_whoever_asks(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    publish(world, bob[1], range(2, 8), range(2, 6))
    askers = (alice[1], carol[1], alice[2], bob[2], carol[1], alice[1])
    got = [claim(world, by, bob[1], request) for request, by in enumerate(askers, 1)]
    assert got == [(2, 2), (3, 3), (4, 4), (5, 5), (6, 0), (7, 0)]


def test_the_same_request_gets_the_same_keys(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 12), range(2, 5))
    first = world.do(alice[1], Claimed(bob[1], 1))
    assert claims(world, alice[1], bob[1], range(2, 4)) == [(3, 3), (4, 4)]
    before = world.keys(bob[1])
    assert world.do(alice[1], Claimed(bob[1], 1)) == first
    assert world.keys(bob[1]) == before
    assert world.effects == []


def test_the_same_number_of_another_device_is_another_request(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 12), range(2, 5))
    assert [claim(world, by, bob[1], 1) for by in (alice[1], alice[2], bob[2])] == [(2, 2), (3, 3), (4, 4)]


def test_a_repeat_has_the_prekeys_that_the_device_has_now(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 3), range(0))
    first = world.do(alice[1], Claimed(bob[1], 1))
    body = published(bob[1], range(9, 12), range(9, 12), renewed=5)
    world.do(bob[1], body)
    again = world.do(alice[1], Claimed(bob[1], 1))
    assert isinstance(first, Bundle)
    assert again == Bundle(bob[1], 101, body.identity, body.signed, body.last_resort, first.one_time)


def test_when_all_are_used_up_the_last_resort_still_works(world: World, alice: Person, bob: Person) -> None:
    body = published(bob[1], range(0), range(0))
    world.do(bob[1], body)
    for request in (1, 2):
        bundle = Bundle(bob[1], 101, body.identity, body.signed, body.last_resort, None)
        assert world.do(alice[1], Claimed(bob[1], request)) == bundle


def test_a_claim_is_remembered_for_a_day_and_then_brings_another_key(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 12), range(2, 5))
    assert claim(world, alice[1], bob[1], 1) == (2, 2)
    world.now += DAY_MS - 1
    assert claim(world, alice[1], bob[1], 1) == (2, 2)
    world.now += 1
    assert claim(world, alice[1], bob[1], 1) == (3, 3)
    assert claim(world, alice[1], bob[1], 1) == (3, 3)
    keys = world.keys(bob[1])
    assert keys is not None
    assert list(keys.claims) == [(alice[1], 1)]


def test_so_many_claims_are_remembered_and_no_more(world: World, alice: Person, bob: Person) -> None:
    world.limit(claims_kept=3)
    publish(world, bob[1], range(2, 12), range(2, 12))
    assert claims(world, alice[1], bob[1], range(1, 5)) == [(2, 2), (3, 3), (4, 4), (5, 5)]
    assert claims(world, alice[1], bob[1], range(2, 5)) == [(3, 3), (4, 4), (5, 5)]
    assert claim(world, alice[1], bob[1], 1) == (6, 6)
    keys = world.keys(bob[1])
    assert keys is not None
    assert list(keys.claims) == [(alice[1], 3), (alice[1], 4), (alice[1], 1)]


def test_who_has_published_nothing_has_no_keys_yet(world: World, alice: Person, bob: Person) -> None:
    assert world.do(alice[1], Claimed(bob[1], 1)) == NoKeys(bob[1])
    publish(world, bob[1], range(2, 5), range(2, 4))
    assert claim(world, alice[1], bob[1], 1) == (2, 2)


def test_of_nobody_nothing_is_claimed(world: World, alice: Person, bob: Person) -> None:
    for device in (device_id(bob.account, 9), device_id(account_id("eve"), 1)):
        assert world.do(alice[1], Claimed(device, 1)) == UnknownDevice(device)


def test_a_device_that_is_linked_but_not_listed_can_be_claimed_from(world: World, bob: Person) -> None:
    """The primary device looks at a new one's keys before it signs a list that names it."""
    new = world.link(bob, listed=False)
    publish(world, new, range(2, 5), range(2, 4))
    assert claim(world, bob[1], new, 1) == (2, 2)


# --- too many ---------------------------------------------------------------------------------


def test_an_account_claims_ten_keys_of_a_device_in_a_minute(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    for device in (bob[1], bob[2]):
        publish(world, device, range(2, 40), range(2, 40))
    for request in range(1, 11):
        claim(world, alice[1 + request % 2], bob[1], request)
        world.now += 1_000
    before = world.keys(bob[1])
    for by in (alice[1], alice[2]):
        assert world.do(by, Claimed(bob[1], 99)) == RateLimited(50_000)
    assert world.keys(bob[1]) == before
    assert claim(world, carol[1], bob[1], 1) == (12, 12)
    assert claim(world, alice[1], bob[2], 99) == (2, 2)
    assert claim(world, alice[2], bob[1], 1) == (2, 2), "a repeat takes nothing"
    world.now += 49_999
    assert world.do(alice[1], Claimed(bob[1], 99)) == RateLimited(1)
    world.now += 1
    assert claim(world, alice[1], bob[1], 99) == (13, 13)
    assert world.do(alice[1], Claimed(bob[1], 100)) == RateLimited(1_000)


def test_a_clock_that_is_set_back_lets_nobody_claim_more(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 40), range(2, 40))
    claims(world, alice[1], bob[1], range(1, 11))
    world.now -= 10 * MINUTE_MS
    assert world.do(alice[1], Claimed(bob[1], 11)) == RateLimited(MINUTE_MS)


# --- few left ---------------------------------------------------------------------------------


def counts(world: World, person: Person) -> tuple[int, int]:
    shard = world.shard(person)
    return shard.low, shard.exhausted


def is_low(world: World, person: Person, index: int = 1) -> bool:
    return world.account(person).devices[person[index]].low


def test_a_device_that_has_published_nothing_is_low_and_is_not_counted(world: World, bob: Person) -> None:
    assert is_low(world, bob)
    assert counts(world, bob) == (0, 0)


@pytest.mark.parametrize(("ids", "kem_ids"), [(range(2, 22), range(2, 40)), (range(2, 99), range(2, 7))])
def test_the_claim_that_leaves_too_few_tells_the_device_once(
    world: World, alice: Person, bob: Person, ids: range, kem_ids: range
) -> None:
    publish(world, bob[1], ids, kem_ids)
    assert (is_low(world, bob), counts(world, bob)) == (False, (0, 0))
    claim(world, alice[1], bob[1], 1)
    assert (is_low(world, bob), counts(world, bob)) == (True, (1, 0))
    assert world.effects == [Low(bob[1])]
    claim(world, alice[1], bob[1], 2)
    assert world.effects == []
    publish(world, bob[1], range(200, 300), range(200, 220))
    assert (is_low(world, bob), counts(world, bob), world.effects) == (False, (0, 0), [])
    claim(world, alice[1], bob[1], 3)
    assert (is_low(world, bob), world.effects) == (False, [])


def test_an_upload_of_too_few_leaves_the_mark(world: World, bob: Person) -> None:
    publish(world, bob[1], range(2, 21), range(2, 40))
    assert (is_low(world, bob), counts(world, bob), world.effects) == (True, (1, 0), [])


def test_who_has_none_left_of_one_kind_is_exhausted(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 99), range(2, 3))
    publish(world, bob[2], range(2, 3), range(2, 40))
    assert counts(world, bob) == (2, 0)
    claim(world, alice[1], bob[1], 1)
    assert counts(world, bob) == (2, 1)
    claim(world, alice[1], bob[2], 1)
    assert counts(world, bob) == (2, 2)
    publish(world, bob[1], range(0), range(5, 40))
    assert counts(world, bob) == (1, 1)


def test_other_limits_leave_the_counts_true(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 12), range(2, 12))
    world.limit(low_one_time=2)
    claim(world, alice[1], bob[1], 1)
    assert (is_low(world, bob), counts(world, bob)) == (False, (0, 0))
    world.limit(low_one_time=200)
    claim(world, alice[1], bob[1], 2)
    assert (is_low(world, bob), counts(world, bob)) == (True, (1, 0))
    world.do(SERVER, Unlinked(bob[1]))
    assert counts(world, bob) == (0, 0)


# --- the end ----------------------------------------------------------------------------------


def test_a_revoked_device_goes_with_its_keys(world: World, alice: Person, bob: Person) -> None:
    for device in (bob[1], bob[2]):
        publish(world, device, range(2, 3), range(0))
    assert counts(world, bob) == (2, 2)
    assert world.do(bob[1], Unlinked(bob[2])) == Done()
    assert Dismissed(bob[2]) in world.effects
    assert (world.keys(bob[2]), counts(world, bob)) == (None, (1, 1))
    assert world.do(alice[1], Claimed(bob[2], 1)) == UnknownDevice(bob[2])
    assert world.do(bob[2], published(bob[2], range(9, 12), range(0))) == UnknownDevice(bob[2])
    assert claim(world, alice[1], bob[1], 1) == (2, 0)


def test_a_list_that_no_longer_names_a_device_ends_its_keys(world: World, bob: Person) -> None:
    publish(world, bob[2], range(2, 99), range(2, 40))
    world.list_devices(bob[1], bob, (bob[1],))
    assert world.keys(bob[2]) is None


def test_a_closed_account_has_no_keys(world: World, alice: Person, bob: Person) -> None:
    publish(world, bob[1], range(2, 99), range(2, 4))
    world.do(SERVER, Closed(bob.account))
    assert (world.keys(bob[1]), counts(world, bob)) == (None, (0, 0))
    assert world.do(alice[1], Claimed(bob[1], 1)) == UnknownDevice(bob[1])


# --- however it comes -------------------------------------------------------------------------

WISHES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(0, 30_000)), max_size=60)


@settings(max_examples=60)
@given(WISHES)
def test_however_claims_and_uploads_mingle_no_key_goes_to_two_requests(wishes: list[tuple[int, int, int]]) -> None:
    world = World()
    alice, bob, carol = world.join("alice"), world.join("bob"), world.join("carol")
    world.limit(stock_one_time=8, stock_kem=4, low_one_time=3, low_kem=2, claims_kept=6, claims_per_minute=4)
    stocked, owners, last = 2, dict[bytes, tuple[int, int]](), 0
    for what, request, wait in wishes:
        world.now += wait
        if what == 0:
            publish(world, bob[1], range(stocked, stocked + 5), range(stocked, stocked + 3))
            stocked += 5
            continue
        by = (alice, carol)[what % 2][1]
        said = world.do(by, Claimed(bob[1], request))
        if isinstance(said, Bundle):
            taken = [key for key in (said.one_time, said.kem) if key is not None and key != b"\1\0\0\0\1last resort"]
            if said.one_time and said.one_time not in owners:
                assert last < key_id(said.one_time), "the oldest first"
                last = key_id(said.one_time)
            for key in taken:
                assert owners.setdefault(key, (by, request)) == (by, request)


def test_a_row_of_keys_is_never_heavier_than_it_may_be() -> None:
    """What `KEYS_WEIGHT` counts on."""
    world, limits = World(), FoldLimits()
    alice, bob = world.join("alice"), world.join("bob")
    world.limit(claims_per_minute=UNLIMITED)

    def full(first: int) -> Published:
        return Published(
            101, bytes(128), bytes(100), b"\1" + bytes(1_636),
            tuple((first + n).to_bytes(4, "big") + bytes(32) for n in range(limits.stock_one_time)),
            tuple(b"\0" + (first + n).to_bytes(4, "big") + bytes(1_632) for n in range(limits.stock_kem)),
        )  # fmt: skip

    for round_ in range(4):
        world.do(bob[1], full(1 + 1_000 * round_))
        claims(world, alice[1], bob[1], range(1 + 40 * round_, 41 + 40 * round_))
    world.do(bob[1], full(10_000))
    keys = world.keys(bob[1])
    assert keys is not None
    assert (len(keys.one_time), len(keys.one_time_kem), len(keys.claims)) == (200, 40, 64)
    assert 170_000 < len(encode_row(keys)) < 180 * 1_024


# --- without taking any -----------------------------------------------------------------------


def test_who_asks_for_keys_gets_those_that_everybody_gets_and_takes_none(
    world: World, alice: Person, bob: Person
) -> None:
    body = published(bob[1], range(2, 5), range(2, 4))
    world.do(bob[1], body)
    before = world.keys(bob[1])
    for _ in range(20):
        shown = world.do(alice[1], KeysAsked(bob[1]))
        assert shown == Bundle(bob[1], 101, body.identity, body.signed, body.last_resort, None)
    assert world.keys(bob[1]) == before


def test_nobody_has_keys_that_were_not_published(world: World, alice: Person, bob: Person) -> None:
    assert world.do(alice[1], KeysAsked(bob[1])) == NoKeys(bob[1])
    stranger = device_id(account_id("nobody"), 1)
    assert world.do(alice[1], KeysAsked(stranger)) == UnknownDevice(stranger)
