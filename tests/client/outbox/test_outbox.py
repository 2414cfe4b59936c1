"""Writing: durable before it is sent, and taken back for as long as the server has not got it."""

from __future__ import annotations

import pytest

from nightmail.client.errors import TooLarge
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.records import Voided
from nightmail.model.words import Kind
from tests.client.script import accepted, connected
from tests.client.sealed_town import a_town


def test_nothing_is_sent_before_it_is_committed() -> None:
    script = connected()
    script.write()
    assert script.store.dirty
    assert script.bodies()
    assert not script.store.dirty
    assert len(script.store.outgoing()) == 1


def test_many_messages_of_one_turn_cost_one_commit() -> None:
    script = connected()
    before = script.store.commits
    for _ in range(100):
        script.write()
    script.turn()
    assert script.store.commits == before + 1


def test_a_body_above_the_limit_is_not_queued() -> None:
    script = connected()
    with pytest.raises(TooLarge):
        script.write(b"x" * 65_537)
    assert script.store.outgoing() == []


def test_the_limit_counts_what_travels() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    text = "ab" * (alice.machine.sealer.fits(65_536) // 2 + 1_000)
    alice.says(bob, text)
    town.settle()
    assert bob.heard() == [text]
    for content in (Content(Kind.MEDIA, data=text.encode()), Content(Kind.TEXT, text * 2)):
        with pytest.raises(TooLarge):
            alice.send(bob, encode_content(content))


def test_a_void_that_came_too_late_tells_the_truth() -> None:
    script = connected()
    message = script.write()
    (sent,) = script.bodies()
    assert script.machine.give_up(message.id, script.now)
    (void,) = script.bodies()
    assert isinstance(void, Voided)
    script.answer(accepted(sent))
    assert script.state(message) == ("sent", "")
    assert script.store.outgoing() == []


def test_what_is_given_up_is_failed_once_the_server_says_so() -> None:
    script = connected()
    message = script.write()
    script.bodies()
    script.machine.give_up(message.id, script.now)
    script.bodies()
    script.accept()
    assert script.state(message) == ("failed", "given_up")
    assert not script.machine.give_up(message.id, script.now)
