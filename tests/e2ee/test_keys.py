from __future__ import annotations

import pytest

from nightmail.e2ee import bundles, keys
from nightmail.e2ee.bundles import KemPrekey, OneTimePrekey, SignedPrekey
from nightmail.e2ee.errors import PrekeyGone
from nightmail.e2ee.keys import HELD_MAX, KEM_HELD_MAX, KEM_STOCK, KEPT_MS, ROTATE_MS, STOCK, DeviceKeys, Upload

from .devices import DAY, NOW, Device, Seeded, address

CHANCE = Seeded("keys")


def fresh() -> DeviceKeys:
    return keys.make_keys(address("ada"), CHANCE, NOW, primary=True)


def ids(sent: Upload) -> list[int]:
    return [OneTimePrekey.decode(part).id for part in sent.one_time]


def test_a_new_device_has_a_full_stock_and_only_public_halves_leave_it() -> None:
    made = fresh()
    sent = keys.upload(made)
    assert (len(sent.one_time), len(sent.one_time_kem)) == (STOCK, KEM_STOCK)
    published = b"".join((sent.identity, sent.signed, sent.last_resort, *sent.one_time, *sent.one_time_kem))
    secrets = [made.account, made.identity.signing, made.identity.agreement]
    secrets += [key.secret for key in (*made.signed, *made.last_resort)]
    secrets += [key.secret for key in (*made.one_time.values(), *made.one_time_kem.values())]
    assert not any(secret[:16] in published for secret in secrets)


def test_only_a_primary_device_holds_the_account_key() -> None:
    assert len(fresh().account) == 32
    assert keys.make_keys(address("ada", 2), CHANCE, NOW).account == b""


def test_an_upload_repeats_itself_until_it_is_confirmed() -> None:
    made = fresh()
    sent = keys.upload(made)
    assert keys.upload(made) == sent
    after = keys.confirmed(made, sent)
    assert keys.upload(after) == sent._replace(one_time=(), one_time_kem=())
    more = keys.upload(keys.stock(after, CHANCE, NOW))
    assert (len(more.one_time), len(more.one_time_kem)) == (STOCK, KEM_STOCK)


def test_ids_only_grow_and_are_never_used_again() -> None:
    made = fresh()
    seen = {made.signed[0].id, *made.one_time}
    kem_seen = {made.last_resort[0].id, *made.one_time_kem}
    for week in range(1, 15):
        now = NOW + week * ROTATE_MS
        made = keys.stock(keys.rotate(made, CHANCE, now), CHANCE, now, 10, 2)
        new = {made.signed[0].id, *sorted(made.one_time)[-10:]}
        kem_new = {made.last_resort[0].id, *sorted(made.one_time_kem)[-2:]}
        assert min(new) > max(seen)
        assert min(kem_new) > max(kem_seen)
        seen |= new
        kem_seen |= kem_new


def test_the_signed_prekey_and_the_last_resort_are_renewed_weekly() -> None:
    made = fresh()
    assert keys.rotate(made, CHANCE, NOW + ROTATE_MS - 1).signed == made.signed
    after = keys.rotate(made, CHANCE, NOW + ROTATE_MS)
    assert after.signed[0].id > made.signed[0].id
    assert after.last_resort[0].id > made.last_resort[0].id
    # A clock that was set back does not keep a key forever.
    assert keys.rotate(made, CHANCE, NOW - 1).signed[0].id > made.signed[0].id


def test_a_replaced_key_opens_what_is_still_under_way_and_is_then_deleted() -> None:
    ada, bob = Device("ada"), Device("bob")
    ada.begin(bob)
    first = ada.seal(bob, b"slow")
    late, later = NOW + ROTATE_MS + KEPT_MS - 1, NOW + ROTATE_MS + KEPT_MS
    rotated = keys.rotate(bob.keys, bob.chance, NOW + ROTATE_MS)
    bob.keys = keys.rotate(rotated, bob.chance, later)
    with pytest.raises(PrekeyGone):
        bob.open(ada, first)
    bob.keys = keys.rotate(rotated, bob.chance, late)
    assert bob.open(ada, first) == b"slow"


def test_private_halves_outlive_an_outbox_and_a_mailbox() -> None:
    assert keys.KEPT_MS > (29 + 30) * DAY


def test_a_one_time_key_is_kept_until_nobody_can_have_it_any_more() -> None:
    made = fresh()
    oldest = min(made.one_time)
    for _ in range(3):
        made = keys.stock(made, CHANCE, NOW)
    assert oldest in keys.rotate(made, CHANCE, NOW + KEPT_MS - 1).one_time
    after = keys.rotate(made, CHANCE, NOW + KEPT_MS)
    assert oldest not in after.one_time
    # A server may still hold the newest 200, unclaimed, for years.
    assert set(sorted(made.one_time)[-keys.STOCK_MAX :]) <= set(keys.rotate(made, CHANCE, NOW + 999 * DAY).one_time)


def test_every_published_prekey_verifies_as_what_it_is() -> None:
    made = fresh()
    sent = keys.upload(made)
    for kem_part in (sent.last_resort, sent.one_time_kem[3]):
        bundle = bundles.check_bundle(made.address, sent.identity, sent.signed, kem_part, sent.one_time[5])
        assert bundle.kem.last_resort is (kem_part is sent.last_resort)
        assert bundle.exhausted is bundle.kem.last_resort
    assert SignedPrekey.decode(sent.signed).encode() == sent.signed
    assert KemPrekey.decode(sent.last_resort).encode() == sent.last_resort
    assert ids(sent) == sorted(ids(sent))


def test_however_many_are_claimed_only_so_many_private_halves_are_held_and_the_youngest_stay() -> None:
    held = fresh()
    for _ in range(HELD_MAX // STOCK + 5):
        held = keys.stock(held, Seeded(3), NOW)
    assert (len(held.one_time), len(held.one_time_kem)) == (HELD_MAX, KEM_HELD_MAX)
    assert max(held.one_time) == held.next_id - 1
    assert min(held.one_time) == held.next_id - HELD_MAX
