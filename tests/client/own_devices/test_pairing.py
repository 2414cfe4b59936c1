"""A new device believes nothing before the primary device told it the account's key."""

from __future__ import annotations

from nightmail.client.events import (
    DeviceLinked,
    Provisioned,
)
from nightmail.client.inbox.inbox import UNPROVISIONED
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Message
from nightmail.wire.items import Entries
from tests.client.sealed_town import a_town


def test_a_linked_device_is_told_whose_it_is_and_has_its_part_in_everything_from_then_on() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    assert (alice.told(DeviceLinked), laptop.told(Provisioned)) == ([DeviceLinked(laptop.me.device)], [Provisioned()])
    alice.says(bob, "from the phone")
    laptop.says(bob, "from the laptop")
    bob.says(alice, "to both")
    town.settle()
    assert sorted(bob.heard()) == ["from the laptop", "from the phone"]
    assert (alice.heard(), laptop.heard()) == (["to both"], ["to both"])
    assert [m.text for m in laptop.told(Message) if m.own] == ["from the phone"]


def test_a_device_whose_code_was_not_this_one_is_never_told_anything() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice, secret=b"another secret!!")
    laptop.connect()
    town.settle()
    bob.says(alice, "hello")
    town.settle()
    assert laptop.told(Provisioned) == laptop.heard() == []


def test_a_device_that_cannot_judge_what_it_gets_looks_again_from_the_beginning() -> None:
    """What it cannot acknowledge may leave no credit for the word that it waits for."""
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice, secret=b"not yet the code")
    laptop.connect()
    town.settle()
    bob.says(alice, "hello")
    town.settle()
    assert (laptop.plugged, laptop.hung_up) == (True, None)
    town.wait(ClientLimits().stuck_ms)
    assert (laptop.plugged, laptop.hung_up) == (False, UNPROVISIONED)


def test_a_device_that_waits_to_be_provisioned_and_has_nothing_else_stays_connected() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.meddle = lambda device, item: None if isinstance(item, Entries) else item
    laptop.connect()
    town.settle()
    town.wait(ClientLimits().stuck_ms)
    assert (laptop.plugged, laptop.told(Provisioned)) == (True, [])
