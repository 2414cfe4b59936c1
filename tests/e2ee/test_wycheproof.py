"""Our primitives against Project Wycheproof's vectors, through our own wrappers wherever there is one."""

from __future__ import annotations

import hmac

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM1024PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nightmail.e2ee import kem
from nightmail.e2ee.cipher import cbc_decrypt, cbc_encrypt
from nightmail.e2ee.curves import agree
from nightmail.e2ee.errors import BadEncoding, Undecipherable, WeakKey
from nightmail.e2ee.kdf import hkdf

from .wycheproof import cases, raw


def test_x25519_agrees_and_refuses_a_secret_of_zeros() -> None:
    seen = 0
    for _, test in cases("x25519"):
        seen += 1
        if "ZeroSharedSecret" in test["flags"]:
            with pytest.raises(WeakKey):
                agree(raw(test["private"]), raw(test["public"]))
        else:
            assert agree(raw(test["private"]), raw(test["public"])) == raw(test["shared"]), test["tcId"]
    assert seen == 518


def test_ed25519_takes_what_is_valid_and_nothing_else() -> None:
    seen = 0
    for group, test in cases("ed25519"):
        seen += 1
        key = Ed25519PublicKey.from_public_bytes(raw(group["publicKey"]["pk"]))
        if test["result"] == "valid":
            key.verify(raw(test["sig"]), raw(test["msg"]))
        else:
            with pytest.raises(InvalidSignature):
                key.verify(raw(test["sig"]), raw(test["msg"]))
    assert seen == 151


def test_hkdf_gives_what_the_standard_gives() -> None:
    seen = 0
    for _, test in cases("hkdf_sha256"):
        seen += 1
        args = raw(test["salt"]), raw(test["ikm"]), raw(test["info"]), test["size"]
        if test["result"] == "valid":
            assert hkdf(*args) == raw(test["okm"]), test["tcId"]
        else:
            with pytest.raises(ValueError):
                hkdf(*args)
    assert seen == 86


def test_hmac_gives_what_the_standard_gives() -> None:
    seen = 0
    for group, test in cases("hmac_sha256"):
        seen += 1
        mac = hmac.digest(raw(test["key"]), raw(test["msg"]), "sha256")[: group["tagSize"] // 8]
        assert (mac == raw(test["tag"])) is (test["result"] == "valid"), test["tcId"]
    assert seen == 174


def test_aes_256_cbc_pads_and_refuses_bad_padding() -> None:
    seen = 0
    for group, test in cases("aes_cbc_pkcs5"):
        if group["keySize"] != 256:
            continue
        seen += 1
        key, iv, plain, sealed = (raw(test[name]) for name in ("key", "iv", "msg", "ct"))
        if test["result"] == "valid":
            assert cbc_encrypt(key, iv, plain) == sealed, test["tcId"]
            assert cbc_decrypt(key, iv, sealed) == plain, test["tcId"]
        else:
            with pytest.raises(Undecipherable):
                cbc_decrypt(key, iv, sealed)
    assert seen == 72


def test_aes_256_gcm_of_the_library_does_what_media_and_backups_will_need() -> None:
    seen = 0
    for group, test in cases("aes_gcm"):
        if group["keySize"] != 256 or group["ivSize"] != 96:
            continue
        seen += 1
        key, iv, aad, plain, sealed, tag = (raw(test[name]) for name in ("key", "iv", "aad", "msg", "ct", "tag"))
        if test["result"] == "valid":
            assert AESGCM(key).encrypt(iv, plain, aad) == sealed + tag, test["tcId"]
            assert AESGCM(key).decrypt(iv, sealed + tag, aad) == plain, test["tcId"]
        else:
            with pytest.raises(InvalidTag):
                AESGCM(key).decrypt(iv, sealed + tag, aad)
    assert seen == 66


def test_ml_kem_1024_derives_keys_and_secrets_from_seeds() -> None:
    seen = 0
    for _, test in cases("mlkem_1024_keygen_seed"):
        seen += 1
        assert kem.public_of(raw(test["seed"])) == raw(test["ek"]), test["tcId"]
    assert seen == 100
    for _, test in cases("mlkem_1024"):
        seen += 1
        seed, ciphertext = raw(test["seed"]), raw(test["c"])
        if len(seed) != kem.SEED_BYTES:
            continue
        if test["result"] == "valid":
            assert kem.decapsulate(seed, ciphertext) == (raw(test["K"]), raw(test["ek"])), test["tcId"]
        else:
            with pytest.raises(BadEncoding):
                kem.decapsulate(seed, ciphertext)
    assert seen == 293


def test_ml_kem_1024_refuses_public_keys_that_fips_203_refuses() -> None:
    seen = 0
    for _, test in cases("mlkem_1024_encaps"):
        seen += 1
        if test["result"] == "valid":
            secret, ciphertext = kem.encapsulate(raw(test["ek"]))
            assert (len(secret), len(ciphertext)) == (kem.SECRET_BYTES, kem.CIPHERTEXT_BYTES)
            assert MLKEM1024PublicKey.from_public_bytes(raw(test["ek"])).public_bytes_raw() == raw(test["ek"])
        else:
            with pytest.raises(BadEncoding):
                kem.encapsulate(raw(test["ek"]))
    assert seen == 269
