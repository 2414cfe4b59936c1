"""Another key: announced, and for a verified contact nothing before the person accepts it."""

from __future__ import annotations

from nightmail.client.events import (
    SecurityCodeChanged,
)
from tests.client.sealed_town import a_town, agrees, reset


def test_another_key_is_announced_and_what_is_written_then_reaches_the_new_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    new = reset(town, bob)
    new.connect()
    town.settle()
    alice.says(bob, "two")
    town.settle()
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, f"{bob.me.account:x}", False)]
    assert new.heard()[-1] == "two"


def test_if_the_former_key_was_verified_nothing_is_sealed_before_the_person_accepts() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.look()
    new = reset(town, bob)
    new.connect()
    town.settle()
    message = alice.says(bob, "two")
    town.settle()
    town.wait(400_000)
    town.settle()
    assert alice.told(SecurityCodeChanged) == [SecurityCodeChanged(bob.me.account, f"{bob.me.account:x}", True)]
    assert (new.heard(), alice.state(message)) == ([], "pending")
    assert agrees(town, alice, bob, verified=False)
    alice.look()
    town.settle()
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")


def test_somebody_with_another_key_is_still_heard() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    agrees(town, alice, bob, verified=True)
    alice.look()
    new = reset(town, bob)
    new.connect()
    town.settle()
    new.says(alice, "it is me, with a new phone")
    town.settle()
    assert alice.heard() == ["it is me, with a new phone"]
