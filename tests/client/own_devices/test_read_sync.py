"""What the person reads on one device is no longer new on the others."""

from __future__ import annotations

from nightmail.client.events import (
    ReadElsewhere,
)
from nightmail.client.inbox.read_marks import READ_BEFORE
from nightmail.client.store.rows import Missed, ReadMark
from tests.client.sealed_town import a_town
from tests.client.town import START


def test_what_was_read_on_one_device_is_not_new_on_another() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    message = bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    town.settle()
    assert laptop.told(ReadElsewhere) == [ReadElsewhere((message.id,))]
    assert laptop.store.marked(ReadMark.UNREAD) == []
    assert bob.state(message) == "read"


def test_what_was_read_elsewhere_before_it_came_is_not_new_when_it_comes() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    laptop.cut()
    bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    town.settle()
    laptop.connect()
    town.settle()
    assert laptop.heard() == ["one"]
    assert laptop.store.marked(ReadMark.UNREAD) == []
    assert laptop.store.errands("read ") == []


def test_what_never_comes_is_not_remembered_forever() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(3):
        bob.says(alice, f"before there was a laptop: {n}")
    town.settle()
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    alice.read(bob)
    laptop.store.put_missed(Missed("lost", bob.me.device, town.now))
    laptop.look()
    town.settle()
    assert len(laptop.store.errands(READ_BEFORE)) == 3
    for _ in range(33):
        assert len(laptop.store.missed()) == 1 or town.now - START >= laptop.limits.remember_ms
        town.wait(86_400_000)
        town.settle()
    assert (laptop.store.errands(READ_BEFORE), laptop.store.missed()) == ([], [])
