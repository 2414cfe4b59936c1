"""The Double Ratchet: a new key for every message, and a new secret with every answer.

Spec:    The Double Ratchet Algorithm, revision 4, §3 (without header encryption): RatchetInitAlice, RatchetInitBob,
         RatchetEncrypt, RatchetDecrypt, SkipMessageKeys, DHRatchet; §3.5 and §8.3 (bounds on skipped keys).
Knows:   keys and counts, nothing of the form of headers or of what is sealed.
Never:   changes a state: a step returns the next one. If a message does not open, the caller keeps its state.
"""

from __future__ import annotations

import struct

from msgspec import field

from .chance import Chance
from .curves import KEY_BYTES, agree, agreement_public
from .errors import KeySpent, TooFarAhead
from .header import Header
from .kdf import chain_step, root_step
from .labels import Label
from .quiet import Quiet

SKIP_MAX = 2_000
"""Messages that one message may skip: each costs two hashes before its MAC can be checked."""
SKIPPED_MAX = 2_000
"""Keys that are stored for messages that have not come. Beyond it the oldest are deleted."""
SKIPPED_MS = 30 * 86_400_000
PAST_MAX = 8
"""Earlier ratchet keys of the other side that are recognised, so that a replay costs nothing."""
_NUMBER = struct.Struct(">I")


class Skipped(Quiet, frozen=True):
    key: bytes
    at: int


class Ratchet(Quiet, frozen=True):
    root: bytes
    own: bytes
    own_public: bytes
    remote: bytes = b""
    """The other side's ratchet key; empty until a message of it came, or its prekey is known."""
    sending: bytes = b""
    """Chain key; empty on the side that must receive first."""
    sent: int = 0
    previous: int = 0
    """PN: how many were sent in the chain before this one."""
    receiving: bytes = b""
    received: int = 0
    past: tuple[bytes, ...] = ()
    skipped: dict[bytes, Skipped] = field(default_factory=dict[bytes, Skipped])
    """Ratchet key ‖ number → the key of a message that has not come. Oldest first."""

    def knows(self, key: bytes) -> bool:
        return key == self.remote or key in self.past


def initiate(secret: bytes, remote: bytes, own: bytes, label: bytes = Label.ROOT.value) -> Ratchet:
    """RatchetInitAlice: `remote` is the signed prekey, `own` a fresh private key."""
    root, sending = root_step(secret, agree(own, remote), label)
    return Ratchet(root, own, agreement_public(own), remote, sending)


def respond(secret: bytes, own: bytes) -> Ratchet:
    """RatchetInitBob: `own` is the private half of the signed prekey."""
    return Ratchet(secret, own, agreement_public(own))


def to_send(ratchet: Ratchet) -> tuple[Ratchet, bytes]:
    """The key of the next message. Its header is (own_public, previous, sent) of the state before."""
    assert ratchet.sending, "this side must receive first"
    sending, key = chain_step(ratchet.sending)
    r = ratchet
    return Ratchet(
        r.root, r.own, r.own_public, r.remote, sending, r.sent + 1, r.previous,
        r.receiving, r.received, r.past, r.skipped,
    ), key  # fmt: skip


def to_open(
    ratchet: Ratchet, header: Header, chance: Chance, now: int, label: bytes = Label.ROOT.value
) -> tuple[Ratchet, bytes]:
    """The key of the message with this header, and the state to store if the message opens with it."""
    r = ratchet
    if r.skipped and (found := r.skipped.get(header.key + _NUMBER.pack(header.number))):
        return _take(r, header, found, now)
    if header.key == r.remote and r.receiving:
        if header.number < r.received:
            raise KeySpent(header.number)
        return _along(r, header.number, now)
    if r.knows(header.key) and r.receiving:
        # An earlier chain: the keys of its missing messages are among the skipped ones.
        raise KeySpent(header.number)
    return _turn(r, header, chance, now, label)


def forget(ratchet: Ratchet, now: int) -> Ratchet:
    """Delete skipped keys whose time is over."""
    kept = _young(ratchet.skipped, now)
    return ratchet if len(kept) == len(ratchet.skipped) else _with(ratchet, kept)


def _take(r: Ratchet, header: Header, found: Skipped, now: int) -> tuple[Ratchet, bytes]:
    if now - found.at > SKIPPED_MS:
        raise KeySpent(header.number)
    left = dict(r.skipped)
    del left[header.key + _NUMBER.pack(header.number)]
    return _with(r, left), found.key


def _along(r: Ratchet, number: int, now: int) -> tuple[Ratchet, bytes]:
    """A later message of the chain that the other side is in."""
    skipped = r.skipped
    chain = r.receiving
    if number > r.received:
        if (skips := number - r.received) > SKIP_MAX:
            raise TooFarAhead(skips, SKIP_MAX)
        chain, missed = _skip(r.remote, chain, r.received, number, now)
        skipped = _bounded(skipped | missed, now)
    chain, key = chain_step(chain)
    return Ratchet(
        r.root, r.own, r.own_public, r.remote, r.sending, r.sent, r.previous, chain, number + 1, r.past, skipped
    ), key  # fmt: skip


def _turn(r: Ratchet, header: Header, chance: Chance, now: int, label: bytes) -> tuple[Ratchet, bytes]:
    """DHRatchet: the other side has a new key. Close its old chain, open its new one, and begin one of our own."""
    behind = max(header.previous - r.received, 0) if r.receiving else 0
    if behind + header.number > SKIP_MAX:
        raise TooFarAhead(behind + header.number, SKIP_MAX)
    root, receiving = root_step(r.root, agree(r.own, header.key), label)
    own = chance.draw(KEY_BYTES)
    root, sending = root_step(root, agree(own, header.key), label)
    skipped, past = r.skipped, r.past
    if r.receiving:
        past = (r.remote, *past)[:PAST_MAX]
        if behind:
            _, missed = _skip(r.remote, r.receiving, r.received, header.previous, now)
            skipped = skipped | missed
    if header.number:
        receiving, missed = _skip(header.key, receiving, 0, header.number, now)
        skipped = skipped | missed
    receiving, key = chain_step(receiving)
    return Ratchet(
        root, own, agreement_public(own), header.key, sending, 0, r.sent,
        receiving, header.number + 1, past, _bounded(skipped, now),
    ), key  # fmt: skip


def _skip(remote: bytes, chain: bytes, since: int, until: int, now: int) -> tuple[bytes, dict[bytes, Skipped]]:
    missed: dict[bytes, Skipped] = {}
    for number in range(since, until):
        chain, key = chain_step(chain)
        missed[remote + _NUMBER.pack(number)] = Skipped(key, now)
    return chain, missed


def _bounded(skipped: dict[bytes, Skipped], now: int) -> dict[bytes, Skipped]:
    kept = _young(skipped, now)
    for at in list(kept)[: len(kept) - SKIPPED_MAX] if len(kept) > SKIPPED_MAX else ():
        del kept[at]
    return kept


def _young(skipped: dict[bytes, Skipped], now: int) -> dict[bytes, Skipped]:
    return {at: kept for at, kept in skipped.items() if now - kept.at <= SKIPPED_MS}


def _with(r: Ratchet, skipped: dict[bytes, Skipped]) -> Ratchet:
    return Ratchet(
        r.root, r.own, r.own_public, r.remote, r.sending, r.sent, r.previous,
        r.receiving, r.received, r.past, skipped,
    )  # fmt: skip
