"""Keys of fellow members: as others, and never a way to empty a stock."""

from __future__ import annotations

from nightmail.core.keys import FELLOW_ONE_TIME
from nightmail.model.answers import Bundle
from nightmail.model.forms import key_id
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Claimed, FellowClaimed
from nightmail.model.refusals import NoKeys, NotMember, RateLimited
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import Person, published


def with_a_group(town: GroupWorld) -> tuple[Person, Person]:
    alice, bob = town.join("alice", devices=2), town.join("bob")
    town.make(alice[1], alice, bob)
    town.do(bob[1], published(bob[1], range(1, 50), range(1, 20)))
    return alice, bob


def claim(town: GroupWorld, by: int, device: int, request: int) -> int | None:
    """The one-time key; None: there was none."""
    said = town.do(by, FellowClaimed(GROUP, device, request))
    assert isinstance(said, Bundle)
    return None if said.one_time is None else key_id(said.one_time)


def test_a_fellow_member_gets_what_others_get_and_the_same_for_the_same_request(town: GroupWorld) -> None:
    alice, bob = with_a_group(town)
    assert [claim(town, alice[1], bob[1], request) for request in (7, 8, 7)] == [1, 2, 1]
    assert town.do(alice[1], FellowClaimed(GROUP, alice[2], 1)) == NoKeys(alice[2])


def test_keys_of_an_account_that_is_not_in_the_group_are_not_handed_out(town: GroupWorld) -> None:
    alice, bob = with_a_group(town)
    carol = town.join("carol")
    town.do(carol[1], published(carol[1], range(1, 5), range(1, 5)))
    before = town.everything()
    assert town.do(alice[1], FellowClaimed(GROUP, carol[1], 1)) == NotMember(GROUP)
    assert town.do(alice[1], FellowClaimed(GROUP + 2, bob[1], 1)) == NotMember(GROUP + 2)
    assert town.everything() == before


def test_an_account_takes_few_one_time_keys_of_a_fellow_in_a_day(town: GroupWorld) -> None:
    alice, bob = with_a_group(town)
    devices = [alice[1], alice[2]] * FELLOW_ONE_TIME
    got = [claim(town, by, bob[1], request) for request, by in enumerate(devices, 1)]
    assert got == [*range(1, FELLOW_ONE_TIME + 1), *[None] * FELLOW_ONE_TIME]
    # A bundle without one is not counted: an ordinary claim, and one of the next day, bring the next key.
    said = town.do(alice[1], Claimed(bob[1], 100))
    assert isinstance(said, Bundle)
    assert said.one_time is not None
    town.wait(DAY_MS)
    assert claim(town, alice[1], bob[1], 200) == FELLOW_ONE_TIME + 2


def test_the_limit_of_claims_in_a_minute_holds_for_fellows_too(town: GroupWorld) -> None:
    alice, bob = with_a_group(town)
    for request in range(1, 11):
        assert isinstance(town.do(alice[1], Claimed(bob[1], request)), Bundle)
    assert isinstance(town.do(alice[1], FellowClaimed(GROUP, bob[1], 11)), RateLimited)
