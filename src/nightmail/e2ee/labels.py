"""Every label, in one place: what is derived or signed for one purpose can never pass for another.

Spec:    RFC 5869 §3.2 (info binds a key to its use); Double Ratchet §8.2 (application-specific byte sequences).
Knows:   the names. `vectors/labels.json` hands the same list to other implementations.
Never:   changes or reuses a label: data that was sealed or signed under it exists.
"""

from __future__ import annotations

from enum import Enum

from nightmail.model.group_chain import HEAD_LABEL
from nightmail.model.roster import ROSTER_LABEL


class Label(bytes, Enum):
    """`nightmail/v1/<purpose>`. None contains a zero byte, and a zero byte follows wherever one begins a message."""

    # --- signatures (Ed25519) ---
    IDENTITY = b"nightmail/v1/identity"
    """A device's Ed25519 key vouches for its X25519 key."""
    SIGNED_PREKEY = b"nightmail/v1/signed-prekey"
    KEM_PREKEY = b"nightmail/v1/kem-prekey"
    KEM_LAST_RESORT = b"nightmail/v1/kem-last-resort"
    """Differs from that of a one-time key: otherwise the server could hand out one as the other."""
    DEVICE_LIST = b"nightmail/v1/device-list"
    GROUP_CHANGE = b"nightmail/v1/group-change"
    GROUP_MESSAGE = b"nightmail/v1/group-message"

    # --- hashes ---
    TRANSCRIPT = b"nightmail/v1/transcript"
    SAFETY_NUMBER = b"nightmail/v1/safety-number"
    PIN = b"nightmail/v1/pin"
    """The salt of a registration lock's PIN; it differs from account to account."""
    GROUP_HEAD = HEAD_LABEL
    GROUP_ROSTER = ROSTER_LABEL
    SENDER_KEY_ID = b"nightmail/v1/sender-key-id"
    BACKUP_CHAIN = b"nightmail/v1/backup-chain"

    # --- MACs ---
    PROVISION = b"nightmail/v1/provision"

    # --- key derivation (HKDF info) ---
    PQXDH = b"nightmail/v1/pqxdh"
    ROOT = b"nightmail/v1/root"
    MESSAGE_KEYS = b"nightmail/v1/message-keys"
    GROUP_MESSAGE_KEYS = b"nightmail/v1/group-message-keys"
    STREAM = b"nightmail/v1/stream"
    BACKUP_CODE = b"nightmail/v1/backup-code"
    BACKUP_SEGMENT = b"nightmail/v1/backup-segment"

    # --- associated data (AES-GCM) ---
    BACKUP_KEY = b"nightmail/v1/backup-key"
    """A backup's key, wrapped by a passphrase or a recovery code."""

    __str__ = Enum.__str__
