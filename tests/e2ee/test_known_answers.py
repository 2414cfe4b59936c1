"""Values that other implementations publish: libsignal's tests for chain keys, message keys and safety numbers."""

from __future__ import annotations

import hmac

from nightmail.e2ee.kdf import chain_step, message_keys
from nightmail.e2ee.safety import fingerprint, joined

SEED = bytes.fromhex("8ab72d6f4cc5ac0d387eaf463378ddb28edd07385b1cb01250c715982e7ad48f")


def test_a_chain_steps_as_libsignals_does() -> None:
    after, key = chain_step(SEED)
    assert after.hex() == "28e8f8fee54b801eef7c5cfb2f17f32c7b334485bbb70fac6ec10342a246d15d"
    assert key == hmac.digest(SEED, b"\x01", "sha256")


def test_a_message_key_spreads_as_libsignals_does() -> None:
    aes_key, mac_key, iv = message_keys(chain_step(SEED)[1], b"WhisperMessageKeys")
    assert aes_key.hex() == "bf51e9d75e0e31031051f82a2491ffc084fa298b7793bd9db620056febf45217"
    assert mac_key.hex() == "c6c77d6a73a354337a56435e34607dfe48e3ace14e77314dc6abc172e7a7030b"
    assert len(iv) == 16


def test_a_safety_number_has_libsignals_digits() -> None:
    alice = bytes.fromhex("0506863bc66d02b40d27b8d49ca7c09e9239236f9d7d25d6fcca5ce13c7064d868")
    bob = bytes.fromhex("05f781b6fb32fed9ba1cf2de978d4d5da28dc34046ae814402b5c0dbd96fda907b")
    assert joined(
        fingerprint(b"\0\0", alice, b"+14152222222"), fingerprint(b"\0\0", bob, b"+14153333333")
    ) == "300354477692869396892869876765458257569162576843440918079131"  # fmt: skip
