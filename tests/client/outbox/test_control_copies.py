"""A control message that a device cannot open is sealed again for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nightmail.client.events import Moved
from nightmail.client.outbox.control_copies import TO_ALL, TO_ALL_MAX
from nightmail.client.own_devices.controls import Control
from nightmail.client.store.rows import ReadMark
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.note import Note
from nightmail.model.rows import Entry
from nightmail.model.words import Kind
from tests.client.sealed_town import a_town, pass_time


def test_a_control_message_to_all_own_devices_that_one_cannot_open_is_sealed_again_for_that_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    bob.says(alice, "one")
    town.settle()
    real = laptop.machine.sealer.sessions.open
    hit: list[str] = []

    def open_(entry: Entry) -> Note:
        note = real(entry)
        if entry.kind is Kind.CONTROL and not hit:
            hit.append(entry.id)
            raise BadEncoding("note", "for the test")
        return note

    monkeypatch.setattr(laptop.machine.sealer.sessions, "open", open_)
    alice.read(bob)
    pass_time(town, 0, 5_000)
    assert hit
    assert laptop.store.marked(ReadMark.UNREAD) == []
    for _ in range(TO_ALL_MAX + 9):
        bob.says(alice, "more")
        town.settle()
        alice.read(bob)
        town.settle()
    assert len(alice.store.errands(TO_ALL)) == TO_ALL_MAX


@pytest.mark.parametrize("which", [Control.READY, Control.HISTORY, Control.MOVED])
def test_a_control_message_that_does_not_open_is_sealed_again(which: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    for n in range(3):
        alice.says(bob, f"{n}")
    town.settle()
    new = town.pair(alice, hand_over=True)
    hit: list[str] = []
    for device in (alice, new):
        real = device.machine.sealer.sessions.open

        def open_(entry: Entry, real: Callable[[Entry], Note] = real) -> Note:
            note = real(entry)
            if entry.kind is Kind.CONTROL and decode_content(note.content).control == which and not hit:
                hit.append(entry.id)
                raise BadEncoding("note", "for the test")
            return note

        monkeypatch.setattr(device.machine.sealer.sessions, "open", open_)
    new.connect()
    pass_time(town, 0, *[10_000] * 4)
    assert hit
    assert Moved(new.me.device) in alice.told(Moved)
    assert Moved(new.me.device) in new.told(Moved)
    assert new.texts(bob) == alice.texts(bob)
