"""What a device publishes, the server stores and hands out unchanged, and the claiming device verifies."""

from __future__ import annotations

from nightmail.e2ee import bundles, identity, keys
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.identity import Address
from nightmail.model import forms
from nightmail.model.answers import Bundle, Stocked
from nightmail.model.forms import Form
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Claimed, Published
from tests.core.world import START, World


def test_the_server_expects_keys_as_long_as_they_are() -> None:
    assert (forms.IDENTITY_BYTES, forms.SIGNED_BYTES, forms.ONE_TIME_BYTES, forms.KEM_BYTES) == (
        identity.VOUCHED_BYTES, bundles.SIGNED_BYTES, bundles.ONE_TIME_BYTES, bundles.KEM_BYTES,
    )  # fmt: skip
    assert bundles.LAST_RESORT == forms.LAST_RESORT


def test_the_server_holds_as_many_as_a_device_counts_on() -> None:
    limits = FoldLimits()
    assert (limits.stock_one_time, limits.stock_kem) == (keys.STOCK_MAX, keys.KEM_STOCK_MAX)


def test_what_a_device_uploads_can_be_claimed_and_verified() -> None:
    world = World()
    ada, ben = world.join("ada"), world.join("ben")
    address = Address(ben[1], 101)
    made = keys.make_keys(address, SYSTEM, START)
    upload = Published(101, *keys.upload(made))
    assert Form().check(ben[1], upload) is None
    assert world.do(ben[1], upload) == Stocked(keys.STOCK, keys.KEM_STOCK)
    seen: list[tuple[int, int]] = []
    for request in (1, 2, 1):
        said = world.do(ada[1], Claimed(ben[1], request))
        assert isinstance(said, Bundle)
        bundle = bundles.check_bundle(address, said.identity, said.signed, said.kem, said.one_time)
        assert not bundle.exhausted
        assert bundle.one_time is not None
        seen.append((bundle.one_time.id, bundle.kem.id))
    assert seen == [(2, 2), (3, 3), (2, 2)]


def test_a_renewed_prekey_has_a_higher_id_so_the_server_takes_it() -> None:
    world = World()
    ada, ben = world.join("ada"), world.join("ben")
    address = Address(ben[1], 101)
    made = keys.make_keys(address, SYSTEM, START)
    first = keys.upload(made)
    world.do(ben[1], Published(101, *first))
    renewed = keys.rotate(keys.confirmed(made, first), SYSTEM, START + keys.ROTATE_MS)
    later = keys.upload(renewed)
    world.do(ben[1], Published(101, *later))
    said = world.do(ada[1], Claimed(ben[1], 1))
    assert isinstance(said, Bundle)
    assert (said.signed, later.one_time) == (later.signed, ())
    assert bundles.check_bundle(address, said.identity, said.signed, said.kem, said.one_time)
