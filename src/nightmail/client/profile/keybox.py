"""The file `key` of a profile: the database's key, sealed under a passphrase, a key file or the keyring.

Knows:   how each kind of secret becomes a key, and what a new one needs before the old one may go.
Touches: `key` in a profile folder that the caller has locked; a key file; the keyring, if that is asked for.
Never:   writes a key, or a passphrase, that is not sealed; a key file and the keyring hold what seals it.

The database's own key is random and never changes, so a new passphrase costs one small file, not a new database. An
old copy of the `key` file still opens a copy of the database with the old passphrase.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TypeAlias

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from msgspec.structs import replace

from nightmail.client.errors import Misused, ProfileDamaged, ProfileLocked, ProfileTooNew, WrongSecret

from . import key_places
from .protection import KeyFile, Keyring, Passphrase, Secret

NAME = "key"
KEY_BYTES = 32
VERSION = 1
DEFAULT_FILE = "device.key"

_SALT_BYTES, _NONCE_BYTES, _MAC_BYTES = 16, 12, 16
_MEMORY_KIB, _PASSES, _LANES = 64 * 1024, 3, 1
_MEMORY_KIB_MAX, _PASSES_MAX, _LANES_MAX = 1024 * 1024, 64, 16
"""A file that asks for more was not written by us."""


class _Box(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    version: int = VERSION
    nonce: bytes = b""
    sealed: bytes = b""


class PassphraseBox(_Box, tag="passphrase", frozen=True):
    """Argon2id, with its parameters beside it, so that they may grow."""

    salt: bytes
    memory_kib: int = _MEMORY_KIB
    passes: int = _PASSES
    lanes: int = _LANES


class FileBox(_Box, tag="key_file", frozen=True):
    path: str
    """A name in the profile folder, or a whole path."""


class RingBox(_Box, tag="keyring", frozen=True):
    service: str
    entry: str


Box: TypeAlias = PassphraseBox | FileBox | RingBox

_decode = msgspec.json.Decoder(Box).decode
_encode = msgspec.json.Encoder().encode


def kind_of(folder: Path) -> str:
    """What protects a profile: "passphrase", "key_file" or "keyring"; empty: there is no profile yet."""
    box = read(folder)
    return "" if box is None else str(box.__struct_config__.tag)


def open_box(folder: Path, secret: Secret | None) -> bytes | None:
    """The database's key; None: this folder has no box yet. Raises ProfileLocked, WrongSecret."""
    if (box := read(folder)) is None:
        return None
    try:
        return AESGCM(_wrapping_key(folder, box, secret)).decrypt(box.nonce, box.sealed, _bound(box))
    except InvalidTag:
        raise WrongSecret(_tag(box), f"{_words(box)} does not open {folder}") from None


def make_box(folder: Path, secret: Secret, key: bytes) -> None:
    """Seal the key under a secret, durably; then delete what protected it before, if it was made here."""
    before = read(folder)
    box = _new_box(folder, secret)
    box = replace(box, nonce=os.urandom(_NONCE_BYTES))
    sealed = AESGCM(_wrapping_key(folder, box, secret)).encrypt(box.nonce, key, _bound(box))
    key_places.write_durably(folder / NAME, _encode(replace(box, sealed=sealed)) + b"\n")
    _delete_former(folder, before, box)


def read(folder: Path) -> Box | None:
    try:
        raw = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProfileDamaged(f"{folder / NAME} cannot be read: {error.strerror}") from error
    try:
        box = _decode(raw)
    except msgspec.DecodeError:
        raise ProfileDamaged(f"{folder / NAME} is not what was written") from None
    if box.version > VERSION:
        raise ProfileTooNew(f"{folder / NAME} has version {box.version}; this version of Nightmail knows {VERSION}")
    if not _is_sound(box):
        raise ProfileDamaged(f"{folder / NAME} is not what was written")
    return box


def _is_sound(box: Box) -> bool:
    """Whether this program can have written it. Whether its content is true, the seal tells."""
    whole = len(box.nonce) == _NONCE_BYTES and len(box.sealed) == KEY_BYTES + _MAC_BYTES
    return whole and not (isinstance(box, FileBox) and "\0" in box.path)


# --- keys -------------------------------------------------------------------------------------


def _wrapping_key(folder: Path, box: Box, secret: Secret | None) -> bytes:
    """The key that seals the key. Without a secret, it is looked for where the profile says."""
    match box, secret:
        case PassphraseBox(), Passphrase():
            return _stretched(folder, box, secret.text)
        case FileBox(), KeyFile() | None:
            path = folder / box.path
            if secret is not None and secret.path:
                path = Path(secret.path).expanduser()
            return key_places.from_file(path, folder)
        case RingBox(), Keyring() | None:
            return key_places.from_keyring(box.service, box.entry, folder)
        case _, None:
            raise ProfileLocked(_tag(box), f"the profile {folder} is sealed: it needs {_words(box)}")
        case _:
            raise ProfileLocked(
                _tag(box), f"the profile {folder} is sealed with {_words(box)}, not with the given secret"
            )


def _stretched(folder: Path, box: PassphraseBox, text: str) -> bytes:
    within = 8 <= box.memory_kib <= _MEMORY_KIB_MAX and 1 <= box.passes <= _PASSES_MAX and 1 <= box.lanes <= _LANES_MAX
    if not within or len(box.salt) != _SALT_BYTES:
        raise ProfileDamaged(f"{folder / NAME} is not what was written")
    kdf = Argon2id(
        salt=box.salt, length=KEY_BYTES, iterations=box.passes, lanes=box.lanes, memory_cost=box.memory_kib
    )  # fmt: skip
    # The same words typed on another keyboard may come as other code points.
    return kdf.derive(unicodedata.normalize("NFKC", text).encode())


def _new_box(folder: Path, secret: Secret) -> Box:
    match secret:
        case Passphrase():
            if not secret.text:
                raise Misused("an empty passphrase protects nothing")
            return PassphraseBox(salt=os.urandom(_SALT_BYTES))
        case KeyFile():
            if "\0" in os.fspath(secret.path):
                raise Misused("no file has such a name")
            path = Path(secret.path).expanduser() if secret.path else folder / DEFAULT_FILE
            key_places.make_file(path)
            path = path.resolve()
            return FileBox(path=path.name if path.parent == folder.resolve() else str(path))
        case Keyring():
            return RingBox(service=secret.service, entry=key_places.make_in_keyring(secret.service, folder))


def _delete_former(folder: Path, before: Box | None, now: Box) -> None:
    """Delete what was made here in the folder or in the keyring, if nothing uses it. Other key files are the user's."""
    match before:
        case FileBox() if Path(before.path).name == before.path and not _uses(folder, now, folder / before.path):
            key_places.drop_file(folder / before.path)
        case RingBox() if not (isinstance(now, RingBox) and (now.service, now.entry) == (before.service, before.entry)):
            key_places.drop_from_keyring(before.service, before.entry)
        case _:
            pass


def _uses(folder: Path, box: Box, path: Path) -> bool:
    return isinstance(box, FileBox) and (folder / box.path).resolve() == path.resolve()


def _bound(box: Box) -> bytes:
    """The associated data: everything beside the sealed key."""
    return b"nightmail profile key\0" + _encode(replace(box, sealed=b""))


def _tag(box: Box) -> str:
    return str(box.__struct_config__.tag)


def _words(box: Box) -> str:
    return {"passphrase": "the passphrase", "key_file": "the key file", "keyring": "the keyring"}[_tag(box)]
