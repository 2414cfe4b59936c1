from __future__ import annotations

import pytest

from nightmail.e2ee.curves import agree, agreement_public, sign, signing_public, verify
from nightmail.e2ee.errors import BadEncoding, BadSignature, WeakKey
from nightmail.e2ee.labels import Label

KEY = bytes(range(32))


def test_both_sides_agree_on_one_secret() -> None:
    other = bytes(range(32, 64))
    assert agree(KEY, agreement_public(other)) == agree(other, agreement_public(KEY))


def test_keys_of_low_order_and_of_another_length_are_refused() -> None:
    for low in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(WeakKey) as caught:
            agree(KEY, low)
        assert caught.value.__suppress_context__
    for length in (0, 31, 33):
        with pytest.raises(BadEncoding):
            agree(KEY, bytes(length))


def test_a_signature_holds_for_its_purpose_its_message_and_its_key() -> None:
    signature = sign(KEY, Label.IDENTITY, b"message")
    verify(signing_public(KEY), Label.IDENTITY, b"message", signature)
    for public, label, message, made in (
        (signing_public(KEY), Label.DEVICE_LIST, b"message", signature),
        (signing_public(KEY), Label.IDENTITY, b"massage", signature),
        (signing_public(bytes(32)), Label.IDENTITY, b"message", signature),
        (signing_public(KEY), Label.IDENTITY, b"message", signature[:-1]),
        (b"short", Label.IDENTITY, b"message", signature),
    ):
        with pytest.raises(BadSignature):
            verify(public, label, message, made)
