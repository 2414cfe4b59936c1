"""What the client calls: a note for a device becomes ciphertext, an entry from a device becomes a note.

Spec:    none of its own; it puts `note.py` and `peers.py` together in the order that is safe.
Knows:   that states are values. The caller stores the new states and what they came with in one transaction:
         before the ciphertext leaves, and before the entry is acknowledged.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.model.rows import Entry

from . import note as notes
from . import peers
from .bundles import PrekeyBundle
from .chance import SYSTEM, Chance
from .cipher import MAC_BYTES
from .errors import WrongDevice
from .header import HEADER_BYTES_MAX
from .keys import DeviceKeys
from .note import Note
from .peers import Peer


class OpenedNote(NamedTuple):
    keys: DeviceKeys
    peer: Peer
    note: Note
    spent_prekey: bool


def envelope_bytes_max(content: bytes) -> int:
    """The longest envelope in which this content can travel: that of the first message of a session."""
    return HEADER_BYTES_MAX + notes.padded_bytes_max(content) + MAC_BYTES


def seal_note(peer: Peer, note: Note) -> tuple[Peer, bytes]:
    """One device's ciphertext. Raises NoSession if a bundle must be claimed first."""
    return peers.seal(peer, notes.pack(note))


def seal_note_once(keys: DeviceKeys, peer: Peer, bundle: PrekeyBundle, note: Note, chance: Chance = SYSTEM) -> bytes:
    """One device's ciphertext of a message for later, in a session that nobody keeps. No state changes."""
    return peers.seal_once(keys, peer, bundle, notes.pack(note), chance)


def open_entry(
    keys: DeviceKeys, peer: Peer, entry: Entry, conversation: str, now: int, chance: Chance = SYSTEM
) -> OpenedNote:
    """A note that is what the server says it is. If this raises, `keys` and `peer` stay valid: store nothing.

    A note that opens but is not as announced is refused the same way: its key stays unused, so the honest copy,
    if the server has one, opens later.
    """
    if entry.by != peer.device:
        raise WrongDevice(peer.device, entry.by)
    opened = peers.open_sealed(keys, peer, entry.ciphertext, chance, now)
    note = notes.unpack(opened.plaintext)
    notes.check(note, entry, conversation)
    return OpenedNote(opened.keys, opened.peer, note, opened.spent_prekey)
