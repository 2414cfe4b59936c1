"""Sealed devices in the simulated world: the real sealer, seeded, and watched for what must never happen to it.

Knows:   why an entry may be unreadable: somebody's sessions were set back, its author is gone or a liar, chance damaged
         it on this device, or so many sessions began while it was under way that this device dropped the one in which
         it was sealed. Anything else is a broken promise.
Touches: the history.
Never:   helps the sealer: what it raises is what the machine gets.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

from nightmail.client.errors import StoreFailed
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.device_linking import ERRAND as PENDING
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.own_devices.pairing import ERRAND as PAIRING
from nightmail.client.store.rows import OwnKeys
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee import kem
from nightmail.e2ee.errors import BadEncoding, NotListed, Rejected, Undecipherable
from nightmail.e2ee.identity import Address
from nightmail.e2ee.kem import Encapsulated
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.note import Note
from nightmail.e2ee.provision import SECRET_BYTES
from nightmail.e2ee.state import encode_keys
from nightmail.model.ids import account_of
from nightmail.model.rows import Entry

if TYPE_CHECKING:
    from .device import Device
    from .device_store import WatchedStore

CARRY_MS = 500
"""How often a person looks whether a new device is linked, and carries its code over if it is not."""
AGAIN_TIMES = 8


# --- chance -----------------------------------------------------------------------------------


class SeededSecrets:
    """Keys, nonces and encapsulations from the world's seed: the same seed must be the same story."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def draw(self, count: int) -> bytes:
        return self._chance.randbytes(count)

    def encapsulate(self, public: bytes) -> Encapsulated:
        ciphertext = self._chance.randbytes(kem.CIPHERTEXT_BYTES)
        return Encapsulated(_shared(public, ciphertext), ciphertext)


@contextmanager
def a_seeded_kem() -> Generator[None]:
    """The library draws for itself when it encapsulates, and a tie between two sessions is settled by what it drew.
    So in a story the shared secret is a hash of what both ends have. The keys are real ones."""
    right = kem.decapsulate
    kem.decapsulate = _decapsulate
    try:
        yield
    finally:
        kem.decapsulate = right


def _decapsulate(seed: bytes, ciphertext: bytes) -> tuple[bytes, bytes]:
    if len(ciphertext) != kem.CIPHERTEXT_BYTES:
        raise BadEncoding("KEM ciphertext", f"{len(ciphertext)} bytes")
    public = kem.public_of(seed)
    return _shared(public, ciphertext), public


def _shared(public: bytes, ciphertext: bytes) -> bytes:
    return sha256(b"simulated" + public + ciphertext).digest()


# --- the sealer -------------------------------------------------------------------------------


class WatchedSealed(E2eeSealer):
    """The real one. Now and then something is damaged on its way into it."""

    def __init__(self, device: Device, *parts: Any) -> None:
        super().__init__(*parts)
        self._device = device

    def open(self, entry: Entry) -> Note:
        device = self._device
        if account_of(entry.by) != device.me.account and device.person.finds_unreadable():
            device.world.hit("undecryptable")
            raise Undecipherable
        try:
            note = super().open(entry)
        except Rejected as error:
            device.world.tell(device.name, f"cannot open {entry.id}: {error}")
            if not self._is_explained(entry, error):
                raise device.history.broke("everything opens", f"{device.name}: {entry.id}: {error}") from error
            device.world.hit("undecryptable")
            raise
        device.forger.check_refused(entry)
        return note

    def _is_explained(self, entry: Entry, error: Rejected) -> bool:
        device, history = self._device, self._device.history
        return (
            device.removed
            or entry in device.forger.made
            or (device.forger.has_lied and isinstance(error, NotListed) and not history.calm)
            or entry.by in history.liars
            or entry.by in history.removed
            or (not history.calm and bool({entry.by, device.me.device} & history.set_back))
        )


# --- linking ----------------------------------------------------------------------------------


class Code:
    """What a new device shows on its screen, and its person carries to the primary device."""

    def __init__(self, chance: Random, address: Address, limits: ClientLimits, now: int) -> None:
        self._keys = make_keys(
            address, SeededSecrets(chance), now, count=limits.stock_one_time, kem_count=limits.stock_kem
        )  # fmt: skip
        self._secret = chance.randbytes(SECRET_BYTES)
        self.pending = PendingLink(*address, self._keys.identity.public.encode(), self._secret)

    def keep(self, store: WatchedStore) -> None:
        """On the new device, before anything else."""
        while store.own_keys() is None:  # its disk may fail, and then it is asked to show a code once more
            store.put_own_keys(OwnKeys(encode_keys(self._keys)))
            store.put_errand(PAIRING, self._secret)
            with suppress(StoreFailed):
                store.commit()


def carry(code: Code, new: Device, primary: Callable[[], Device], linked: Callable[[], None]) -> None:
    """Until the new device knows whose it is. The word may expire or be lost with a crash: then once more."""
    world = new.world
    looked, errand = [0], f"{PENDING}{new.me.device:016x}"

    def look() -> None:
        if new.removed or not new.machine.sealer.pairing.pending:
            linked()
            return
        if looked[0] % AGAIN_TIMES == 0 and not primary().store.errand(errand):
            primary().link(code.pending)
        looked[0] += 1
        world.later(CARRY_MS, look)

    look()
