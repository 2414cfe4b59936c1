"""Machines and the real heart between them, without a socket; and the life of one connection."""

from __future__ import annotations

import pytest

from nightmail.client.events import (
    Connected,
    DeliveryReceipt,
    DeviceRemoved,
    Disconnected,
    Ended,
    QueueEmpty,
    ReadReceipt,
    SentAck,
)
from nightmail.client.messages import Message
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import decode_hello
from nightmail.wire.items import VERSION, Goodbye, Welcome
from tests.client.script import ME, PHONE, Script, an_entry, entries
from tests.client.town import Town


def test_a_message_goes_from_one_to_the_other_and_back_comes_that_it_was_read() -> None:
    town = Town()
    alice, bob = town.join("alice"), town.join("bob")
    alice.connect()
    bob.connect()
    message = alice.send(bob, b"hello")
    assert alice.state(message) == "pending"
    town.settle()
    assert bob.texts(alice) == [b"hello"]
    assert [event.body for event in bob.told(Message)] == [b"hello"]
    assert alice.state(message) == "delivered"
    bob.read(alice)
    town.settle()
    assert alice.state(message) == "read"
    kinds = (SentAck, DeliveryReceipt, ReadReceipt)
    assert [type(event) for event in alice.events if isinstance(event, kinds)] == list(kinds)
    assert len(bob.told(Connected)) == len(bob.told(QueueEmpty)) == 1


# --- the life of a connection -------------------------------------------------------------------


def test_nothing_but_hello_is_said_before_welcome() -> None:
    script = Script()
    script.write()
    script.machine.connected(script.now)
    (frame,) = script.frames()
    hello = decode_hello(frame)
    assert (hello.version, hello.device, hello.token) == (VERSION, PHONE, ME.token)
    script.wait(9_999)
    assert script.frames() == []
    assert script.hang_up is None


def test_a_server_that_never_says_welcome_is_given_up() -> None:
    script = Script()
    script.machine.connected(script.now)
    script.frames()
    script.wait(10_000)
    assert script.hang_up == "the server is silent"


def test_a_ping_goes_out_every_heartbeat_and_silence_ends_the_connection() -> None:
    script = Script()
    script.connect()
    script.wait(90_000)
    assert script.hang_up is None
    script.pongs = False
    script.wait(30_000)
    assert script.hang_up is None
    script.wait(30_000)
    assert script.hang_up == "the server is silent"


def test_mail_before_welcome_or_a_second_welcome_ends_the_connection() -> None:
    script = Script()
    script.machine.connected(script.now)
    script.say(entries(1, an_entry(1)))
    assert script.hang_up
    script = Script()
    script.connect()
    script.say(Welcome(VERSION, 0, "", 30_000, 1, 1, 1))
    assert script.hang_up


def test_after_it_hung_up_the_machine_hears_nothing_until_it_is_connected_again() -> None:
    script = Script()
    script.connect()
    script.machine.receive(b"nonsense", script.now)
    script.say(entries(1, an_entry(1)))
    assert script.told(Message) == []
    script.lose()
    script.connect()
    script.say(entries(1, an_entry(1)))
    assert len(script.told(Message)) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (CloseCode.REMOVED, DeviceRemoved), (CloseCode.UNAUTHORIZED, DeviceRemoved),
        (CloseCode.DISPLACED, Ended), (CloseCode.UNSUPPORTED, Ended),
    ],
)  # fmt: skip
def test_a_final_close_code_is_told_as_such(code: CloseCode, kind: type) -> None:
    script = Script()
    script.connect()
    script.say(Goodbye(code, "said by the server", 0))
    script.machine.closed(1006, script.now)
    ended = script.told(Ended)
    assert [(type(event), event.code) for event in ended] == [(kind, code)]


def test_any_other_ending_is_not_final() -> None:
    script = Script()
    script.connect()
    script.machine.closed(CloseCode.BUSY, script.now)
    assert script.told(Ended) == []
    assert [event.code for event in script.told(Disconnected)] == [CloseCode.BUSY]


def test_a_second_own_device_gets_copies_from_the_moment_it_is_listed() -> None:
    town = Town()
    phone, bob = town.join("alice"), town.join("bob")
    phone.connect()
    bob.connect()
    phone.send(bob, b"alone")
    town.settle()
    laptop = town.link(phone)
    phone.machine.forget_own_devices()
    laptop.connect()
    phone.send(bob, b"together")
    town.settle()
    assert laptop.texts(bob) == [b"together"]
    assert [message.own for message in laptop.told(Message)] == [True]
    bob.read(phone)
    town.settle()
    assert [message.state.name for message in laptop.store.history(bob.me.account, 9)] == ["READ"]


def test_an_answer_sorts_after_its_question_on_every_device() -> None:
    town = Town()
    alice, bob = town.join("alice"), town.join("bob")
    alice.connect()
    bob.connect()
    for n in range(6):
        writer, other = (alice, bob) if n % 2 else (bob, alice)
        writer.send(other, b"%d" % n)
        town.settle()
    assert alice.texts(bob) == bob.texts(alice) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_three_hundred_messages_written_offline_arrive_in_order_through_the_window() -> None:
    town = Town()
    alice, bob = town.join("alice"), town.join("bob")
    for n in range(300):
        alice.send(bob, b"%d" % n)
    alice.connect()
    bob.connect()
    town.settle()
    assert bob.texts(alice) == [b"%d" % n for n in range(300)]
    assert alice.store.outgoing() == []
