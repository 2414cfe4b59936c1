"""One message under one key: AES-256-CBC, then HMAC-SHA256 over everything.

Spec:    Double Ratchet §8.2, ENCRYPT: encrypt-then-MAC with keys derived from the message key. The MAC is not
         truncated, so a ciphertext commits to its key: nobody can make one that opens to two texts.
Never:   decrypts before the MAC has verified, so there is no padding oracle.
"""

from __future__ import annotations

import hmac

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC

from .errors import Undecipherable
from .kdf import message_keys

BLOCK_BYTES = 16
MAC_BYTES = 32


def encrypt(key: bytes, label: bytes, plaintext: bytes, associated: bytes) -> bytes:
    aes_key, mac_key, iv = message_keys(key, label)
    sealed = cbc_encrypt(aes_key, iv, plaintext)
    return sealed + hmac.digest(mac_key, associated + sealed, "sha256")


def decrypt(key: bytes, label: bytes, ciphertext: bytes, associated: bytes) -> bytes:
    aes_key, mac_key, iv = message_keys(key, label)
    sealed, mac = ciphertext[:-MAC_BYTES], ciphertext[-MAC_BYTES:]
    if not hmac.compare_digest(hmac.digest(mac_key, associated + sealed, "sha256"), mac):
        raise Undecipherable
    return cbc_decrypt(aes_key, iv, sealed)


def cbc_encrypt(key: bytes, iv: bytes, plaintext: bytes) -> bytes:
    fill = BLOCK_BYTES - len(plaintext) % BLOCK_BYTES
    encryptor = Cipher(AES256(key), CBC(iv)).encryptor()
    # CBC over whole blocks leaves nothing for finalize() to return.
    return encryptor.update(plaintext + bytes((fill,)) * fill)


def cbc_decrypt(key: bytes, iv: bytes, sealed: bytes) -> bytes:
    if not sealed or len(sealed) % BLOCK_BYTES:
        raise Undecipherable
    padded = Cipher(AES256(key), CBC(iv)).decryptor().update(sealed)
    fill = padded[-1]
    if not 1 <= fill <= BLOCK_BYTES or padded[-fill:] != bytes((fill,)) * fill:
        raise Undecipherable
    return padded[:-fill]
