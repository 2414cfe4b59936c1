from __future__ import annotations

import pytest

from nightmail.e2ee.errors import BadEncoding, BadSignature
from nightmail.e2ee.identity import IdentityKeys, PublicIdentity, check_vouched

from .devices import Seeded

ADA, EVE = IdentityKeys.make(Seeded("ada")), IdentityKeys.make(Seeded("eve"))


def test_a_published_identity_is_what_was_made() -> None:
    assert check_vouched(ADA.vouched()) == ADA.public
    assert PublicIdentity.decode(ADA.public.encode()) == ADA.public


def test_two_keys_that_do_not_vouch_for_each_other_are_refused() -> None:
    mixed = ADA.signing_public + EVE.agreement_public
    for signature in (ADA.vouched()[64:], EVE.vouched()[64:]):
        with pytest.raises(BadSignature, match="identity"):
            check_vouched(mixed + signature)


def test_bytes_of_another_length_are_refused() -> None:
    with pytest.raises(BadEncoding):
        check_vouched(ADA.vouched()[:-1])
    with pytest.raises(BadEncoding):
        PublicIdentity.decode(b"short")
