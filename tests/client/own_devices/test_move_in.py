"""An account moves to a device: it has the history, and it trusts nobody whom the old device did not trust."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import Moved, SecurityCodeChanged
from nightmail.client.own_devices.controls import Control
from nightmail.client.store.rows import Contact, ReadMark
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.lists import sign_list
from nightmail.model.records import Sent
from nightmail.model.words import Lane
from nightmail.wire.items import Devices, FromServer
from tests.client.sealed_town import a_town, agrees, keep_back, pass_time, revoke
from tests.client.town import Device, Town


def test_the_new_device_says_that_it_has_everything_also_if_that_was_written_before_a_restart() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.says(alice, "hi")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    while not any(row.content and decode_content(row.content).control == Control.MOVED for row in new.store.outgoing()):
        alice.exchange()
        new.carry_up()
        new.carry_down(1)
        town.wait(100)
    assert new.told(Moved) == []
    new.crash()
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert new.told(Moved) == [Moved(new.me.device)]
    assert Moved(new.me.device) in alice.told(Moved)


def test_whom_one_trusts_moves_along_and_another_key_is_announced_on_the_new_device() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.store.put_contact(Contact(bob.me.account, "bob", "Bobby"))
    alice.look()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    row, before = new.store.trusted(bob.me.account), alice.store.trusted(bob.me.account)
    assert row is not None
    assert row == before
    assert row.verified
    assert new.store.contact(bob.me.account) == Contact(bob.me.account, "bob", "Bobby")
    impersonate(town, new, bob)
    message = new.says(bob, "for bob")
    town.settle(new)
    assert [event.verified for event in new.told(SecurityCodeChanged)] == [True]
    assert new.state(message) == "pending"


def test_what_was_not_read_on_the_old_device_is_read_on_the_new_one_and_its_author_is_told() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    read = bob.says(alice, "one")
    town.settle()
    alice.read(bob)
    unread = bob.says(alice, "two")
    town.settle()
    new = town.pair(alice, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert Moved(new.me.device) in alice.told(Moved)
    assert [row.id for row in new.store.marked(ReadMark.UNREAD)] == [unread.id]
    alice.cut()
    town.devices.remove(alice)
    assert (bob.state(read), bob.state(unread)) == ("read", "delivered")
    new.read(bob)
    pass_time(town, 0)
    assert bob.state(unread) == "read"


def impersonate(town: Town, victim: Device, contact: Device) -> None:
    """The server shows a device another key of somebody."""
    keys = make_keys(Address(contact.me.device, contact.me.registration), town.secrets, town.now, primary=True)

    def meddle(device: int, item: FromServer) -> FromServer:
        if device != victim.me.device or not isinstance(item, Devices) or item.account != contact.me.account:
            return item
        devices = {keys.address: keys.identity.public}
        signed = sign_list(keys.account, item.account, item.version, devices, handle=contact.me.handle)
        return replace(item, signed=signed.signed)

    town.meddle = meddle


def test_a_new_device_seals_for_nobody_before_it_knows_whom_the_old_one_trusts() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    alice.look()
    new = town.pair(alice, hand_over=True)
    keep_back(town, alice, Lane.HIGH)  # so that it does not begin to send the history
    new.connect()
    pass_time(town, 0)
    message = new.says(bob, "not yet")
    bob.says(alice, "for both")
    pass_time(town, 0, 5_000)
    assert new.machine.parts.awaits_trust()
    assert new.session is not None
    assert message.id not in [body.id for body in new.session.heard if isinstance(body, Sent)]
    assert (new.state(message), new.heard()) == ("pending", ["for both"])
    town.meddle = lambda device, item: item
    alice.cut()
    alice.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert new.state(message) == "delivered"
    row = new.store.trusted(bob.me.account)
    assert row is not None
    assert row.verified


def test_another_key_that_the_new_device_was_shown_before_it_knew_better_is_a_change() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    bob.says(alice, "two")
    town.settle()
    assert agrees(town, alice, bob, verified=True)
    row = alice.store.trusted(bob.me.account)
    assert row is not None
    carol = town.join("carol")
    carol.connect()
    impersonate(town, carol, bob)
    carol.says(bob, "who is it?")
    town.settle()
    carol.machine.sealer.believed.adopt(row)
    after = carol.store.trusted(bob.me.account)
    assert after is not None
    carol.look()
    assert (after.held, after.verified, after.signed == row.signed) == (True, False, False)
    assert [event.verified for event in carol.told(SecurityCodeChanged)] == [True]
    carol.machine.sealer.believed.adopt(after)
    assert carol.store.trusted(bob.me.account) == after


def test_if_the_old_device_is_gone_the_new_one_goes_on_without_it() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    new = town.pair(alice, hand_over=True)
    keep_back(town, alice, Lane.HIGH)
    new.connect()
    pass_time(town, 0)
    message = new.says(bob, "without you, then")
    pass_time(town, 0)
    alice.cut()
    town.devices.remove(alice)
    revoke(town, new, alice)
    pass_time(town, 0, 5_000)
    assert new.state(message) == "delivered"
