"""Writing: durable before it is sent, and taken back for as long as the server has not got it."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from nightmail.client.errors import TooLarge
from nightmail.client.own_devices.controls import Control, control
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.sealing import envelope_bytes_max
from nightmail.model.limits import FormLimits
from nightmail.model.records import Sent, Voided
from nightmail.model.words import Kind
from tests.client.script import BOB, accepted, connected
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


def test_the_longest_content_that_is_not_refused_is_delivered() -> None:
    town, (alice, bob) = a_town("alice", "bob")

    def content(length: int) -> bytes:
        return encode_content(Content(Kind.MEDIA, data=bytes(length)))

    limit = FormLimits().body_bytes
    length = bisect_right(range(limit), limit, key=lambda length: envelope_bytes_max(content(length)))
    with pytest.raises(TooLarge):
        alice.machine.compose(bob.me.account, content(length), town.now, kind=Kind.MEDIA)
    alice.machine.compose(bob.me.account, content(length - 1), town.now, kind=Kind.MEDIA)
    alice.look()
    town.settle()
    assert bob.texts(alice) == [content(length - 1)]


def test_who_writes_too_much_is_told_how_much_would_travel_and_how_much_may() -> None:
    _, (alice, bob) = a_town("alice", "bob")
    data = encode_content(Content(Kind.MEDIA, data=bytes(60_000)))
    with pytest.raises(TooLarge) as refused:
        alice.send(bob, data)
    error = refused.value
    assert (error.size, error.limit, error.content_bytes) == (65_536 + 1_760, 65_536, len(data))
    assert str(error) == (
        f"the message has {len(data)} bytes and would travel as 67296, compressed and encrypted; "
        "the server accepts at most 65536"
    )
    assert alice.store.outgoing() == []


def test_what_no_device_reads_is_refused_however_well_it_compresses() -> None:
    _, (alice, bob) = a_town("alice", "bob")
    content = encode_content(Content(Kind.TEXT, "a" * 65_536))
    with pytest.raises(TooLarge) as refused:
        alice.send(bob, content)
    assert (refused.value.size, refused.value.limit) == (len(content), 65_536)


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


def test_a_control_message_cannot_be_taken_back() -> None:
    script = connected()
    outbox = script.machine.parts.outbox
    outbox.control(BOB, control(Control.MOVED, b""))
    (waiting,) = script.store.outgoing()
    assert not script.machine.give_up(waiting.id, script.now)
    (said,) = script.bodies()
    assert isinstance(said, Sent)
