from __future__ import annotations

from nightmail.model.answers import Done, Joined
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Closed, HandleClaimed, Registered
from nightmail.model.refusals import HandleConfusable
from nightmail.model.rows import HandleClaim, Kept
from nightmail.model.words import Platform
from tests.core.world import World

LOOK = 1 << 60 | 6_789
"""Both handles have this look."""
ALICE, LIKE_ALICE = "alice", "\u0430lice"


def claimed(handle: str, index: int = 1) -> HandleClaimed:
    return HandleClaimed(LOOK, handle, account_id(handle), index)


def registered(handle: str, token: bytes = b"token") -> Registered:
    return Registered(account_id(handle), handle, 7, token, "phone", Platform.IOS, claim=LOOK)


def claim_in(world: World) -> HandleClaim:
    return world.of(LOOK).row(Kept.HANDLE, LOOK)


def test_a_handle_that_looks_like_a_claimed_one_is_refused(world: World) -> None:
    assert world.do(SERVER, claimed(ALICE)) == Done()
    assert world.do(SERVER, claimed(LIKE_ALICE)) == HandleConfusable(LIKE_ALICE)
    assert claim_in(world) == HandleClaim(ALICE, account_id(ALICE), world.now, 1)


def test_a_claim_that_was_never_used_is_taken_again_by_the_same_handle(world: World) -> None:
    world.do(SERVER, claimed(ALICE))
    assert world.do(SERVER, claimed(ALICE)) == Done()
    assert world.do(SERVER, registered(ALICE)) == Joined(device_id(account_id(ALICE), 1), 1)
    assert world.do(SERVER, claimed(LIKE_ALICE)) == HandleConfusable(LIKE_ALICE)


def test_a_closed_account_lets_its_look_go_after_a_while_and_not_before(world: World) -> None:
    world.limit(handle_kept_ms=1_000)
    world.do(SERVER, claimed(ALICE))
    world.do(SERVER, registered(ALICE))
    world.do(SERVER, Closed(account_id(ALICE)))
    closed_at = world.now
    world.wait(999)
    assert world.do(SERVER, claimed(LIKE_ALICE)) == HandleConfusable(LIKE_ALICE)
    assert claim_in(world).until == closed_at + 1_000
    world.wait(1)
    assert world.do(SERVER, claimed(LIKE_ALICE)) == Done()
    assert world.do(SERVER, claimed(ALICE, 2)) == HandleConfusable(ALICE)


def test_a_release_that_comes_after_the_owner_has_claimed_again_does_not_count(world: World) -> None:
    world.limit(handle_kept_ms=0)
    world.do(SERVER, claimed(ALICE))
    world.do(SERVER, registered(ALICE))
    # The owner saw the account closed, with one device number used, and claims before the release arrives.
    world.do(SERVER, claimed(ALICE, 2))
    world.do(SERVER, Closed(account_id(ALICE)))
    world.do(SERVER, registered(ALICE, b"another token"))
    assert world.do(SERVER, claimed(LIKE_ALICE)) == HandleConfusable(LIKE_ALICE)


def test_an_account_without_a_claim_releases_none(world: World) -> None:
    world.do(SERVER, claimed(LIKE_ALICE))
    world.join("alice")
    world.do(SERVER, Closed(account_id("alice")))
    assert claim_in(world).until == 0
