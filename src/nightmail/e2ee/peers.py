"""Another device, and the sessions with it.

Spec:    PQXDH §4.2 (replay), §4.10; the Sesame algorithm §3 (an active session, inactive ones that still open).
         Beyond the spec: which session is active follows from the sessions alone, so both ends choose the same.
Knows:   which session to seal in: the one begun last; of two begun at the same moment, the one with the smaller id.
Never:   accepts an identity other than the one it was made with, which comes from a verified device list.

Why this is enough: a new session gets a time later than that of every session its initiator knows. So a session that
replaces a broken one wins at both ends; and if two sessions cross, both ends choose the same one as soon as each has
received a message of the other. Until then both sessions can be opened: the initial block precedes every message until
the session is answered. Nothing depends on the order in which messages arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from . import ratchet, session
from .bundles import PrekeyBundle
from .chance import Chance
from .errors import CannotOpen, IdentityChanged, NoSession, NotLasting, Undecipherable, WeakKey, WrongDevice
from .header import MADE_MAX, InitialBlock, SealedMessage, decode_message
from .identity import Address, PublicIdentity
from .keys import DeviceKeys, spend
from .quiet import Quiet
from .session import RatchetSession

SESSIONS_MAX = 5
"""Per device. Older ones only serve messages that are still under way.

Beyond it the oldest is dropped: the younger a session, the more likely something sealed in it is still under way. A
message of a dropped session is sealed again. More sessions would make a forged header cost more: each of them is tried.
"""
RESTART_MS = 3_600_000
ONCE = 0
"""The time of a session that nobody keeps. It carries one message, which may be delivered weeks after it was sealed:
until then either end may have lost any session, and the message must not bring an old one back."""


class Peer(Quiet, frozen=True):
    """A device of another account, or another device of our own."""

    address: Address
    identity: PublicIdentity
    sessions: tuple[RatchetSession, ...] = ()
    """The one to seal in comes first."""
    begun: int = 0
    """When we last began one, by our own clock."""

    @classmethod
    def of(cls, address: Address, identity: PublicIdentity) -> Peer:
        """Without a session yet. Both values come from a device list that was checked."""
        return cls(address, identity)

    @property
    def device(self) -> int:
        return self.address.device

    @property
    def ready(self) -> bool:
        """Whether something can be sealed without a bundle."""
        return bool(self.sessions)


class Opened(NamedTuple):
    """What to store together: both states, with what was opened."""

    keys: DeviceKeys
    peer: Peer
    plaintext: bytes
    spent_prekey: bool
    """A session began, and a one-time key may have been used up."""

    def __repr__(self) -> str:
        return f"<Opened from {self.peer.device:x}: {len(self.plaintext)} bytes>"


def begin(keys: DeviceKeys, peer: Peer, bundle: PrekeyBundle, chance: Chance, now: int) -> Peer:
    """Begin a session. If there were others, both ends seal in the new one and still open messages of the others."""
    _check(peer, bundle)
    made = min(max([now, ONCE + 1, *(known.made + 1 for known in peer.sessions)]), MADE_MAX)
    return Peer(peer.address, peer.identity, _with(peer, session.begin(keys, bundle, chance, made)), now)


def seal_once(keys: DeviceKeys, peer: Peer, bundle: PrekeyBundle, plaintext: bytes, chance: Chance) -> bytes:
    """Seal one message in a session of its own, which is dropped here. The sessions with the device stay as they are.

    Only with keys that everybody gets: a one-time key would be gone although nothing is delivered for weeks.
    """
    _check(peer, bundle)
    if bundle.one_time is not None or not bundle.kem.last_resort:
        raise NotLasting(peer.device)
    _, sealed = session.seal(session.begin(keys, bundle, chance, ONCE), plaintext)
    return sealed


def may_restart(peer: Peer, now: int, restart_ms: int = RESTART_MS) -> bool:
    """Whether another session may be begun with a device: at most one an hour, so that two devices never loop.

    One more at once if that one was never answered: it may have begun with a key that the device has lost.
    """
    if not peer.begun or not 0 <= now - peer.begun < restart_ms:
        return True
    silent = [known for known in peer.sessions if known.begun and not known.heard and now - known.made < restart_ms]
    return len(silent) == 1 and silent[0] is peer.sessions[0]


def seal(peer: Peer, plaintext: bytes) -> tuple[Peer, bytes]:
    """Store the state before the ciphertext leaves: a key that seals twice betrays both messages."""
    if not peer.ready:
        raise NoSession(peer.device)
    first, *others = peer.sessions
    first, sealed = session.seal(first, plaintext)
    return Peer(peer.address, peer.identity, (first, *others), peer.begun), sealed


def open_sealed(keys: DeviceKeys, peer: Peer, sealed: bytes, chance: Chance, now: int) -> Opened:
    """Open what came from this device. If anything raises, nothing has changed, and nothing is used up."""
    message = decode_message(sealed)
    block = message.block
    if block is None:
        after, plaintext = _open_known(peer, message, chance, now)
        return Opened(keys, after, plaintext, False)
    if not block.identity.is_same(peer.identity):
        raise IdentityChanged(peer.device)
    for index, known in enumerate(peer.sessions):
        if known.ephemeral == block.ephemeral and not known.begun:
            after, plaintext = session.open_message(known, message, chance, now)
            return Opened(keys, _advanced(peer, index, after), plaintext, spent_prekey=False)
    return _open_first(keys, peer, message, block, chance, now)


def forget(peer: Peer, now: int) -> Peer:
    """Delete skipped keys whose time is over. Call it daily."""
    return replace(
        peer, sessions=tuple(replace(known, ratchet=ratchet.forget(known.ratchet, now)) for known in peer.sessions)
    )


def _open_first(
    keys: DeviceKeys, peer: Peer, message: SealedMessage, block: InitialBlock, chance: Chance, now: int
) -> Opened:  # fmt: skip
    fresh = session.answer(keys, peer.address, peer.identity, block)
    fresh, plaintext = session.open_message(fresh, message, chance, now)
    return Opened(
        spend(keys, block.one_time_id, block.kem_id, block.ephemeral),
        peer if block.made == ONCE else replace(peer, sessions=_with(peer, fresh)),
        plaintext,
        spent_prekey=True,
    )


def _check(peer: Peer, bundle: PrekeyBundle) -> None:
    """Raises unless the bundle is that of the device that the list names."""
    if bundle.address != peer.address:
        raise WrongDevice(peer.device, bundle.address.device)
    if not bundle.identity.is_same(peer.identity):
        raise IdentityChanged(peer.device)


def _open_known(peer: Peer, message: SealedMessage, chance: Chance, now: int) -> tuple[Peer, bytes]:
    if not peer.sessions:
        raise NoSession(peer.device)
    key = message.header.key
    first = peer.sessions[0]
    if first.ratchet.remote == key:
        # The usual case.
        after, plaintext = session.open_message(first, message, chance, now)
        return _advanced(peer, 0, after), plaintext
    for index, known in enumerate(peer.sessions):
        if known.ratchet.knows(key):
            # Only this session has this key, so its result is final.
            after, plaintext = session.open_message(known, message, chance, now)
            return _advanced(peer, index, after), plaintext
    failure: CannotOpen = Undecipherable()
    for index, known in enumerate(peer.sessions):
        try:
            after, plaintext = session.open_message(known, message, chance, now)
        except WeakKey:
            break
        except CannotOpen as error:
            failure = error
        else:
            return _advanced(peer, index, after), plaintext
    raise failure


def _advanced(peer: Peer, index: int, known: RatchetSession) -> Peer:
    sessions = peer.sessions
    if len(sessions) == 1:
        return Peer(peer.address, peer.identity, (known,), peer.begun)
    return Peer(peer.address, peer.identity, (*sessions[:index], known, *sessions[index + 1 :]), peer.begun)


def _with(peer: Peer, fresh: RatchetSession) -> tuple[RatchetSession, ...]:
    """The sessions in order of preference. A new one always stays, whatever its initiator's clock says."""
    kept = peer.sessions if len(peer.sessions) < SESSIONS_MAX else peer.sessions[:-1]
    return tuple(sorted((*kept, fresh), key=lambda one: (-one.made, one.id)))
