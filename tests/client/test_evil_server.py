"""A server that lies: whatever it tries is refused with a clear word, and the honest messages arrive all the same.

Each attempt has its line in docs/threats.md.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.client.events import KeysRefused, Unreadable
from nightmail.client.outbox.reseals import ERRAND as MEND
from nightmail.e2ee import keys as own_keys
from nightmail.e2ee.identity import Address
from nightmail.e2ee.lists import sign_list
from nightmail.model.answers import Bundle
from nightmail.model.records import Claimed, Listed, Sent
from nightmail.model.refusals import RateLimited
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Kind, Lane, MessageState, Reason
from nightmail.wire.frames import encode
from nightmail.wire.items import Answered, Entries, Receipts
from tests.client.forging import forge, honest, recover, sentences
from tests.client.sealed_town import a_town, said_by
from tests.client.town import Device, Town

# --- keys ---------------------------------------------------------------------------------------


def test_swapped_prekeys_are_refused_and_an_honest_bundle_is_taken_later() -> None:
    town, (alice, bob, mallory) = a_town("alice", "bob", "mallory")
    theirs = own_keys.upload(mallory.machine.sealer.key_stock.keys)

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
    theirs = own_keys.upload(mallory.machine.sealer.key_stock.keys)

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
    alice.machine.parts.outbox.reseal(replace(message, body=message.body.replace(b"10", b"99")), bob.me.device)
    alice.look()
    town.settle()
    assert len(seen) == 1
    assert bob.heard() == ["I owe you 10"]
    assert [m.text for m in bob.store.history(alice.me.account, 9)] == ["I owe you 10"]


def test_a_claim_that_is_refused_is_asked_again_when_it_may_be_and_never_at_once() -> None:
    """Also if there is a session, but with a device that had that number before."""
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "one")
    town.settle()
    key, account = bob.machine.sealer.key_stock.keys.account, bob.me.account
    other = own_keys.make_keys(Address(bob.me.device, bob.me.registration), town.secrets, town.now)
    row = town.loop.state.accounts[account]
    assert row is not None
    signed = sign_list(key, account, row.list_version + 1, {other.address: other.identity.public}, handle="bob")
    bob.cut()
    town.say(bob.me.device, Listed(account, signed.version, (bob.me.device,), signed.signed))
    alice.machine.parts.lists.forget(account)
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
    key = (alice.me.device, bob.me.account, Lane.NORMAL, bob.me.device, MessageState.FAILED, 2)
    for hour in range(5):
        for n in range(10):
            seq = alice.store.cursors().receipts + 1 + n
            change = PendingReceipt(key, seq, town.now, Reason.UNDECRYPTABLE, [2, 2])
            alice.machine.receive(encode([Receipts((change,))]), town.now)
            alice.look()
            town.settle()
        assert len(said_by(alice, Claimed)) - claims <= 2 * hour
        town.wait(alice.limits.restart_ms)
        town.settle()
    assert len(said_by(alice, Sent)) - sends == 3
    assert alice.store.errands(MEND) == []
    assert bob.heard() == ["zero", "hello"]
