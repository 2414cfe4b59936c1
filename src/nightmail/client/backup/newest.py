"""The newest backups that this device knows of: its own, and those that other own devices have told of.

Knows:   per lineage (backups under the same code or passphrase) when the newest one was made, and by which device.
Touches: one errand in the store.
Never:   takes what a backup or a server says for news: only devices of the account tell.

Without this nobody can tell an older copy of a backup from the newest one.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.own_devices.controls import BACKUPS_MAX, LINEAGE_BYTES
from nightmail.client.store.port import Store

ERRAND = "backups known"


class KnownBackup(Struct, frozen=True, array_like=True):
    lineage: bytes
    at: int
    by: int
    """The device that made it."""
    told: bool = True
    """Whether the other own devices were told."""


_encode = msgspec.msgpack.Encoder().encode
_known = msgspec.msgpack.Decoder(list[KnownBackup]).decode


def lineage_of(head: bytes) -> bytes:
    """By the head of a file, which stays the same until the code or the passphrase is another one."""
    return hashlib.sha256(b"backup-lineage\0" + head).digest()[:LINEAGE_BYTES]


def known_in(store: Store) -> list[KnownBackup]:
    state = store.errand(ERRAND)
    return _known(state) if state else []


def put_known(store: Store, known: list[KnownBackup]) -> None:
    newest = sorted(known, key=lambda each: each.at)[-BACKUPS_MAX:]  # the oldest are forgotten first
    store.put_errand(ERRAND, _encode(newest))


def note(store: Store, said: KnownBackup) -> None:
    """A backup was made. It is newer than all of the same lineage, and replaces what its device made before."""
    known = {each.lineage: each for each in known_in(store)}
    for lineage, each in known.items():
        if each.by == said.by and each.at < said.at:
            known[lineage] = replace(each, at=said.at)
    if said.lineage not in known or known[said.lineage].at <= said.at:
        known[said.lineage] = said
    put_known(store, list(known.values()))


def note_made(store: Store, lineage: bytes, device: int, at: int) -> None:
    """This device made one; the others are to be told."""
    note(store, KnownBackup(lineage, at, device, told=False))


def newer_than(store: Store, lineage: bytes, at: int) -> int | None:
    """When a newer backup than this was made, if one is known."""
    newest = max((each.at for each in known_in(store) if each.lineage == lineage), default=0)
    return newest if newest > at else None
