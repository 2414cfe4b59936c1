"""The account's own list: signed by its primary device, and never in a circle."""

from __future__ import annotations

from copy import deepcopy

from msgspec.structs import replace

from nightmail.client.events import DeviceLinked, ListRefused, Provisioned, Reachable
from nightmail.client.limits import ClientLimits
from nightmail.client.store.rows import OwnKeys
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.state import encode_keys
from nightmail.model.records import Listed
from nightmail.wire.items import Devices, FromServer
from tests.client.sealed_town import a_town, said_by, stop_meddling
from tests.client.town import Town


def test_a_device_that_was_told_by_an_older_list_asks_for_the_one_that_names_it() -> None:
    town, (alice,) = a_town("alice")
    signed = alice.machine.sealer.believed.of(alice.me.account)
    assert signed is not None
    laptop = town.pair(alice)

    def older(device: int, item: FromServer) -> FromServer | None:
        if device != laptop.me.device or not isinstance(item, Devices):
            return item
        return Devices(item.ref, item.account, signed.version, {alice.me.device: alice.me.registration}, signed.signed)

    town.meddle = older
    laptop.connect()
    town.settle()
    assert (laptop.told(Provisioned), laptop.told(Reachable)) == ([Provisioned()], [])
    town.meddle = lambda device, item: item
    town.wait(600_000)
    town.settle()
    assert laptop.told(Reachable) == [Reachable()]


def test_a_server_that_was_restored_is_brought_above_every_list_that_contacts_have_seen() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    row = town.loop.state.accounts[alice.me.account]
    assert row is not None
    old = deepcopy(row)
    others = [town.pair(alice), town.pair(alice)]
    for device in others:
        device.connect()
        town.settle()
    bob.says(alice, "one")
    town.settle()
    seen = row.list_version
    for device in (alice, bob, *others):
        device.cut()
    row.list_version, row.signed_list, row.listed = old.list_version, old.signed_list, old.listed
    for device in others:
        town.devices.remove(device)
        del row.devices[device.me.device]
    alice.crash()
    alice.connect()
    bob.connect()
    town.settle()
    message = bob.says(alice, "two")
    town.settle()
    assert row.list_version == seen + 1
    assert (bob.state(message), alice.heard()) == ("delivered", ["one", "two"])


def test_many_lists_are_signed_a_few_per_minute() -> None:
    town = Town(0, sealed=True)
    alice = town.join("alice", limits=ClientLimits(lists_per_minute=3))
    keys = make_keys(Address(alice.me.device, alice.me.registration), town.secrets, town.now, primary=True)
    alice.store.put_own_keys(OwnKeys(encode_keys(keys), list_version=20, list_signed=b"what contacts have seen"))
    alice.connect()
    town.settle()
    assert len(said_by(alice, Listed)) == 3
    for _ in range(10):
        town.wait(60_000)
        town.settle()
    signed = alice.machine.sealer.believed.of(alice.me.account)
    assert signed is not None
    assert (signed.version, said_by(alice, Listed)[-1].version) == (21, 21)


def test_a_server_that_claims_a_huge_version_does_not_get_it_signed() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.meddle = lambda device, item: replace(item, version=1 << 40) if isinstance(item, Devices) else item
    laptop.connect()
    town.settle()
    town.wait(400_000)
    town.settle()
    assert len(said_by(alice, Listed)) == 1
    assert "version 1099511627776 is claimed" in " ".join(event.why for event in alice.told(ListRefused))
    stop_meddling(town, alice)
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
