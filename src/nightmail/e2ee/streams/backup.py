"""The key of a backup, wrapped by what its owner knows; and the chain that holds its segments together.

Spec:    Argon2id (RFC 9106) for a passphrase, HKDF for a recovery code; AES-256-GCM around the key.
Knows:   the head of a backup, byte by byte (docs/e2ee.md).
Never:   derives a key with parameters that would stop this machine.

    chain 0 = SHA-256(label ‖ 0 ‖ head)
    chain n = SHA-256(label ‖ 0 ‖ chain n-1 ‖ length u64 ‖ nonce 16 ‖ digest of segment n's stream)
    key of segment n = HKDF(salt = chain n-1, backup key, label ‖ 0 ‖ n u32 ‖ nonce)

The key of a segment follows from everything before it: after a segment that was dropped, exchanged or moved, the next
one does not open.
"""

from __future__ import annotations

import struct
import unicodedata
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from nightmail.e2ee.chance import Chance
from nightmail.e2ee.errors import BadEncoding, UnknownVersion, WrongBackupSecret
from nightmail.e2ee.kdf import hkdf
from nightmail.e2ee.labels import Label

from .recovery_code import ENTROPY_BYTES, entropy_of, words_of

MAGIC = b"NMBACKUP"
VERSION = 1
KEY_BYTES, SALT_BYTES, NONCE_BYTES, TAG_BYTES = 32, 16, 12, 16
SEGMENT_NONCE_BYTES = 16
BY_PASSPHRASE, BY_CODE = 1, 2
MEMORY_KIB, PASSES, LANES = 64 * 1024, 3, 1
MEMORY_KIB_MAX, PASSES_MAX, LANES_MAX = 1024 * 1024, 64, 16
"""A head that asks for more was not written by us."""

_HEAD = struct.Struct(f">8sBBIIB{SALT_BYTES}s{NONCE_BYTES}s")
HEAD_BYTES = _HEAD.size + KEY_BYTES + TAG_BYTES
KINDS = {BY_PASSPHRASE: "passphrase", BY_CODE: "recovery code"}


class BackupSecret(NamedTuple):
    """What opens a backup: a passphrase, or a recovery code as it was typed."""

    kind: int
    text: str

    def __repr__(self) -> str:
        return f"<{KINDS[self.kind]}>"


class WrappedKey(NamedTuple):
    """The head of a backup, and the key that is wrapped in it."""

    head: bytes
    key: bytes

    def __repr__(self) -> str:
        return "<wrapped key>"


def new_code(chance: Chance) -> BackupSecret:
    return BackupSecret(BY_CODE, words_of(chance.draw(ENTROPY_BYTES)))


def kind_of(head: bytes) -> int:
    """How the key in this head is wrapped. Raises BadEncoding, UnknownVersion."""
    return _fields(head)[0]


def wrap(secret: BackupSecret, chance: Chance) -> WrappedKey:
    """A new key, and the head that wraps it. Takes a while with a passphrase. Raises BadRecoveryCode."""
    key, salt, nonce = chance.draw(KEY_BYTES), chance.draw(SALT_BYTES), chance.draw(NONCE_BYTES)
    costs = (MEMORY_KIB, PASSES, LANES) if secret.kind == BY_PASSPHRASE else (0, 0, 0)
    open_part = _HEAD.pack(MAGIC, VERSION, secret.kind, *costs, salt, nonce)
    sealed = AESGCM(_wrapping_key(secret, costs, salt)).encrypt(nonce, key, _bound(open_part))
    return WrappedKey(open_part + sealed, key)


def unwrap(head: bytes, secret: BackupSecret) -> bytes:
    """The key. Raises WrongBackupSecret, BadRecoveryCode, BadEncoding, UnknownVersion."""
    kind, costs, salt, nonce = _fields(head)
    if secret.kind != kind:
        raise WrongBackupSecret(KINDS[secret.kind])
    open_part, sealed = head[: _HEAD.size], head[_HEAD.size :]
    try:
        return AESGCM(_wrapping_key(secret, costs, salt)).decrypt(nonce, sealed, _bound(open_part))
    except InvalidTag:
        raise WrongBackupSecret(KINDS[kind]) from None


def _fields(head: bytes) -> tuple[int, tuple[int, int, int], bytes, bytes]:
    if len(head) < HEAD_BYTES or head[:8] != MAGIC:
        raise BadEncoding("backup", "it does not begin like one")
    if head[8] != VERSION:
        raise UnknownVersion("backup", head[8])
    _, _, kind, memory, passes, lanes, salt, nonce = _HEAD.unpack(head[: _HEAD.size])
    within = 8 * lanes <= memory <= MEMORY_KIB_MAX and 1 <= passes <= PASSES_MAX and 1 <= lanes <= LANES_MAX
    if kind not in KINDS or not (within if kind == BY_PASSPHRASE else (memory, passes, lanes) == (0, 0, 0)):
        raise BadEncoding("backup", "a head that nobody writes")
    return kind, (memory, passes, lanes), salt, nonce


def _wrapping_key(secret: BackupSecret, costs: tuple[int, int, int], salt: bytes) -> bytes:
    if secret.kind == BY_CODE:
        return hkdf(salt, entropy_of(secret.text), Label.BACKUP_CODE, KEY_BYTES)
    memory, passes, lanes = costs
    kdf = Argon2id(salt=salt, length=KEY_BYTES, iterations=passes, lanes=lanes, memory_cost=memory)
    # The same words typed on another keyboard may come as other code points.
    return kdf.derive(unicodedata.normalize("NFKC", secret.text).encode())


def _bound(open_part: bytes) -> bytes:
    return Label.BACKUP_KEY + b"\0" + open_part


# --- segments -----------------------------------------------------------------------------------


def first_link(head: bytes) -> bytes:
    return sha256(Label.BACKUP_CHAIN + b"\0" + head).digest()


def next_link(link: bytes, length: int, nonce: bytes, digest: bytes) -> bytes:
    """The chain after a segment."""
    return sha256(Label.BACKUP_CHAIN + b"\0" + link + length.to_bytes(8, "big") + nonce + digest).digest()


def segment_key(key: bytes, link: bytes, number: int, nonce: bytes) -> bytes:
    """The key of the stream of one segment, from 1; `link` is the chain before it."""
    return hkdf(link, key, Label.BACKUP_SEGMENT + b"\0" + number.to_bytes(4, "big") + nonce, KEY_BYTES)
