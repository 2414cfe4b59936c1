"""A device that replaces a removed one gets what that one never had, in whatever order the sender learns of it."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import MessageFailed
from nightmail.client.messages import Tick
from nightmail.e2ee.errors import Undecipherable
from nightmail.model.answers import Accepted
from nightmail.model.ids import SERVER
from nightmail.model.records import Closed, Sent, Unlinked
from nightmail.model.rows import Entry
from nightmail.model.words import Kind
from nightmail.wire.frames import encode
from nightmail.wire.items import Answered, Devices, FromServer, Receipts
from tests.client.sealed_town import a_town, pass_time, register_again, reset, said_by
from tests.client.town import Town


def without_accepted(_device: int, item: FromServer) -> FromServer | None:
    """Answers that a message was taken get lost."""
    return None if isinstance(item, Answered) and isinstance(item.said, Accepted) else item


def wait_long(town: Town) -> None:
    """Long enough for every repetition."""
    for _ in range(4):
        town.settle()
        town.wait(10_000)


def test_a_successor_gets_it_although_the_removal_is_heard_before_the_answer() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    town.meddle = without_accepted
    message = alice.says(bob, "two")
    town.settle(alice)
    new = reset(town, bob)
    town.settle(alice)
    assert alice.state(message) == "pending"
    town.meddle = lambda device, item: item
    new.connect()
    alice.cut()
    alice.connect()
    wait_long(town)
    assert (new.heard(), alice.state(message), alice.told(MessageFailed)) == (["two"], "delivered", [])


def test_a_successor_gets_what_counted_as_failed_until_its_void_was_answered() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    town.meddle = without_accepted
    message = alice.says(bob, "two")
    town.settle(alice)
    assert alice.machine.give_up(message.id, town.now)
    alice.store.put_message(replace(message, state=Tick.FAILED, reason="too_old"))
    new = reset(town, bob)
    new.connect()
    for _ in range(3):
        town.settle()
        town.wait(10_000)
    town.meddle = lambda device, item: item
    alice.cut()
    alice.connect()
    wait_long(town)
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")


def test_a_successor_gets_what_was_to_be_sealed_again_for_a_device_that_is_gone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()

    def damaged(_entry: object) -> None:
        raise Undecipherable

    bob.machine.sealer.sessions.open = damaged  # type: ignore[method-assign]
    message = alice.says(bob, "two")
    alice.exchange()
    bob.exchange()
    town.wait(10)
    bob.exchange()
    alice.cut()
    new = reset(town, bob)
    new.connect()
    town.settle(new)
    alice.connect()
    wait_long(town)
    assert (new.heard(), alice.state(message), alice.told(MessageFailed)) == (["two"], "delivered", [])


def test_what_a_removed_device_never_got_is_sealed_again_for_its_successor() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    bob.cut()
    message = alice.says(bob, "two")
    town.settle()
    new = reset(town, bob)
    new.connect()
    town.settle()
    town.wait(2_000)
    town.settle()
    assert (new.heard(), alice.state(message)) == (["two"], "delivered")
    assert alice.told(MessageFailed) == []


def test_if_nobody_comes_in_its_place_the_message_has_failed_also_after_a_crash() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    for device in (bob, laptop):
        device.cut()
    message = alice.says(bob, "two")
    town.settle()
    alice.cut()
    town.say(SERVER, Unlinked(bob.me.device))
    town.say(SERVER, Unlinked(laptop.me.device))
    town.meddle = lambda device, item: None if isinstance(item, Devices) else item
    alice.connect()
    town.settle()
    assert (alice.state(message), alice.store.orphans()) == ("sent", [message.id])
    alice.crash()
    town.meddle = lambda device, item: item
    alice.connect()
    town.settle()
    assert (alice.state(message), alice.store.orphans()) == ("failed", [])
    assert [failed.reason for failed in alice.told(MessageFailed)] == ["device_removed"]


def test_a_contact_who_closes_their_account_while_something_else_waits_for_their_list_is_simply_gone() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.cut()
    lost = alice.says(bob, "never delivered")
    town.settle()
    receipts: list[Receipts] = []

    def hold(device: int, item: FromServer) -> FromServer | None:
        if device == alice.me.device and isinstance(item, Receipts):
            receipts.append(item)
            return None
        return item

    town.meddle = hold
    town.say(bob.me.device, Closed(bob.me.account))
    alice.says(bob, "to nobody")
    town.settle()
    last = alice.says(bob, "and again")
    for item in receipts:
        alice.machine.receive(encode([item]), town.now)
        alice.look()
    town.meddle = lambda device, item: item
    town.settle()
    assert (alice.state(lost), alice.state(last), alice.store.orphans()) == ("failed", "failed", [])


def test_what_a_device_sent_before_it_left_the_list_is_shown_and_what_it_sends_later_is_not() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    laptop.says(alice, "one")
    town.settle()
    alice.cut()
    laptop.says(alice, "on my way out")
    town.settle()
    envelope = said_by(laptop, Sent)[-1].envelopes[0]
    town.say(bob.me.device, Unlinked(laptop.me.device))
    bob.machine.sign_again(town.now)
    bob.look()
    town.settle(bob)
    assert envelope.device == alice.me.device
    alice.connect()
    alice.says(bob, "hello")
    town.settle(alice, bob)
    assert alice.heard() == ["one", "on my way out"]
    town.wait(120_000)
    later = Entry(
        laptop.me.device, alice.me.account, 9, f"{laptop.me.device:x}:{town.now}:00009:x", b"t" * 16, Kind.TEXT,
        None, town.now, 0, envelope.ciphertext,
    )  # fmt: skip
    assert alice.machine.sealer.knows(later) is False
    for _ in range(33):
        town.wait(86_400_000)
        town.settle(alice, bob)
    assert laptop.me.device not in alice.store.peers(bob.me.account)


def test_a_contact_who_registers_again_twice_gets_what_neither_of_the_first_two_devices_got() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.cut()
    message = alice.says(bob, "undelivered")
    town.settle()
    second = register_again(town, bob)
    second.connect()
    town.settle(second)
    for _ in range(40):
        alice.carry_down()
        if any(row.only == second.me.device for row in alice.store.outgoing()):
            break
        alice.carry_up()
        town.wait(5)
    assert [row.only for row in alice.store.outgoing()] == [second.me.device]
    alice.cut()
    third = register_again(town, second, 10)
    third.connect()
    town.settle(third)
    alice.connect()
    pass_time(town, 0, 5_000, 60_000)
    assert (alice.state(message), third.heard()) == ("delivered", ["undelivered"])
