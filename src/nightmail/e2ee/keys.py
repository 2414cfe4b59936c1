"""A device's own keys: identity, prekeys, and what was used up. A value; its owner stores it.

Spec:    PQXDH §3.2 (signed, one-time and last-resort prekeys), §4.2 (replay), §4.10 (deleting keys).
Knows:   when to renew keys and when to delete them. Ids only grow and are never used again.
Never:   reads a clock or draws random bytes by itself: `now` (milliseconds) and `chance` are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import field
from msgspec.structs import replace

from . import kem
from .bundles import KemPrekey, OneTimePrekey, SignedPrekey, sign_prekey
from .chance import Chance
from .curves import KEY_BYTES, agreement_public
from .errors import PrekeyGone
from .identity import Address, IdentityKeys
from .labels import Label
from .quiet import Quiet

DAY_MS = 86_400_000
ROTATE_MS = 7 * DAY_MS
KEPT_MS = 62 * DAY_MS
"""A sender may hold a sealed message for 29 days and the server for another 30; the rest is a margin."""
STOCK = 100
STOCK_MAX = 200
"""The most that a server holds. It hands out the oldest first, so all keys older than this many were handed out."""
KEM_STOCK = 20
KEM_STOCK_MAX = 40
HELD_MAX = 2_000
KEM_HELD_MAX = 400
"""The most private one-time keys that are held. Somebody may claim keys all day, and each must be held for as long as a
first message may be under way: without a bound, a million of them. Beyond it the oldest are deleted: they were handed
out long ago, and a message that was sealed for one of them is sealed again."""
SPENT_MAX = 10_000
"""First messages without a one-time key that are remembered per last-resort key. Beyond it the oldest are forgotten."""


class Renewed(Quiet, frozen=True):
    """A prekey that is replaced weekly. `secret` is an X25519 key or an ML-KEM seed."""

    id: int
    secret: bytes
    made: int
    replaced: int = 0
    """When its successor was made; 0: it is the current one."""


class OneTime(Quiet, frozen=True):
    secret: bytes
    overtaken: int = 0
    """When so many newer ones existed that this one must have been handed out; 0: not yet."""


class DeviceKeys(Quiet, frozen=True):
    address: Address
    identity: IdentityKeys
    account: bytes = b""
    """The account's signing key, on the primary device; empty elsewhere."""
    next_id: int = 1
    next_kem_id: int = 1
    offered: int = 0
    """The highest id of a one-time key that the server has confirmed."""
    offered_kem: int = 0
    signed: tuple[Renewed, ...] = ()
    """The current one first."""
    last_resort: tuple[Renewed, ...] = ()
    one_time: dict[int, OneTime] = field(default_factory=dict[int, OneTime])
    one_time_kem: dict[int, OneTime] = field(default_factory=dict[int, OneTime])
    spent: dict[int, tuple[bytes, ...]] = field(default_factory=dict[int, tuple[bytes, ...]])
    """Last-resort key → ephemeral keys of first messages that used no one-time key: each opens once."""


class Upload(NamedTuple):
    """What is published: public halves only, each in the form of `bundles.py`."""

    identity: bytes
    signed: bytes
    last_resort: bytes
    one_time: tuple[bytes, ...]
    one_time_kem: tuple[bytes, ...]


class Secrets(NamedTuple):
    """The private halves that a first message was sealed to."""

    signed: bytes
    one_time: bytes | None
    kem: bytes

    def __repr__(self) -> str:
        return "<Secrets>"


def make_keys(
    address: Address, chance: Chance, now: int,
    *, primary: bool = False, count: int = STOCK, kem_count: int = KEM_STOCK,
) -> DeviceKeys:  # fmt: skip
    """A new device, with prekeys and a full stock. A primary device also gets its account's key."""
    account = chance.draw(KEY_BYTES) if primary else b""
    bare = DeviceKeys(address, IdentityKeys.make(chance), account)
    return stock(rotate(bare, chance, now), chance, now, count, kem_count)


def rotate(keys: DeviceKeys, chance: Chance, now: int, every_ms: int = ROTATE_MS) -> DeviceKeys:
    """Renew keys that are `every_ms` old, and delete those that no message under way can need. Call it daily."""
    current = keys.signed[0] if keys.signed else None
    # A clock that was set back must not keep a key forever.
    if current is None or not 0 <= now - current.made < every_ms:
        signed = Renewed(keys.next_id, chance.draw(KEY_BYTES), now)
        last = Renewed(keys.next_kem_id, chance.draw(kem.SEED_BYTES), now)
        keys = replace(
            keys,
            next_id=signed.id + 1,
            next_kem_id=last.id + 1,
            signed=(signed, *_replaced(keys.signed, now)),
            last_resort=(last, *_replaced(keys.last_resort, now)),
        )
    last_resort = _still_needed(keys.last_resort, now)
    held = {renewed.id for renewed in last_resort}
    return replace(
        keys,
        signed=_still_needed(keys.signed, now),
        last_resort=last_resort,
        one_time=_not_overtaken(keys.one_time, now),
        one_time_kem=_not_overtaken(keys.one_time_kem, now),
        spent={key_id: seen for key_id, seen in keys.spent.items() if key_id in held},
    )


def stock(keys: DeviceKeys, chance: Chance, now: int, count: int = STOCK, kem_count: int = KEM_STOCK) -> DeviceKeys:
    """Add one-time keys."""
    fresh = {keys.next_id + i: OneTime(chance.draw(KEY_BYTES)) for i in range(count)}
    fresh_kem = {keys.next_kem_id + i: OneTime(chance.draw(kem.SEED_BYTES)) for i in range(kem_count)}
    return replace(
        keys,
        next_id=keys.next_id + count,
        next_kem_id=keys.next_kem_id + kem_count,
        one_time=_youngest(_overtake(keys.one_time, STOCK_MAX - count, now) | fresh, HELD_MAX),
        one_time_kem=_youngest(_overtake(keys.one_time_kem, KEM_STOCK_MAX - kem_count, now) | fresh_kem, KEM_HELD_MAX),
    )


def upload(keys: DeviceKeys) -> Upload:
    """What the server has not confirmed yet, and the current prekeys. Repeating it is harmless: ids only grow."""
    me, signing = keys.address, keys.identity.signing
    signed, last = keys.signed[0], keys.last_resort[0]
    public = agreement_public(signed.secret)
    return Upload(
        keys.identity.vouched(),
        SignedPrekey(signed.id, public, sign_prekey(signing, Label.SIGNED_PREKEY, me, signed.id, public)).encode(),
        _kem_prekey(keys, last.id, last.secret, last_resort=True).encode(),
        tuple(
            OneTimePrekey(key_id, agreement_public(key.secret)).encode()
            for key_id, key in keys.one_time.items()
            if key_id > keys.offered
        ),
        tuple(
            _kem_prekey(keys, key_id, key.secret, last_resort=False).encode()
            for key_id, key in keys.one_time_kem.items()
            if key_id > keys.offered_kem
        ),
    )


def confirmed(keys: DeviceKeys, sent: Upload) -> DeviceKeys:
    """The server has it: these one-time keys need not be sent again."""
    ids = [OneTimePrekey.decode(part).id for part in sent.one_time]
    kem_ids = [KemPrekey.decode(part).id for part in sent.one_time_kem]
    return replace(keys, offered=max([keys.offered, *ids]), offered_kem=max([keys.offered_kem, *kem_ids]))


def find(keys: DeviceKeys, signed_id: int, one_time_id: int, kem_id: int, ephemeral: bytes) -> Secrets:
    """The private halves a first message names; raises if one is gone, or if it came before. Changes nothing."""
    signed = next((key.secret for key in keys.signed if key.id == signed_id), None)
    if signed is None:
        raise PrekeyGone("signed prekey", signed_id)
    one_time = keys.one_time.get(one_time_id)
    if one_time is None and one_time_id:
        raise PrekeyGone("one-time prekey", one_time_id)
    if found := keys.one_time_kem.get(kem_id):
        seed = found.secret
    else:
        seed = next((key.secret for key in keys.last_resort if key.id == kem_id), None)
        if seed is None or ephemeral in keys.spent.get(kem_id, ()):
            raise PrekeyGone("KEM prekey", kem_id)
    return Secrets(signed, one_time.secret if one_time else None, seed)


def spend(keys: DeviceKeys, one_time_id: int, kem_id: int, ephemeral: bytes) -> DeviceKeys:
    """A first message was opened: its one-time keys are gone for good, and without any it is remembered."""
    if not one_time_id and kem_id not in keys.one_time_kem:
        seen = (*keys.spent.get(kem_id, ()), ephemeral)[-SPENT_MAX:]
        return replace(keys, spent={**keys.spent, kem_id: seen})
    return replace(
        keys,
        one_time={key_id: key for key_id, key in keys.one_time.items() if key_id != one_time_id},
        one_time_kem={key_id: key for key_id, key in keys.one_time_kem.items() if key_id != kem_id},
    )


def _kem_prekey(keys: DeviceKeys, key_id: int, seed: bytes, *, last_resort: bool) -> KemPrekey:
    public = kem.public_of(seed)
    label = Label.KEM_LAST_RESORT if last_resort else Label.KEM_PREKEY
    return KemPrekey(
        key_id, public, sign_prekey(keys.identity.signing, label, keys.address, key_id, public), last_resort
    )  # fmt: skip


def _replaced(held: tuple[Renewed, ...], now: int) -> tuple[Renewed, ...]:
    return tuple(key if key.replaced else replace(key, replaced=now) for key in held)


def _still_needed(held: tuple[Renewed, ...], now: int) -> tuple[Renewed, ...]:
    return tuple(key for key in held if not key.replaced or now - key.replaced < KEPT_MS)


def _overtake(held: dict[int, OneTime], unclaimed: int, now: int) -> dict[int, OneTime]:
    """All but the newest `unclaimed` have been handed out by the time that the next ones are."""
    certain = sorted(held)[: -unclaimed if unclaimed > 0 else None]
    return {
        key_id: replace(key, overtaken=now) if not key.overtaken and key_id in certain else key
        for key_id, key in held.items()
    }


def _youngest(held: dict[int, OneTime], most: int) -> dict[int, OneTime]:
    """Ids only grow: the smallest are the oldest, and were overtaken first."""
    return held if len(held) <= most else {key_id: held[key_id] for key_id in sorted(held)[-most:]}


def _not_overtaken(held: dict[int, OneTime], now: int) -> dict[int, OneTime]:
    return {key_id: key for key_id, key in held.items() if not key.overtaken or now - key.overtaken < KEPT_MS}
