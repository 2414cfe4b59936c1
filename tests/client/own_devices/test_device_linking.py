"""A further device is taken in, whatever is lost on the way: stories that a simulated world has told."""

from __future__ import annotations

from copy import deepcopy

import pytest
from msgspec.structs import replace

from nightmail.client.events import DeviceLinked, DeviceNotLinked, ListRefused, Provisioned, Reachable
from nightmail.client.inbox.inbox import UNPROVISIONED
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.device_linking import ERRAND
from nightmail.client.store.rows import OwnKeys
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.state import encode_keys
from nightmail.model.answers import Done
from nightmail.model.ids import SERVER
from nightmail.model.records import Claimed, Listed, Unlinked
from nightmail.wire.items import Answered, Devices, Entries, FromServer
from tests.client.sealed_town import a_town, said_by
from tests.client.town import Device, Town


def again(town: Town, device: Device) -> None:
    """From now on nothing is kept back, over a new connection."""
    town.meddle = lambda device, item: item
    device.cut()
    device.connect()
    town.settle()


def test_linking_goes_on_although_the_answer_to_the_list_was_lost() -> None:
    town, (alice,) = a_town("alice")
    town.meddle = lambda device, item: None if isinstance(item, Answered) and item.said == Done() else item
    laptop = town.pair(alice)
    laptop.connect()
    town.settle(alice, laptop)
    assert alice.told(DeviceLinked) == []
    again(town, alice)
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
    assert laptop.told(Provisioned) == [Provisioned()]


def test_whoever_waits_is_told_also_if_the_word_to_the_new_device_was_written_before_a_restart() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    laptop.connect()
    while not alice.store.outgoing():
        laptop.exchange()
        alice.exchange()
        town.wait(100)
    assert (alice.store.errands(ERRAND), alice.told(DeviceLinked)) == ([], [])
    alice.crash()
    alice.connect()
    town.settle()
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
    again(town, alice)
    assert len(alice.told(DeviceLinked)) == 1


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


def test_a_device_that_cannot_judge_what_it_gets_looks_again_from_the_beginning() -> None:
    """What it cannot acknowledge may leave no credit for the word that it waits for."""
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice, secret=b"not yet the code")
    laptop.connect()
    town.settle()
    bob.says(alice, "hello")
    town.settle()
    assert (laptop.plugged, laptop.hung_up) == (True, None)
    town.wait(ClientLimits().stuck_ms)
    assert (laptop.plugged, laptop.hung_up) == (False, UNPROVISIONED)


def test_a_device_that_waits_for_its_word_and_has_nothing_else_stays_connected() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.meddle = lambda device, item: None if isinstance(item, Entries) else item
    laptop.connect()
    town.settle()
    town.wait(ClientLimits().stuck_ms)
    assert (laptop.plugged, laptop.told(Provisioned)) == (True, [])


def test_a_session_that_cannot_be_begun_anew_because_the_device_is_gone_is_left_as_it_is() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    town.wait(ClientLimits().restart_ms + 1)
    sessions = alice.machine.sealer.sessions
    sessions.renew(bob.me.device)
    bob.cut()
    town.say(SERVER, Unlinked(bob.me.device))
    woken: list[str] = []
    devices = {bob.me.device: bob.me.registration}
    assert not sessions.ready(devices, "who", lambda: woken.append("good"), lambda: woken.append("not now"))
    alice.look()
    town.settle()
    assert (woken, alice.store.claims()) == (["good"], {})


# --- guests that do not come ----------------------------------------------------------------------


def a_guest_with_keys(town: Town, alice: Device) -> Device:
    """It was agreed to, and its keys are here; but it is not listed yet."""
    laptop = town.pair(alice)
    laptop.connect()
    while alice.machine.sealer.sessions.find(laptop.me.device) is None:
        laptop.exchange()
        alice.carry_down()
        if alice.machine.sealer.sessions.find(laptop.me.device) is None:
            alice.carry_up()
            town.wait(100)
    return laptop


@pytest.mark.parametrize("crashed", [False, True])
def test_a_guest_that_is_revoked_before_it_is_listed_is_let_go_and_nobody_else_waits(crashed: bool) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = a_guest_with_keys(town, alice)
    if crashed:
        alice.crash()
    else:
        alice.cut()
    laptop.cut()
    town.devices.remove(laptop)
    town.say(SERVER, Unlinked(laptop.me.device))
    alice.connect()
    town.settle()
    assert len(said_by(alice, Listed)) == 1
    tablet = town.pair(alice)
    tablet.connect()
    for _ in range(20):
        town.settle()
        town.wait(1_000)
    assert [event.device for event in alice.told(DeviceNotLinked)] == [laptop.me.device]
    assert alice.told(DeviceLinked) == [DeviceLinked(tablet.me.device)]
    assert (alice.store.errands(ERRAND), alice.store.peer(laptop.me.device)) == ([], None)
    message = bob.says(alice, "hello")
    town.settle()
    assert (bob.state(message), tablet.heard()) == ("delivered", ["hello"])


def test_a_guest_that_never_comes_is_asked_for_ever_more_seldom_and_then_no_longer_waited_for() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.devices.remove(laptop)
    for _ in range(2 * ClientLimits().link_ms // 1_000):
        town.wait(1_000)
        while alice.exchange():
            pass
    assert 20 < len(said_by(alice, Claimed)) < 100
    assert alice.told(DeviceNotLinked) == [DeviceNotLinked(laptop.me.device, "it did not come in time")]
    assert (alice.store.errands(ERRAND), alice.store.claims()) == ([], {})


def test_a_guest_that_is_revoked_before_it_came_is_not_asked_for_again() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    town.devices.remove(laptop)
    town.say(SERVER, Unlinked(laptop.me.device))
    for _ in range(30):
        town.wait(1_000)
        town.settle()
    assert len(said_by(alice, Claimed)) == 1
    assert [event.device for event in alice.told(DeviceNotLinked)] == [laptop.me.device]


def test_whoever_revokes_a_guest_does_not_wait_for_it() -> None:
    town, (alice,) = a_town("alice")
    laptop = town.pair(alice)
    alice.machine.dismiss(laptop.me.device, town.now)
    alice.look()
    laptop.connect()
    town.settle()
    assert alice.told(DeviceNotLinked) == [DeviceNotLinked(laptop.me.device, "it was revoked")]
    assert (alice.told(DeviceLinked), alice.store.errands(ERRAND)) == ([], [])


# --- versions ---------------------------------------------------------------------------------------


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


def test_many_lists_are_signed_by_and_by() -> None:
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
    again(town, alice)
    assert alice.told(DeviceLinked) == [DeviceLinked(laptop.me.device)]
