"""What precedes a ciphertext: its place in the ratchet and, until the session is answered, how the session began.

Spec:    Double Ratchet §3.3 (HEADER: the ratchet key, PN and N); PQXDH §3.3 (the initial message).

    version u8 ‖ type u8 ‖ ratchet key 32 ‖ PN u32 ‖ N u32                                      42 bytes
    type 2, further: length u16 ‖ signed prekey u32 ‖ one-time prekey u32 (0: none) ‖ KEM prekey u32 ‖ made u64
                     ‖ identity 64 ‖ ephemeral key 32 ‖ KEM ciphertext 1568
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .errors import BadEncoding, UnknownVersion
from .identity import IDENTITY_BYTES, PublicIdentity
from .kem import CIPHERTEXT_BYTES

VERSION = 1
PLAIN = 1
FIRST = 2
"""Begins a session, or belongs to one that the other side may not know yet."""
_HEADER = struct.Struct(">BB32sII")
_LENGTH = struct.Struct(">H")
_BLOCK = struct.Struct(f">IIIQ{IDENTITY_BYTES}s32s{CIPHERTEXT_BYTES}s")
HEADER_BYTES = _HEADER.size
BLOCK_BYTES = _BLOCK.size
HEADER_BYTES_MAX = HEADER_BYTES + _LENGTH.size + BLOCK_BYTES
CIPHERTEXT_BYTES_MIN = 16 + 32
MADE_MAX = (1 << 53) - 1
"""The largest integer that every language represents exactly. A session with this time can only be matched, not
exceeded, by the next one; the ids then decide."""


class Header(NamedTuple):
    key: bytes
    previous: int
    number: int


class InitialBlock(NamedTuple):
    """How a session began: what the other side needs to derive its secret."""

    signed_id: int
    one_time_id: int
    kem_id: int
    made: int
    """When the session was begun, in milliseconds; later than every session that its initiator knew."""
    identity: PublicIdentity
    ephemeral: bytes
    kem_ciphertext: bytes

    def encode(self) -> bytes:
        return _BLOCK.pack(
            self.signed_id, self.one_time_id, self.kem_id, self.made,
            self.identity.encode(), self.ephemeral, self.kem_ciphertext,
        )  # fmt: skip


class SealedMessage(NamedTuple):
    """A sealed message, taken apart. Nothing in it is believed yet."""

    header: Header
    block: InitialBlock | None
    raw_header: bytes
    """As it came: this is what the MAC covers."""
    ciphertext: bytes


def encode_header(key: bytes, previous: int, number: int, block: bytes) -> bytes:
    if not block:
        return _HEADER.pack(VERSION, PLAIN, key, previous, number)
    return _HEADER.pack(VERSION, FIRST, key, previous, number) + _LENGTH.pack(len(block)) + block


def decode_message(data: bytes) -> SealedMessage:
    if len(data) < HEADER_BYTES + CIPHERTEXT_BYTES_MIN:
        raise BadEncoding("sealed message", f"{len(data)} bytes")
    version, kind, key, previous, number = _HEADER.unpack_from(data)
    if version != VERSION:
        raise UnknownVersion("sealed message", version)
    header = Header(key, previous, number)
    if kind == PLAIN:
        return SealedMessage(header, None, data[:HEADER_BYTES], data[HEADER_BYTES:])
    if kind != FIRST:
        raise BadEncoding("sealed message", f"type {kind}")
    end = HEADER_BYTES_MAX
    if _LENGTH.unpack_from(data, HEADER_BYTES) != (BLOCK_BYTES,) or len(data) < end + CIPHERTEXT_BYTES_MIN:
        raise BadEncoding("sealed message", "its first part has another length")
    signed_id, one_time_id, kem_id, made, identity, ephemeral, ciphertext = _BLOCK.unpack_from(
        data, HEADER_BYTES + _LENGTH.size
    )
    if made > MADE_MAX:
        raise BadEncoding("sealed message", "its session was begun after the end of time")
    block = InitialBlock(signed_id, one_time_id, kem_id, made, PublicIdentity.decode(identity), ephemeral, ciphertext)
    return SealedMessage(header, block, data[:end], data[end:])
