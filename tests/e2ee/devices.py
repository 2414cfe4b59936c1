"""Devices that talk to each other in tests, and the prekeys that a server would hold for them."""

from __future__ import annotations

import random

from nightmail.e2ee import bundles, kem, keys, peers
from nightmail.e2ee.bundles import PrekeyBundle
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DeviceKeys
from nightmail.e2ee.peers import Peer
from nightmail.model.ids import account_id, device_id

NOW = 1_760_000_000_000
DAY = 86_400_000


class Seeded:
    """Chance from a seed. Encapsulation stays the library's: what it draws decides nothing that a test looks at."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def draw(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def encapsulate(self, public: bytes) -> kem.Encapsulated:
        return kem.encapsulate(public)


def address(name: str, index: int = 1) -> Address:
    return Address(device_id(account_id(name), index), 7 + index)


class Device:
    """One device: its keys, its peers, and what the server holds of it."""

    def __init__(self, name: str, index: int = 1, now: int = NOW, stock: int = 3) -> None:
        self.name, self.now = name, now
        self.chance = Seeded(f"{name}/{index}")
        bare = keys.DeviceKeys(
            address(name, index), keys.IdentityKeys.make(self.chance), self.chance.draw(32)
        )  # fmt: skip
        self.keys: DeviceKeys = keys.stock(keys.rotate(bare, self.chance, now), self.chance, now, stock, stock)
        self.peers: dict[int, Peer] = {}
        self.shelf = keys.upload(self.keys)
        self._claimed = 0

    @property
    def device(self) -> int:
        return self.keys.address.device

    def bundle(self) -> PrekeyBundle:
        """Claim as a server would: one of each one-time key while there are any."""
        shelf, at = self.shelf, self._claimed
        self._claimed += 1
        one_time = shelf.one_time[at] if at < len(shelf.one_time) else None
        kem_part = shelf.one_time_kem[at] if at < len(shelf.one_time_kem) else shelf.last_resort
        return bundles.check_bundle(self.keys.address, shelf.identity, shelf.signed, kem_part, one_time)

    def peer(self, other: Device) -> Peer:
        return self.peers.get(other.device) or Peer.of(other.keys.address, other.keys.identity.public)

    def begin(self, other: Device, bundle: PrekeyBundle | None = None) -> None:
        bundle = bundle or other.bundle()
        self.peers[other.device] = peers.begin(self.keys, self.peer(other), bundle, self.chance, self.now)

    def seal(self, other: Device, text: bytes) -> bytes:
        if not self.peer(other).ready:
            self.begin(other)
        self.peers[other.device], sealed = peers.seal(self.peer(other), text)
        return sealed

    def open(self, other: Device, sealed: bytes) -> bytes:
        opened = peers.open_sealed(self.keys, self.peer(other), sealed, self.chance, self.now)
        self.keys, self.peers[other.device] = opened.keys, opened.peer
        return opened.plaintext

    def states(self) -> tuple[DeviceKeys, dict[int, Peer]]:
        return self.keys, dict(self.peers)


def pair() -> tuple[Device, Device]:
    return Device("ada"), Device("bob")


def acquainted() -> tuple[Device, Device]:
    """Two devices that have heard each other."""
    ada, bob = pair()
    bob.open(ada, ada.seal(bob, b"hello"))
    ada.open(bob, bob.seal(ada, b"hello to you"))
    return ada, bob
