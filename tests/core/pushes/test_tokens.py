from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.push_rows import PushSeen, PushTarget
from nightmail.model.records import Acked, PushOutcome, PushRemoved, Unlinked
from nightmail.model.refusals import UnknownDevice
from nightmail.model.words import Lane, PushPlatform
from tests.core.push_world import TOKEN, PushWorld


def test_a_token_is_set_and_the_same_one_again_changes_nothing(world: PushWorld) -> None:
    bob = world.join("bob")
    assert world.set_token(bob[1]) == Done()
    target = world.target(bob[1])
    assert target is not None
    assert target == PushTarget(PushPlatform.UNIFIEDPUSH, TOKEN, target.since)
    assert world.set_token(bob[1]) == Done()
    assert world.target(bob[1]) == target


def test_another_token_replaces_the_one_before(world: PushWorld) -> None:
    bob = world.join("bob")
    world.set_token(bob[1])
    before = world.target(bob[1])
    world.set_token(bob[1], "https://push.example/new")
    after = world.target(bob[1])
    assert before is not None
    assert after is not None
    assert after == PushTarget(PushPlatform.UNIFIEDPUSH, "https://push.example/new", after.since)
    assert after.since > before.since


def test_what_waits_already_is_pushed_to_a_new_token(world: PushWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.send(ada[1], bob)
    assert (world.woken(), world.seen(bob[1])) == ([], None)
    world.set_token(bob[1])
    assert world.woken() == [bob[1]]
    world.end(world.push(bob[1]), PushOutcome.DELIVERED)
    world.set_token(bob[1], "https://push.example/new")
    assert world.woken() == [bob[1]]
    seen = world.push(bob[1])
    assert (seen.token, seen.attempt, seen.is_due) == ("https://push.example/new", 0, True)


def test_a_device_without_a_token_is_not_woken(world: PushWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.set_token(bob[1])
    assert world.do(bob[1], PushRemoved()) == world.do(bob[1], PushRemoved()) == Done()
    world.send(ada[1], bob)
    assert (world.woken(), world.seen(bob[1]), world.target(bob[1])) == ([], None, None)
    world.wait(86_400_000)
    assert world.woken() == []


def test_the_token_of_a_removed_device_goes_with_it(world: PushWorld) -> None:
    bob = world.join("bob", devices=2)
    world.set_token(bob[2])
    assert world.do(bob[1], Unlinked(bob[2])) == Done()
    assert world.target(bob[2]) is None
    assert world.set_token(bob[2]) == UnknownDevice(bob[2])


def test_that_an_old_token_is_gone_leaves_the_newer_one(world: PushWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.set_token(bob[1])
    world.send(ada[1], bob)
    old = world.push(bob[1])
    world.set_token(bob[1], "https://push.example/new")
    assert world.end(old, PushOutcome.GONE, "http_410") == Done()
    new = world.push(bob[1])
    assert new.token == "https://push.example/new"
    world.end(new, PushOutcome.GONE, "http_410")
    assert (world.target(bob[1]), world.seen(bob[1])) == (None, None)
    world.wait(3_600_000)
    assert world.woken() == []


def test_a_push_knows_all_that_it_needs(world: PushWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.set_token(bob[1])
    world.send(ada[1], bob)
    world.send(ada[1], bob, 2, lane=Lane.NORMAL)
    target, mailbox = world.target(bob[1]), world.mailbox(bob[1])
    assert target is not None
    assert mailbox is not None
    assert world.seen(bob[1]) == PushSeen(
        bob[1], PushPlatform.UNIFIEDPUSH, TOKEN, target.since, mailbox.woke_at, 0, depth=2, is_due=True
    )
    world.do(bob[1], Acked(Lane.NORMAL, 2))
    assert world.seen(bob[1]) is None
