from __future__ import annotations

import pytest

from nightmail.e2ee import bundles, keys
from nightmail.e2ee.bundles import KemPrekey, SignedPrekey
from nightmail.e2ee.errors import BadEncoding, BadSignature, UnknownVersion
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import Upload

from .devices import Device, address

ADA, EVE = Device("ada"), Device("eve")


def parts(shelf: Upload) -> tuple[bytes, bytes, bytes, bytes | None]:
    return shelf.identity, shelf.signed, shelf.one_time_kem[0], shelf.one_time[0]


def test_a_bundle_comes_through_its_bytes() -> None:
    whole = bundles.encode_bundle(ADA.keys.address, *parts(ADA.shelf))
    assert bundles.decode_bundle(whole) == bundles.check_bundle(ADA.keys.address, *parts(ADA.shelf))
    without = bundles.encode_bundle(ADA.keys.address, *parts(ADA.shelf)[:3], None)
    assert bundles.decode_bundle(without).one_time is None


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_part_of_somebody_elses_bundle_is_refused(part: int) -> None:
    mixed = list(parts(ADA.shelf))
    mixed[part] = parts(EVE.shelf)[part]
    with pytest.raises(BadSignature):
        bundles.check_bundle(ADA.keys.address, *mixed)  # type: ignore[arg-type]


def test_a_bundle_of_one_device_is_refused_as_that_of_another_or_of_an_earlier_life() -> None:
    for wrong in (address("ada", 2), Address(ADA.device, ADA.keys.address.registration + 1)):
        with pytest.raises(BadSignature):
            bundles.check_bundle(wrong, *parts(ADA.shelf))


def test_a_last_resort_key_does_not_pass_for_a_one_time_key_nor_the_other_way_round() -> None:
    identity, signed, one_time_kem, one_time = parts(ADA.shelf)
    for part in (ADA.shelf.last_resort, one_time_kem):
        disguised = bytes((1 - part[0],)) + part[1:]
        with pytest.raises(BadSignature, match="kem"):
            bundles.check_bundle(ADA.keys.address, identity, signed, disguised, one_time)


def test_a_prekey_under_another_id_is_refused() -> None:
    identity, signed, kem_part, one_time = parts(ADA.shelf)
    renamed = SignedPrekey.decode(signed)._replace(id=99).encode()
    with pytest.raises(BadSignature, match="signed-prekey"):
        bundles.check_bundle(ADA.keys.address, identity, renamed, kem_part, one_time)
    renamed = KemPrekey.decode(kem_part)._replace(id=99).encode()
    with pytest.raises(BadSignature, match="kem-prekey"):
        bundles.check_bundle(ADA.keys.address, identity, signed, renamed, one_time)


def test_a_signature_for_one_purpose_is_none_for_another() -> None:
    identity, signed, kem_part, one_time = parts(ADA.shelf)
    crossed = SignedPrekey.decode(signed)._replace(signature=identity[-64:]).encode()
    with pytest.raises(BadSignature):
        bundles.check_bundle(ADA.keys.address, identity, crossed, kem_part, one_time)


def test_bytes_of_no_known_form_are_refused() -> None:
    whole = bundles.encode_bundle(ADA.keys.address, *parts(ADA.shelf))
    for wrong in (b"", whole[:-1], whole + b"\0"):
        with pytest.raises(BadEncoding):
            bundles.decode_bundle(wrong)
    with pytest.raises(UnknownVersion):
        bundles.decode_bundle(b"\x02" + whole[1:])
    assert keys.upload(ADA.keys) == ADA.shelf
