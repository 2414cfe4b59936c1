"""Who wrote: the handle that the author's signed list names."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.messages import Message, unnamed
from nightmail.e2ee.lists import check_list, sign_list
from nightmail.wire.items import Devices
from tests.client.forging import forge_list, honest
from tests.client.sealed_town import a_town


def test_the_first_message_of_a_stranger_shows_their_handle() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    bob.says(alice, "hello")
    town.settle()
    assert [(each.handle, each.text) for each in alice.told(Message)] == [("bob", "hello")]
    assert alice.store.conversation(bob.me.account).handle == "bob"


def test_a_linked_device_learns_the_handle_of_a_person_to_whom_another_device_wrote() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    laptop.connect()
    town.settle()
    alice.says(bob, "hello")
    town.settle()
    assert [(each.own, each.text) for each in laptop.told(Message)] == [(True, "hello")]
    assert laptop.store.conversation(bob.me.account).handle == "bob"


def test_a_sender_whose_list_names_no_handle_is_shown_as_unknown_and_named_by_the_next_list() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account

    def without_handle(item: Devices) -> Devices:
        known = check_list(item.signed, account)
        return replace(item, signed=sign_list(key, account, known.version, known.devices, known.departed).signed)

    forge_list(town, alice, account, without_handle)
    bob.says(alice, "one")
    town.settle()
    honest(town)
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    alice.cut()
    alice.connect()
    town.settle()
    for text in ("two", "three"):
        bob.says(alice, text)
        town.settle()
    told = [(each.handle, each.text) for each in alice.told(Message)]
    assert told == [(unnamed(account), "one"), (unnamed(account), "two"), ("bob", "three")]
