"""A message on its way out: for whom it is sealed, and what goes with it."""

from __future__ import annotations

from nightmail.model.records import Sent
from tests.client.script import ALICE, BOB, LAPTOP, PHONE, TABLET, connected
from tests.client.sealed_town import a_town, said_by


def test_a_message_is_sealed_for_every_device_of_the_recipient_and_every_other_own_one() -> None:
    script = connected()
    script.lists[ALICE] = (4, {PHONE: 7, LAPTOP: 8})
    script.lists[BOB] = (9, {TABLET: 7, TABLET + 1: 5})
    script.write(b"hello")
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert [(e.device, e.registration) for e in sent.envelopes] == [(TABLET, 7), (TABLET + 1, 5)]
    assert [(e.device, e.registration) for e in sent.own_envelopes] == [(LAPTOP, 8)]
    assert (sent.list_version, sent.n, sent.floor, sent.of) == (9, 1, 1, None)


def test_a_note_to_oneself_is_sealed_once_for_each_other_own_device() -> None:
    script = connected()
    script.lists[ALICE] = (4, {PHONE: 7, LAPTOP: 8})
    script.machine.compose(ALICE, b"note", script.now)
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert ([e.device for e in sent.envelopes], sent.own_envelopes) == ([LAPTOP], ())


def test_the_stamp_of_what_was_displayed_last_goes_with_every_message() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.accept()
    script.write()
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert sent.seen == script.store.conversation(BOB).seen > 0


def test_after_a_list_changed_a_message_is_sealed_for_the_new_device_and_for_no_other_again() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle(bob, laptop)
    alice.says(bob, "two")
    (row,) = alice.store.outgoing()
    first = row.envelopes[bob.me.device]
    town.settle()
    last = said_by(alice, Sent)[-1]
    assert {envelope.device for envelope in last.envelopes} == {bob.me.device, laptop.me.device}
    assert first in last.envelopes
    assert (bob.heard(), laptop.heard()) == (["one", "two"], ["two"])
