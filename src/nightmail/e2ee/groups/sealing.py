"""One ciphertext for a whole group: sealed with the sender's chain, and signed.

Spec:    the cipher of pairwise messages (`cipher.py`), then Ed25519 by the chain's own key: every member could
         make the MAC, only the sender can make the signature.

    version u8 ‖ type u8 = 3 ‖ key id 8 ‖ N u32 ‖ epoch u64 ‖ head 32                                  54 bytes
    ‖ AES-256-CBC ciphertext ‖ MAC 32, over genesis 32 ‖ sender's address 16 ‖ header ‖ ciphertext
    ‖ signature 64, over label group-message ‖ 0 ‖ the same ‖ MAC

Knows:   for which members a message was sealed: the head of the membership chain is authenticated with it. Two halves
         of a group that were shown different members cannot read each other, and notice.
Never:   derives keys for a message before its signature is verified: only the sender can cause work.
"""

from __future__ import annotations

import hmac
import struct
from typing import NamedTuple

from nightmail.e2ee import note as notes
from nightmail.e2ee.cipher import BLOCK_BYTES, MAC_BYTES, decrypt, encrypt
from nightmail.e2ee.curves import SIGNATURE_BYTES, sign, verify
from nightmail.e2ee.errors import (
    BadEncoding,
    BadSignature,
    MembershipDiffers,
    NotAsAnnounced,
    Undecipherable,
    UnknownVersion,
    WrongDevice,
)
from nightmail.e2ee.labels import Label
from nightmail.e2ee.note import Note
from nightmail.model.group_chain import HEAD_BYTES
from nightmail.model.rows import Entry

from . import sender_keys
from .sender_keys import KEY_ID_BYTES, ReceivingChain, SenderChain

VERSION = 1
GROUP = 3
"""The type after those of pairwise messages: neither passes for the other."""
_HEADER = struct.Struct(f">BB{KEY_ID_BYTES}sIQ{HEAD_BYTES}s")
HEADER_BYTES = _HEADER.size


class GroupContext(NamedTuple):
    """A group, as it was when a message was accepted."""

    group: int
    genesis: bytes
    epoch: int
    """As the server counts it."""
    head: bytes
    """Of the membership chain, as this device verified it."""


class GroupMessage(NamedTuple):
    """A sealed message, taken apart. Nothing in it is believed yet."""

    key_id: bytes
    """Which chain of its sender opens it."""
    number: int
    epoch: int
    head: bytes
    raw_header: bytes
    ciphertext: bytes
    signature: bytes


def conversation_of(group: int) -> str:
    """A group's conversation id, of which the content tag is made."""
    return f"{group:x}"


def seal_group_note(chain: SenderChain, context: GroupContext, note: Note) -> tuple[SenderChain, bytes]:
    """The one ciphertext of a message. Ask `renewal()` first, and hand a new chain on before."""
    return seal(chain, context, notes.pack(note))


def open_group_entry(
    chain: ReceivingChain, context: GroupContext, entry: Entry, now: int
) -> tuple[ReceivingChain, Note]:
    """A note that is what the server says it is. If this raises, `chain` stays valid: store nothing."""
    if entry.by != chain.sender.device:
        raise WrongDevice(chain.sender.device, entry.by)
    if entry.to != context.group:
        raise NotAsAnnounced("group")
    after, plaintext = open_sealed(chain, context, entry.ciphertext, now)
    note = notes.unpack(plaintext)
    notes.check(note, entry, conversation_of(context.group))
    return after, note


def seal(chain: SenderChain, context: GroupContext, plaintext: bytes) -> tuple[SenderChain, bytes]:
    assert (chain.group, chain.genesis) == (context.group, context.genesis), "a chain belongs to one group"
    header = _HEADER.pack(VERSION, GROUP, chain.key_id, chain.number, context.epoch, context.head)
    associated = _associated(chain, header)
    after, key = sender_keys.to_send(chain)
    ciphertext = encrypt(key, Label.GROUP_MESSAGE_KEYS.value, plaintext, associated)
    return after, header + ciphertext + sign(chain.signing, Label.GROUP_MESSAGE, associated + ciphertext)


def open_sealed(chain: ReceivingChain, context: GroupContext, sealed: bytes, now: int) -> tuple[ReceivingChain, bytes]:
    """The plaintext, and the state to store with it."""
    if (chain.group, chain.genesis) != (context.group, context.genesis):
        raise NotAsAnnounced("group")
    message = decode_group_message(sealed)
    if message.key_id != chain.key_id:
        raise Undecipherable
    associated = _associated(chain, message.raw_header)
    try:
        verify(chain.verify, Label.GROUP_MESSAGE, associated + message.ciphertext, message.signature)
    except BadSignature:
        raise Undecipherable from None
    if message.epoch != context.epoch:
        raise NotAsAnnounced("epoch")
    if not hmac.compare_digest(message.head, context.head):
        raise MembershipDiffers(chain.group, chain.sender.device)
    after, key = sender_keys.to_open(chain, message.number, now)
    return after, decrypt(key, Label.GROUP_MESSAGE_KEYS.value, message.ciphertext, associated)


def decode_group_message(data: bytes) -> GroupMessage:
    if len(data) < HEADER_BYTES + BLOCK_BYTES + MAC_BYTES + SIGNATURE_BYTES:
        raise BadEncoding("group message", f"{len(data)} bytes")
    version, kind, key_id, number, epoch, head = _HEADER.unpack_from(data)
    if version != VERSION:
        raise UnknownVersion("group message", version)
    if kind != GROUP:
        raise BadEncoding("group message", f"type {kind}")
    return GroupMessage(
        key_id, number, epoch, head,
        data[:HEADER_BYTES], data[HEADER_BYTES:-SIGNATURE_BYTES], data[-SIGNATURE_BYTES:],
    )  # fmt: skip


def _associated(chain: SenderChain | ReceivingChain, header: bytes) -> bytes:
    return chain.genesis + chain.sender.encode() + header
