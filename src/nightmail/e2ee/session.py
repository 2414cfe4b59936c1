"""One session: what PQXDH agreed on, carried on by the ratchet.

Spec:    PQXDH §3.3, last paragraphs (the first message is repeated in front of every message until an answer comes),
         §3.5 (associated data); Double Ratchet §7.1 (both put together).
Knows:   one session. That two may exist between the same devices, `peers.py` knows.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import cipher, pqxdh, ratchet
from .bundles import PrekeyBundle
from .chance import Chance
from .curves import KEY_BYTES
from .header import InitialBlock, SealedMessage, encode_header
from .identity import Address, PublicIdentity
from .keys import DeviceKeys, find
from .labels import Label
from .quiet import Quiet
from .ratchet import Ratchet

_KEYS = Label.MESSAGE_KEYS.value


class RatchetSession(Quiet, frozen=True):
    id: bytes
    """The transcript: both sides compute the same, and every message's MAC covers it."""
    ephemeral: bytes
    """The initiator's: how a repeated first message finds the session it began."""
    block: bytes
    """The initial block, which precedes every message until the other side has answered; empty from then on."""
    begun: bool
    """By us."""
    heard: bool
    """A message of the other side came in it, so the other side has it."""
    made: int
    """As its initiator says: `peers.py` seals in the latest."""
    ratchet: Ratchet


def begin(keys: DeviceKeys, bundle: PrekeyBundle, chance: Chance, made: int) -> RatchetSession:
    agreed, block = pqxdh.initiate(keys, bundle, chance, made)
    state = ratchet.initiate(agreed.secret, bundle.signed.key, chance.draw(KEY_BYTES))
    return RatchetSession(
        agreed.transcript, block.ephemeral, block.encode(), begun=True, heard=False, made=made, ratchet=state
    )


def answer(keys: DeviceKeys, sender: Address, identity: PublicIdentity, block: InitialBlock) -> RatchetSession:
    """The session that a first message begins. Nothing is used up until that message has opened."""
    secrets = find(keys, block.signed_id, block.one_time_id, block.kem_id, block.ephemeral)
    agreed = pqxdh.respond(keys, sender, identity, block, secrets)
    state = ratchet.respond(agreed.secret, secrets.signed)
    return RatchetSession(
        agreed.transcript, block.ephemeral, b"", begun=False, heard=True, made=block.made, ratchet=state
    )


def seal(session: RatchetSession, plaintext: bytes) -> tuple[RatchetSession, bytes]:
    before = session.ratchet
    after, key = ratchet.to_send(before)
    header = encode_header(before.own_public, before.previous, before.sent, session.block)
    sealed = cipher.encrypt(key, _KEYS, plaintext, session.id + header)
    return _with(session, after), header + sealed


def open_message(
    session: RatchetSession, message: SealedMessage, chance: Chance, now: int
) -> tuple[RatchetSession, bytes]:
    after, key = ratchet.to_open(session.ratchet, message.header, chance, now)
    plaintext = cipher.decrypt(key, _KEYS, message.ciphertext, session.id + message.raw_header)
    if session.heard:
        return _with(session, after), plaintext
    return replace(session, ratchet=after, heard=True, block=b""), plaintext


def _with(session: RatchetSession, after: Ratchet) -> RatchetSession:
    s = session
    return RatchetSession(s.id, s.ephemeral, s.block, s.begun, s.heard, s.made, after)
