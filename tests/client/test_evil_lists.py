"""A server that lies about devices: each lie is refused with a sentence, and nothing is sealed by it."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.addressees import Addressee, addressee_in
from nightmail.client.events import ListRefused, Provisioned, Reachable, SecurityCodeChanged
from nightmail.client.store.rows import Trusted
from nightmail.e2ee import keys as own_keys
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.identity import Address
from nightmail.e2ee.lists import check_list, sign_list
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Listed, Sent
from nightmail.wire.items import Answered, Devices
from tests.client.forging import forge_list, honest, recover, sentences
from tests.client.sealed_town import a_town, agrees, said_by
from tests.client.town import Device, Town


def test_an_injected_device_is_refused_and_nothing_is_sealed_by_that_list() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    spy = device_id(bob.me.account, 99)
    forge_list(town, alice, bob.me.account, lambda item: replace(item, devices={**item.devices, spy: 1}))
    alice.says(bob, "hello")
    town.settle()
    assert f"device {spy:x} is not on version" in sentences(alice, ListRefused)
    assert said_by(alice, Sent) == []
    recover(town)
    assert bob.heard() == ["hello"]


def test_an_injected_own_device_is_refused_too() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.crash()
    alice.connect()
    spy = device_id(alice.me.account, 99)
    forge_list(town, alice, alice.me.account, lambda item: replace(item, devices={**item.devices, spy: 1}))
    alice.says(bob, "hello")
    town.settle()
    assert f"device {spy:x} is not on version" in sentences(alice, ListRefused)
    assert said_by(alice, Sent) == []
    recover(town)
    assert bob.heard() == ["hello"]


def test_a_list_that_is_rolled_back_is_refused() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    old: list[Devices] = []

    def note(item: Devices) -> Devices:
        old.append(item)
        return item

    forge_list(town, alice, bob.me.account, note)
    alice.says(bob, "one")
    town.settle()
    honest(town)
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    alice.says(bob, "two")
    town.settle()
    forge_list(town, alice, bob.me.account, lambda item: replace(old[0], ref=item.ref))
    alice.machine.parts.lists.forget(bob.me.account)
    before = len(said_by(alice, Sent))
    alice.says(bob, "three")
    town.settle()
    assert "went back from version" in sentences(alice, ListRefused)
    assert len(said_by(alice, Sent)) == before
    recover(town)
    assert (bob.heard(), laptop.heard()) == (["one", "two", "three"], ["two", "three"])


def test_two_lists_of_one_version_are_refused() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account
    spy = own_keys.make_keys(Address(device_id(account, 99), 1), town.secrets, town.now)

    def fork(item: Devices) -> Devices:
        known = check_list(item.signed, account)
        devices = {**known.devices, spy.address: spy.identity.public}
        other = sign_list(key, account, known.version, devices, handle="bob")
        return replace(item, signed=other.signed)

    forge_list(town, alice, account, fork)
    alice.machine.parts.lists.forget(account)
    alice.says(bob, "two")
    town.settle()
    assert "two contents for version" in sentences(alice, ListRefused)
    recover(town)
    assert bob.heard() == ["one", "two"]


def test_a_list_signed_by_nobody_is_refused() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    forge_list(town, alice, bob.me.account, lambda item: replace(item, signed=item.signed[:-1] + b"\0"))
    alice.says(bob, "hello")
    town.settle()
    assert "does not verify" in sentences(alice, ListRefused)
    recover(town)
    assert bob.heard() == ["hello"]


def test_what_was_compared_is_verified_and_nothing_that_the_server_put_in_its_place() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    account = bob.me.account
    compared = alice.machine.account_key(account)
    theirs = own_keys.make_keys(Address(bob.me.device, bob.me.registration), town.secrets, town.now, primary=True)

    def impersonate(item: Devices) -> Devices:
        devices = {theirs.address: theirs.identity.public}
        signed = sign_list(theirs.account, item.account, item.version, devices, handle="bob")
        return replace(item, signed=signed.signed)

    forge_list(town, alice, account, impersonate)
    alice.machine.parts.lists.forget(account)
    alice.says(bob, "two")
    town.settle()
    assert alice.machine.account_key(account) != compared
    for verified in (True, False):
        assert not alice.machine.agree(account, town.now, key=compared, verified=verified)
    trusted = alice.store.trusted(account)
    assert trusted is not None
    assert not trusted.verified


def test_another_account_key_is_announced_and_a_verified_contact_gets_nothing_under_it() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    agrees(town, alice, bob, verified=True)
    alice.look()
    theirs = own_keys.make_keys(Address(bob.me.device, bob.me.registration), town.secrets, town.now, primary=True)

    def impersonate(item: Devices) -> Devices:
        devices = {theirs.address: theirs.identity.public}
        signed = sign_list(theirs.account, item.account, item.version, devices, handle="bob")
        return replace(item, signed=signed.signed)

    forge_list(town, alice, bob.me.account, impersonate)
    alice.machine.parts.lists.forget(bob.me.account)
    before = len(said_by(alice, Sent))
    alice.says(bob, "two")
    town.settle()
    assert [event.verified for event in alice.told(SecurityCodeChanged)] == [True]
    assert len(said_by(alice, Sent)) == before


def test_another_key_for_the_own_account_is_never_believed() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    key = town.secrets.draw(32)

    def impersonate(item: Devices) -> Devices:
        known = check_list(item.signed, item.account)
        return replace(item, signed=sign_list(key, item.account, known.version + 1, known.devices).signed)

    forge_list(town, alice, alice.me.account, impersonate)
    alice.machine.forget_own_devices()
    alice.says(bob, "hello")
    town.settle()
    assert "the security code has changed" in sentences(alice, ListRefused)
    assert said_by(alice, Sent) == []
    recover(town)
    assert bob.heard() == ["hello"]


def test_another_key_with_an_injected_device_is_not_even_a_change() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    theirs = own_keys.make_keys(Address(device_id(bob.me.account, 99), 1), town.secrets, town.now, primary=True)

    def impersonate(item: Devices) -> Devices:
        devices = {theirs.address: theirs.identity.public}
        signed = sign_list(theirs.account, item.account, item.version, devices, handle="bob")
        return replace(item, signed=signed.signed)

    forge_list(town, alice, bob.me.account, impersonate)
    alice.machine.parts.lists.forget(bob.me.account)
    alice.says(bob, "two")
    town.settle()
    assert alice.told(SecurityCodeChanged) == []
    assert "is not on version" in sentences(alice, ListRefused)
    recover(town)
    assert bob.heard() == ["one", "two"]


def test_what_was_sealed_for_a_former_key_is_not_sent_under_another() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    theirs = own_keys.make_keys(Address(bob.me.device, bob.me.registration), town.secrets, town.now, primary=True)

    def impersonate(item: Devices) -> Devices:
        devices = {theirs.address: theirs.identity.public}
        signed = sign_list(theirs.account, item.account, item.version, devices, handle="bob")
        return replace(item, signed=signed.signed)

    town.meddle = lambda device, item: None if isinstance(item, Answered) else item
    alice.says(bob, "two")
    assert [len(row.envelopes) for row in alice.store.outgoing()] == [1]
    forge_list(town, alice, bob.me.account, impersonate)
    alice.cut()
    alice.machine.parts.lists.forget(bob.me.account)
    alice.connect()
    town.settle()
    assert [event.verified for event in alice.told(SecurityCodeChanged)] == [False]
    assert [len(row.envelopes) for row in alice.store.outgoing()] == [0]
    assert alice.machine.sealer.sessions.find(bob.me.device) is None


def test_a_list_of_the_own_account_that_somebody_else_signed_is_refused_from_the_first_day() -> None:
    town = Town(sealed=True)
    alice = town.join("alice")
    mallory = own_keys.make_keys(Address(alice.me.device, alice.me.registration), town.secrets, town.now, primary=True)

    def impersonate(item: Devices) -> Devices:
        signed = sign_list(mallory.account, item.account, item.version, {mallory.address: mallory.identity.public})
        return replace(item, signed=signed.signed)

    forge_list(town, alice, alice.me.account, impersonate)
    alice.connect()
    town.settle()
    assert "the security code has changed" in sentences(alice, ListRefused)
    assert alice.told(Reachable) == []
    known = alice.machine.sealer.believed.of(alice.me.account)
    assert known is None or known.key != signing_public(mallory.account)


def test_a_new_device_does_not_believe_a_list_that_is_not_by_the_key_it_was_told() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    laptop = town.pair(alice)
    key = town.secrets.draw(32)

    def impersonate(item: Devices) -> Devices:
        known = check_list(item.signed, item.account)
        return replace(item, signed=sign_list(key, item.account, known.version, known.devices).signed)

    forge_list(town, laptop, alice.me.account, impersonate)
    laptop.connect()
    town.settle()
    assert laptop.told(Provisioned) == []
    honest(town)
    laptop.cut()
    laptop.connect()
    town.settle()
    assert laptop.told(Provisioned) == [Provisioned()]
    bob.says(alice, "to both")
    town.settle()
    assert laptop.heard() == ["to both"]


# --- whose list it is ---------------------------------------------------------------------------

TWINS = "user6988202", "user21267976"
"""Two handles whose hashes agree in every bit that an account's id has."""


def asks_for(device: Device, handle: str) -> None:
    """The person wrote to this handle, and nothing else is known of it."""
    device.store.put_conversation(replace(device.store.conversation(account_id(handle)), handle=handle))


def test_what_was_written_to_one_handle_is_never_sealed_for_another_with_the_same_id() -> None:
    wanted, named = TWINS
    assert account_id(wanted) == account_id(named)
    town, (alice, other) = a_town("alice", named)
    asks_for(alice, wanted)
    message = alice.says(other, "for your eyes only")
    town.settle()
    assert f"{wanted!r} was asked for, and the list of account {other.me.account:x} belongs to {named!r}" in (
        sentences(alice, ListRefused)
    )
    assert (said_by(alice, Sent), other.heard(), alice.state(message)) == ([], [], "failed")
    # From now on the wanted handle means the id of the next probe.
    assert addressee_in(alice.store, wanted) == Addressee(account_id(wanted, 1), wanted, is_known=False)


def test_the_account_that_has_the_id_can_still_be_written_to_under_its_own_handle() -> None:
    wanted, named = TWINS
    town, (alice, other) = a_town("alice", named)
    asks_for(alice, wanted)
    alice.says(other, "for your eyes only")
    town.settle()
    alice.says(other, "hello")
    recover(town)
    assert other.heard() == ["hello"]
    assert alice.store.conversation(other.me.account).handle == named


def test_a_list_that_no_longer_names_its_handle_is_refused() -> None:
    """Also under another key: an account keeps its handle for ever."""
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account
    for signing in (key, town.secrets.draw(32)):

        def rename(item: Devices, signing: bytes = signing) -> Devices:
            known = check_list(item.signed, account)
            signed = sign_list(signing, account, known.version + 1, known.devices).signed
            return replace(item, version=known.version + 1, signed=signed)

        forge_list(town, alice, account, rename)
        alice.machine.parts.lists.forget(account)
        before = len(said_by(alice, Sent))
        alice.says(bob, "two")
        town.settle()
        assert "names no handle" in sentences(alice, ListRefused)
        assert len(said_by(alice, Sent)) == before
        assert alice.told(SecurityCodeChanged) == []
    recover(town)
    assert bob.heard() == ["one", "two", "two"]


def test_a_list_from_before_handles_were_named_is_believed_until_one_is_named() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account

    def unnamed(item: Devices) -> Devices:
        known = check_list(item.signed, account)
        return replace(item, signed=sign_list(key, account, known.version, known.devices, known.departed).signed)

    forge_list(town, alice, account, unnamed)
    asks_for(alice, "bob")
    alice.says(bob, "one")
    town.settle()
    assert bob.heard() == ["one"]
    honest(town)
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    alice.says(bob, "two")
    town.settle()
    known = alice.machine.sealer.believed.of(account)
    assert (bob.heard(), known and known.handle) == (["one", "two"], "bob")


def test_a_device_names_its_handle_in_the_next_list_if_the_present_one_names_none() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account
    known = bob.machine.sealer.believed.of(account)
    assert known is not None
    bob.cut()
    unnamed = sign_list(key, account, known.version + 1, known.devices)
    town.say(bob.me.device, Listed(account, unnamed.version, (bob.me.device,), unnamed.signed))
    # As a profile of that time has it.
    bob.store.put_trusted(Trusted(account, unnamed.signed))
    own = bob.store.own_keys()
    assert own is not None
    bob.store.put_own_keys(replace(own, list_version=unnamed.version, list_signed=unnamed.signed))
    bob.store.commit()
    bob.crash()
    bob.connect()
    town.settle()
    row = town.loop.state.accounts[account]
    assert row is not None
    assert (row.list_version, check_list(row.signed_list, account).handle) == (unnamed.version + 1, "bob")
    alice.says(bob, "hello")
    town.settle()
    assert bob.heard() == ["hello"]
