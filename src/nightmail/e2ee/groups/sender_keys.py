"""Sender keys: one chain for each device that writes into a group, so that a message is sealed once for everybody.

Spec:    Double Ratchet §2.2 (symmetric-key ratchet); the sender keys of Signal's groups: a chain key and a signing key,
         both random, handed to every device of the group through its pairwise session.
Knows:   chains, how they are handed on, and when a device must make a new one. `sealing.py` seals with them.
Never:   changes a state: a step returns the next one. If a message does not open, the caller keeps its state.

    a chain, handed on:  version u8 ‖ group u64 ‖ genesis 32 ‖ verify key 32 ‖ N u32 ‖ chain key 32       109 bytes
    key id:              SHA-256(label sender-key-id ‖ 0 ‖ verify key)[:8]

A chain key opens what comes after it: a newcomer gets the chain as it stands, and reads nothing older. It heals
nothing: a device that was copied once can be listened to until it makes a new chain.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import NamedTuple

from msgspec import field
from msgspec.structs import replace

from nightmail.e2ee.chance import Chance
from nightmail.e2ee.curves import KEY_BYTES, signing_public
from nightmail.e2ee.errors import BadEncoding, KeySpent, TooFarAhead, UnknownVersion
from nightmail.e2ee.identity import Address
from nightmail.e2ee.kdf import chain_step
from nightmail.e2ee.labels import Label
from nightmail.e2ee.quiet import Quiet
from nightmail.e2ee.ratchet import SKIP_MAX, SKIPPED_MAX
from nightmail.model.group_chain import HEAD_BYTES, is_group
from nightmail.model.limits import DAY_MS

VERSION = 1
KEY_ID_BYTES = 8
MESSAGES_MAX = 1_000
CHAIN_MS = 7 * DAY_MS
"""A chain seals so many messages for so long."""
KEPT_MS = CHAIN_MS + 31 * DAY_MS
"""A receiving chain is kept so long after its last use: its sender may use it for a week, and the server may hold the
last message for 30 days."""
CHAINS_MAX = 512
"""Receiving chains kept of one device in one group. Each removal of a member makes a new one."""
_HANDED = struct.Struct(f">BQ{HEAD_BYTES}s{KEY_BYTES}sI{KEY_BYTES}s")


def key_id_of(verify_key: bytes) -> bytes:
    """Which chain a message belongs to. A device whose store was put back from a copy cannot use one twice."""
    return hashlib.sha256(Label.SENDER_KEY_ID.value + b"\0" + verify_key).digest()[:KEY_ID_BYTES]


# --- the device that writes -------------------------------------------------------------------


class SenderChain(Quiet, frozen=True):
    """A device's own chain in one group."""

    sender: Address
    group: int
    genesis: bytes
    """The hash of the group's creation: another group with the same number is another group."""
    key_id: bytes
    signing: bytes
    verify: bytes
    chain: bytes
    number: int
    """Of the next message."""
    made: int


class Renewal(IntEnum):
    """Why a new chain must be made before the next message."""

    NO_CHAIN = 1
    HOLDER_LEFT = 2
    MESSAGES = 3
    AGE = 4
    BEHIND = 5


def make_chain(sender: Address, group: int, genesis: bytes, chance: Chance, now: int) -> SenderChain:
    signing = chance.draw(KEY_BYTES)
    verify = signing_public(signing)
    return SenderChain(sender, group, genesis, key_id_of(verify), signing, verify, chance.draw(KEY_BYTES), 0, now)


def left_holders(holders: Iterable[Address], audience: AbstractSet[Address]) -> list[Address]:
    """Devices that hold a chain and may not read on.

    `holders` were handed the chain, or may have been; `audience` are the devices that the signed lists of all members
    name. Compare them whenever a list or the membership changes. The server's epoch must not decide when: a server
    that keeps it still would keep a removed device listening.
    """
    return [holder for holder in holders if holder not in audience]


def renewal(chain: SenderChain | None, left: Collection[Address], is_behind: bool, now: int) -> Renewal | None:
    """Why a new chain must be made before the next message; None if this one may go on.

    `left` is what `left_holders` found. `is_behind`: the server has taken numbers of this device that its store does
    not know. The store is an old copy, and the next message keys were used before.
    """
    if chain is None:
        return Renewal.NO_CHAIN
    if left:
        return Renewal.HOLDER_LEFT
    if chain.number >= MESSAGES_MAX:
        return Renewal.MESSAGES
    if abs(now - chain.made) >= CHAIN_MS:
        # Also from a clock that was far ahead when the chain was made.
        return Renewal.AGE
    return Renewal.BEHIND if is_behind else None


def to_send(chain: SenderChain) -> tuple[SenderChain, bytes]:
    """The key of the next message, whose number is that of the chain before."""
    assert chain.number < MESSAGES_MAX, "renewal() says when to stop"
    after, key = chain_step(chain.chain)
    return replace(chain, chain=after, number=chain.number + 1), key


# --- handing it on ----------------------------------------------------------------------------


class HandedChain(NamedTuple):
    """A chain as it stands, for one device: sealed for it in the pairwise session."""

    group: int
    genesis: bytes
    verify: bytes
    number: int
    chain: bytes

    def __repr__(self) -> str:
        return f"<HandedChain of group {self.group:x}>"


def hand_on(chain: SenderChain) -> bytes:
    return _HANDED.pack(VERSION, chain.group, chain.genesis, chain.verify, chain.number, chain.chain)


def decode_handed(data: bytes) -> HandedChain:
    if len(data) != _HANDED.size:
        raise BadEncoding("sender key", f"{len(data)} bytes")
    version, *fields = _HANDED.unpack(data)
    if version != VERSION:
        raise UnknownVersion("sender key", version)
    handed = HandedChain(*fields)
    if not is_group(handed.group):
        raise BadEncoding("sender key", "its group has no group's number")
    if handed.number > MESSAGES_MAX:
        raise BadEncoding("sender key", f"number {handed.number} is past the end of a chain")
    return handed


# --- the devices that read --------------------------------------------------------------------


class ReceivingChain(Quiet, frozen=True):
    """The chain of another device, as far as this one has read."""

    sender: Address
    group: int
    genesis: bytes
    key_id: bytes
    verify: bytes
    chain: bytes
    number: int
    """Of the next message that has not been seen."""
    used: int
    """When it came, or opened something last."""
    skipped: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Number → the key of a message that has not come. Ascending."""


def receive_chain(
    handed: HandedChain, sender: Address, now: int, known: ReceivingChain | None = None
) -> ReceivingChain:
    """A chain that `sender` handed to this device in their session.

    `known` is the one with the same key id, if there is one. It stays as it is: from an earlier place, messages that
    were opened would open again.
    """
    if known is not None and (known.sender, known.group, known.genesis) == (sender, handed.group, handed.genesis):
        return known
    return ReceivingChain(
        sender, handed.group, handed.genesis, key_id_of(handed.verify), handed.verify, handed.chain, handed.number, now
    )


def to_open(chain: ReceivingChain, number: int, now: int) -> tuple[ReceivingChain, bytes]:
    """The key of a message, and the state to store if the message opens with it."""
    if number < chain.number:
        if (key := chain.skipped.get(number)) is None:
            raise KeySpent(number)
        left = {at: kept for at, kept in chain.skipped.items() if at != number}
        return replace(chain, skipped=left, used=now), key
    if (skips := number - chain.number) > SKIP_MAX:
        raise TooFarAhead(skips, SKIP_MAX)
    after, skipped = chain.chain, chain.skipped
    if skips:
        skipped = dict(skipped)
        for missed in range(chain.number, number):
            after, skipped[missed] = chain_step(after)
        for oldest in list(skipped)[: max(0, len(skipped) - SKIPPED_MAX)]:
            del skipped[oldest]
    after, key = chain_step(after)
    return replace(chain, chain=after, number=number + 1, skipped=skipped, used=now), key


def outdated(chains: Iterable[ReceivingChain], now: int) -> list[bytes]:
    """Key ids to delete, of the chains that are kept of one device in one group."""
    newest_first = sorted(chains, key=lambda chain: chain.used, reverse=True)
    return [
        chain.key_id for place, chain in enumerate(newest_first) if place >= CHAINS_MAX or now - chain.used > KEPT_MS
    ]
