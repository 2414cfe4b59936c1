"""Where the 32 random bytes that protect a profile are stored: a file, or the system's keyring.

Knows:   the permissions of a key file; the package `keyring`, imported only if it is asked for.
Never:   makes a key file that others can read, or half of one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from nightmail.client.errors import ProfileError, ProfileLocked, WrongSecret

KEY_BYTES = 32

_FILE_BYTES_MAX = 1_024
"""A key file is one line."""


def write_durably(path: Path, content: bytes) -> None:
    """The file has all of the content or what was there before, also after a power cut."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise ProfileError(f"{path} cannot be written: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make it and its parents if they are missing, readable by their owner only; their names are durable."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for made in missing:
        sync_folder(made.parent)


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# --- a file -----------------------------------------------------------------------------------


def make_file(path: Path) -> None:
    """An existing file is used as it is: its profile was not finished, or several profiles share it."""
    if not path.exists():
        write_durably(path, os.urandom(KEY_BYTES).hex().encode() + b"\n")
    from_file(path, path.parent)


def from_file(path: Path, folder: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX).decode("ascii")
    except FileNotFoundError:
        raise ProfileLocked("key_file", f"the profile {folder} is sealed: its key file {path} is not there") from None
    except (OSError, UnicodeDecodeError):
        raise WrongSecret("key_file", f"the key file {path} cannot be read") from None
    with suppress(ValueError):
        if len(key := bytes.fromhex(text)) == KEY_BYTES:
            return key
    raise WrongSecret("key_file", f"{path} is not a key file")


def drop_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ProfileError(f"the former key file {path} cannot be removed: {error.strerror}") from error


# --- the keyring ------------------------------------------------------------------------------


def _keyring(folder: Path) -> Any:
    try:
        import keyring  # noqa: PLC0415  # an optional extra
    except ImportError:
        raise ProfileLocked(
            "keyring", f"the profile {folder} needs the system's keyring: pip install 'nightmail[keyring]'"
        ) from None
    return keyring


def make_in_keyring(service: str, folder: Path) -> str:
    """Store a new key; the entry's name."""
    keyring, entry = _keyring(folder), f"profile {os.urandom(8).hex()}"
    try:
        keyring.set_password(service, entry, os.urandom(KEY_BYTES).hex())
    except keyring.errors.KeyringError as error:
        raise ProfileError(f"the system's keyring did not take the key: {type(error).__name__}") from error
    return entry


def from_keyring(service: str, entry: str, folder: Path) -> bytes:
    keyring = _keyring(folder)
    try:
        text = keyring.get_password(service, entry)
    except keyring.errors.KeyringError as error:
        raise ProfileLocked("keyring", f"the system's keyring did not answer: {type(error).__name__}") from error
    if text is None:
        raise ProfileLocked("keyring", f"the profile {folder} is sealed: the keyring does not have its key")
    with suppress(ValueError):
        if len(key := bytes.fromhex(text)) == KEY_BYTES:
            return key
    raise WrongSecret("keyring", "the keyring holds something that is not a key")


def drop_from_keyring(service: str, entry: str) -> None:
    with suppress(ImportError):
        import keyring  # noqa: PLC0415
        import keyring.errors  # noqa: PLC0415

        with suppress(keyring.errors.KeyringError):
            keyring.delete_password(service, entry)
