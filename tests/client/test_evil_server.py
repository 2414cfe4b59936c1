"""A server that lies: whatever it tries is refused with a clear word, and the honest messages arrive all the same.

Each attempt has its line in docs/threats.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from msgspec.structs import replace

from nightmail.client.events import KeysRefused, ListRefused, Provisioned, Reachable, SecurityCodeChanged, Unreadable
from nightmail.client.mending import ERRAND as MEND
from nightmail.e2ee import keys as own_keys
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.identity import Address
from nightmail.e2ee.lists import check_list, sign_list
from nightmail.model.answers import Bundle
from nightmail.model.ids import device_id
from nightmail.model.records import Claimed, Listed, Sent
from nightmail.model.refusals import RateLimited
from nightmail.model.rows import Change, Entry
from nightmail.model.words import Kind, Lane, Reason, State
from nightmail.wire.frames import encode
from nightmail.wire.items import Answered, Devices, Entries, FromServer, Receipts
from tests.client.test_sealed import a_town, agrees, said_by
from tests.client.town import Device, Town

Item = TypeVar("Item")


def forge(town: Town, victim: Device, kind: type[Item], change: Callable[[Item], FromServer | None]) -> None:
    """From now on, everything of one kind that is handed to the victim is changed first."""
    town.meddle = lambda device, item: change(item) if device == victim.me.device and isinstance(item, kind) else item


def honest(town: Town) -> None:
    town.meddle = lambda device, item: item


def sentences(device: Device, kind: type[ListRefused] | type[KeysRefused]) -> str:
    return " ".join(event.why for event in device.told(kind))


def forge_list(town: Town, victim: Device, account: int, change: Callable[[Devices], Devices]) -> None:
    forge(town, victim, Devices, lambda item: change(item) if item.account == account else item)


def recover(town: Town) -> None:
    """The server has become honest; what waits goes out by its schedule."""
    honest(town)
    town.settle()
    town.wait(400_000)
    town.settle()


# --- keys ---------------------------------------------------------------------------------------


def test_swapped_prekeys_are_refused_and_an_honest_bundle_is_taken_later() -> None:
    town, (alice, bob, mallory) = a_town("alice", "bob", "mallory")
    theirs = own_keys.upload(mallory.machine.sealed.keyring.keys)

    def swap(item: Answered) -> Answered:
        if not isinstance(item.said, Bundle):
            return item
        return Answered(item.ref, replace(item.said, signed=theirs.signed, kem=theirs.last_resort, one_time=None))

    forge(town, alice, Answered, swap)
    message = alice.says(bob, "for Bob alone")
    town.settle()
    assert "does not verify" in sentences(alice, KeysRefused)
    assert said_by(alice, Sent) == []
    recover(town)
    assert (bob.heard(), alice.state(message)) == (["for Bob alone"], "delivered")


def test_another_devices_whole_bundle_is_refused() -> None:
    town, (alice, bob, mallory) = a_town("alice", "bob", "mallory")
    theirs = own_keys.upload(mallory.machine.sealed.keyring.keys)

    def swap(item: Answered) -> Answered:
        if not isinstance(item.said, Bundle):
            return item
        m = mallory.me
        bundle = Bundle(m.device, m.registration, theirs.identity, theirs.signed, theirs.last_resort, None)
        return Answered(item.ref, bundle)

    forge(town, alice, Answered, swap)
    alice.says(bob, "for Bob alone")
    town.settle()
    assert alice.told(KeysRefused) != []
    assert said_by(alice, Sent) == []
    recover(town)
    assert bob.heard() == ["for Bob alone"]


# --- lists --------------------------------------------------------------------------------------


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
    alice.machine._lists.forget(bob.me.account)
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
    key, account = bob.machine.sealed.keyring.keys.account, bob.me.account
    spy = own_keys.make_keys(Address(device_id(account, 99), 1), town.secrets, town.now)

    def fork(item: Devices) -> Devices:
        known = check_list(item.signed, account)
        other = sign_list(key, account, known.version, {**known.devices, spy.address: spy.identity.public})
        return replace(item, signed=other.signed)

    forge_list(town, alice, account, fork)
    alice.machine._lists.forget(account)
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
        signed = sign_list(theirs.account, item.account, item.version, {theirs.address: theirs.identity.public})
        return replace(item, signed=signed.signed)

    forge_list(town, alice, account, impersonate)
    alice.machine._lists.forget(account)
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
        signed = sign_list(theirs.account, item.account, item.version, {theirs.address: theirs.identity.public})
        return replace(item, signed=signed.signed)

    forge_list(town, alice, bob.me.account, impersonate)
    alice.machine._lists.forget(bob.me.account)
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
        signed = sign_list(theirs.account, item.account, item.version, {theirs.address: theirs.identity.public})
        return replace(item, signed=signed.signed)

    forge_list(town, alice, bob.me.account, impersonate)
    alice.machine._lists.forget(bob.me.account)
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
        signed = sign_list(theirs.account, item.account, item.version, {theirs.address: theirs.identity.public})
        return replace(item, signed=signed.signed)

    town.meddle = lambda device, item: None if isinstance(item, Answered) else item
    alice.says(bob, "two")
    assert [len(row.envelopes) for row in alice.store.outgoing()] == [1]
    forge_list(town, alice, bob.me.account, impersonate)
    alice.cut()
    alice.machine._lists.forget(bob.me.account)
    alice.connect()
    town.settle()
    assert [event.verified for event in alice.told(SecurityCodeChanged)] == [False]
    assert [len(row.envelopes) for row in alice.store.outgoing()] == [0]
    assert alice.machine.sealed.sessions.find(bob.me.device) is None


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
    known = alice.machine.sealed.trust.of(alice.me.account)
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


# --- envelopes ----------------------------------------------------------------------------------


def entries_of(town: Town, victim: Device) -> list[Entry]:
    """What the victim is handed from now on, as it comes."""
    seen: list[Entry] = []

    def note(item: Entries) -> Entries:
        seen.extend(item.entries)
        return item

    forge(town, victim, Entries, note)
    return seen


def hand(town: Town, victim: Device, *entries: Entry) -> None:
    """Entries that nobody filed, under the next numbers of the lane."""
    first = victim.store.cursors().normal + 1
    victim.machine.receive(encode([Entries(Lane.NORMAL, first, entries)]), town.now)
    victim.look()


def test_a_replayed_envelope_is_refused_and_shown_once() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    seen = entries_of(town, bob)
    alice.says(bob, "pay 10")
    town.settle()
    honest(town)
    hand(town, bob, replace(seen[0], n=2, at=seen[0].at + 5))
    assert bob.heard() == ["pay 10"]
    assert len(bob.told(Unreadable)) == 1
    hand(town, bob, replace(seen[0], id=seen[0].id[:-1] + "z", n=3))
    assert bob.heard() == ["pay 10"]


def test_reordered_envelopes_open_and_each_is_shown_as_what_it_is() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.says(alice, "yes")
    town.settle()
    for n in range(3):
        alice.says(bob, str(n))
    forge(town, bob, Entries, lambda item: replace(item, entries=item.entries[::-1]))
    town.settle()
    assert sorted(bob.heard()) == ["0", "1", "2", "zero"]
    texts = [message.text for message in bob.store.history(alice.me.account, 9)]
    assert texts == ["zero", "yes", "0", "1", "2"]


def test_an_envelope_for_one_is_refused_by_another_and_under_anothers_name() -> None:
    town, (alice, bob, carol) = a_town("alice", "bob", "carol")
    for one, other in ((alice, bob), (alice, carol), (carol, bob)):
        one.says(other, "hello")
    town.settle()
    seen = entries_of(town, bob)
    alice.says(bob, "for Bob")
    town.settle()
    honest(town)
    hand(town, carol, replace(seen[0], to=carol.me.account))
    ident = seen[0].id.replace(f"{alice.me.device:x}", f"{carol.me.device:x}")
    hand(town, bob, replace(seen[0], by=carol.me.device, id=ident))
    hand(town, bob, replace(seen[0], by=carol.me.device))
    assert carol.heard() == ["hello"]
    assert sorted(bob.heard()) == ["for Bob", "hello", "hello"]
    assert (len(carol.told(Unreadable)), len(bob.told(Unreadable))) == (1, 2)


@pytest.mark.parametrize(
    "lie",
    [
        {"kind": Kind.MEDIA},
        {"kind": Kind.CONTROL},
        {"tag": b"x" * 16},
        {"to": 4711},
    ],
    ids=["kind", "control", "tag", "conversation"],
)
def test_what_is_announced_as_something_else_is_refused_and_sealed_again(lie: dict[str, object]) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lies = [1]

    def change(item: Entries) -> Entries:
        if not lies:
            return item
        lies.clear()
        return replace(item, entries=tuple(replace(entry, **lie) for entry in item.entries))

    forge(town, bob, Entries, change)
    message = alice.says(bob, "hello")
    town.settle()
    assert len(bob.told(Unreadable)) == 1
    assert (bob.heard(), alice.state(message)) == (["hello"], "delivered")


def test_another_id_around_an_envelope_is_refused() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lies = [1]

    def change(item: Entries) -> Entries:
        if not lies:
            return item
        lies.clear()
        return replace(item, entries=tuple(replace(e, id=e.id[:-4] + "zzzz") for e in item.entries))

    forge(town, bob, Entries, change)
    alice.says(bob, "hello")
    town.settle()
    assert len(bob.told(Unreadable)) == 1
    assert bob.heard() == ["hello"]


def test_two_contents_under_one_id_show_one() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    seen = entries_of(town, bob)
    message = alice.says(bob, "I owe you 10")
    town.settle()
    honest(town)
    alice.store.put_message(replace(message, body=message.body.replace(b"10", b"99")))
    alice.machine._outbox.reseal(replace(message, body=message.body.replace(b"10", b"99")), bob.me.device)
    alice.look()
    town.settle()
    assert len(seen) == 1
    assert bob.heard() == ["I owe you 10"]
    assert [m.text for m in bob.store.history(alice.me.account, 9)] == ["I owe you 10"]


def test_a_claim_that_is_refused_is_asked_again_when_it_may_be_and_never_at_once() -> None:
    """Also if there is a session, but with whoever had that number before."""
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    key, account = bob.machine.sealed.keyring.keys.account, bob.me.account
    other = own_keys.make_keys(Address(bob.me.device, bob.me.registration), town.secrets, town.now)
    row = town.loop.state.accounts[account]
    assert row is not None
    signed = sign_list(key, account, row.list_version + 1, {other.address: other.identity.public})
    bob.cut()
    town.say(bob.me.device, Listed(account, signed.version, (bob.me.device,), signed.signed))
    alice.machine._lists.forget(account)
    limited = 60_000
    forge(
        town, alice, Answered,
        lambda item: Answered(item.ref, RateLimited(limited)) if isinstance(item.said, Bundle) else item,
    )  # fmt: skip
    before = len(said_by(alice, Claimed))
    alice.says(bob, "two")
    for _ in range(100):
        town.settle(alice)
        town.wait(1_000)
    assert len(said_by(alice, Claimed)) - before == 2


# --- receipts -----------------------------------------------------------------------------------


def test_forged_unreadable_receipts_cause_three_reseals_and_two_sessions_an_hour() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "zero")
    town.settle()
    bob.says(alice, "yes")
    town.settle()
    forge(town, alice, Receipts, lambda item: None)
    alice.says(bob, "hello")
    town.settle()
    claims, sends = len(said_by(alice, Claimed)), len(said_by(alice, Sent))
    key = (alice.me.device, bob.me.account, Lane.NORMAL, bob.me.device, State.FAILED, 2)
    for hour in range(5):
        for n in range(10):
            seq = alice.store.cursors().changes + 1 + n
            change = Change(key, seq, town.now, Reason.UNDECRYPTABLE, [2, 2])
            alice.machine.receive(encode([Receipts((change,))]), town.now)
            alice.look()
            town.settle()
        assert len(said_by(alice, Claimed)) - claims <= 2 * hour
        town.wait(alice.limits.restart_ms)
        town.settle()
    assert len(said_by(alice, Sent)) - sends == 3
    assert alice.store.errands(MEND) == []
    assert bob.heard() == ["zero", "hello"]
