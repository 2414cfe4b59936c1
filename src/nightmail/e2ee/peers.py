"""Another device, and the sessions with it.

Spec:    PQXDH §4.2 (replay), §4.10; the Sesame algorithm §3 (an active session, inactive ones that still open).
         Beyond the spec: two sessions begun at once are settled by their ids, so that both ends seal in the same.
Knows:   which session to seal in: the one the other side last spoke in, unless it was retired.
Never:   believes an identity but the one it was made with. That one comes from a verified device list.

Why "last spoken in": whatever the other side seals in, it can surely open. Why not only that: two sessions begun at
once would swap for ever. The end that finds its own unanswered session crossed by another's marks the two as rivals;
once the other side has spoken in both, both ends hold both, and the smaller id wins. At least one end sees the
crossing, and the other follows it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from . import ratchet, session
from .bundles import Bundle
from .chance import Chance
from .errors import IdentityChanged, NoSession, Undecipherable, Unreadable, WeakKey, WrongDevice
from .header import Block, Message, decode_message
from .identity import Address, Identity
from .keys import DeviceKeys, spend
from .quiet import Quiet
from .session import Session

SESSIONS_MAX = 5
"""Per device. Older ones only serve messages that are still under way."""
RESTART_MS = 3_600_000


class Peer(Quiet, frozen=True):
    """One device of somebody, or another of our own."""

    address: Address
    identity: Identity
    sessions: tuple[Session, ...] = ()
    """The one to seal in comes first."""

    @classmethod
    def of(cls, address: Address, identity: Identity) -> Peer:
        """Without a session yet. Both values come from a device list that was checked."""
        return cls(address, identity)

    @property
    def device(self) -> int:
        return self.address.device

    @property
    def ready(self) -> bool:
        """Whether something can be sealed without a bundle."""
        return bool(self.sessions) and not self.sessions[0].retired


class Opened(NamedTuple):
    """What to store together: both states, with what was opened."""

    keys: DeviceKeys
    peer: Peer
    plaintext: bytes
    spent_prekey: bool
    """A session began, and a one-time key may have been used up: is the stock to be refilled?"""

    def __repr__(self) -> str:
        return f"<Opened from {self.peer.device:x}: {len(self.plaintext)} bytes>"


def begin(keys: DeviceKeys, peer: Peer, bundle: Bundle, chance: Chance, now: int) -> Peer:
    """Begin a session, also anew: what went before is only opened from then on."""
    if bundle.address != peer.address:
        raise WrongDevice(peer.device, bundle.address.device)
    if not bundle.identity.is_same(peer.identity):
        raise IdentityChanged(peer.device)
    fresh = session.begin(keys, bundle, chance, now)
    return replace(peer, sessions=(fresh, *map(_retired, peer.sessions))[:SESSIONS_MAX])


def may_restart(peer: Peer, now: int) -> bool:
    """At most one session an hour is begun with a device, whatever its messages look like: no loops."""
    return all(not known.begun or not 0 <= now - known.made < RESTART_MS for known in peer.sessions)


def seal(peer: Peer, plaintext: bytes) -> tuple[Peer, bytes]:
    """Store the state before the ciphertext leaves: a state that seals twice from one key betrays both."""
    if not peer.ready:
        raise NoSession(peer.device)
    first, *others = peer.sessions
    first, sealed = session.seal(first, plaintext)
    return Peer(peer.address, peer.identity, (first, *others)), sealed


def open_sealed(keys: DeviceKeys, peer: Peer, sealed: bytes, chance: Chance, now: int) -> Opened:
    """Open what came from this device. If anything raises, nothing has changed, and nothing is used up."""
    message = decode_message(sealed)
    block = message.block
    if block is None:
        after, plaintext = _open_known(peer, message, chance, now)
        return Opened(keys, after, plaintext, spent_prekey=False)
    if not block.identity.is_same(peer.identity):
        raise IdentityChanged(peer.device)
    for index, known in enumerate(peer.sessions):
        if known.ephemeral == block.ephemeral and not known.begun:
            after, plaintext = session.open_message(known, message, chance, now)
            return Opened(keys, _spoke(peer, index, after), plaintext, spent_prekey=False)
    return _open_first(keys, peer, message, block, chance, now)


def forget(peer: Peer, now: int) -> Peer:
    """Let go of skipped keys whose time is over. Call it daily."""
    return replace(
        peer, sessions=tuple(replace(known, ratchet=ratchet.forget(known.ratchet, now)) for known in peer.sessions)
    )


def _open_first(
    keys: DeviceKeys, peer: Peer, message: Message, block: Block, chance: Chance, now: int
) -> Opened:  # fmt: skip
    fresh = session.answer(keys, peer.address, peer.identity, block, now)
    fresh, plaintext = session.open_message(fresh, message, chance, now)
    if peer.sessions and peer.sessions[0].begun and not peer.sessions[0].heard:
        fresh = replace(fresh, rival=peer.sessions[0].id)
    return Opened(
        spend(keys, block.one_time_id, block.kem_id, block.ephemeral),
        replace(peer, sessions=(fresh, *peer.sessions)[:SESSIONS_MAX]),
        plaintext,
        spent_prekey=True,
    )


def _open_known(peer: Peer, message: Message, chance: Chance, now: int) -> tuple[Peer, bytes]:
    if not peer.sessions:
        raise NoSession(peer.device)
    key = message.header.key
    for index, known in enumerate(peer.sessions):
        if known.ratchet.knows(key):
            # Nobody else can have this key, so what this session says is the answer.
            after, plaintext = session.open_message(known, message, chance, now)
            return _spoke(peer, index, after), plaintext
    failure: Unreadable = Undecipherable()
    for index, known in enumerate(peer.sessions):
        try:
            after, plaintext = session.open_message(known, message, chance, now)
        except WeakKey:
            break
        except Unreadable as error:
            failure = error
        else:
            return _spoke(peer, index, after), plaintext
    raise failure


def _spoke(peer: Peer, index: int, known: Session) -> Peer:
    """The other side spoke in a session: seal in it from now on, unless it was retired or lost to its rival."""
    if not index:
        return Peer(peer.address, peer.identity, (known, *peer.sessions[1:]))
    first = peer.sessions[0]
    others = [other for at, other in enumerate(peer.sessions) if at not in (0, index)]
    if known.retired:
        order = [first, known, *others]
    elif known.id == first.rival or first.id == known.rival:
        winner, loser = sorted((first, known), key=lambda one: one.id)
        order = [winner, _retired(loser), *others]
    else:
        order = [known, first, *others]
    return replace(peer, sessions=tuple(order))


def _retired(known: Session) -> Session:
    return replace(known, retired=True)
