"""The port to what seals. `e2ee_sealer.py` is what every client has behind it.

A sealer keeps its state (keys, ratchets, believed lists) in the machine's store, inside the machine's open
transaction. So its new state is durable before the ciphertext leaves, and before an acknowledgement does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from nightmail.client.store.rows import DeviceList
from nightmail.e2ee.note import Note
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices, KeysLow

Then: TypeAlias = Callable[[], None]


class Sealer(Protocol):
    # --- for whom
    def believe(self, item: Devices) -> DeviceList | None:
        """Whom to seal for, by what the server says; None: it is not believed, or not yet."""
        ...

    def is_held(self, account: int) -> bool:
        """Nothing may be sealed for this account before the person agrees."""
        ...

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        """Whether all these devices (→ registration) can be sealed for now. If not, the sealer asks for what is
        missing, and calls `then` when it has it, or `otherwise` when it cannot get it; once for each `who`."""
        ...

    @property
    def awaits_provisioning(self) -> bool:
        """This device does not know its account's key yet, so it can judge nobody."""
        ...

    def peek(self, entries: tuple[Entry, ...]) -> None:
        """Look for the message that provisions this device. The entries are taken later, in their turn."""
        ...

    # --- both ways
    def fits(self, body_bytes: int) -> int:
        """The longest content whose envelope surely stays within so many bytes."""
        ...

    def envelope_bytes_max(self, content: bytes) -> int:
        """The longest envelope in which this content can travel, compressed and sealed."""
        ...

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        """One device's ciphertext. Only after `ready` said yes."""
        ...

    def knows(self, entry: Entry) -> bool:
        """Whether it can tell who wrote this. If not, the author's list must come first."""
        ...

    def open(self, entry: Entry) -> Note:
        """What was sealed, as announced. Raises `e2ee.errors.Rejected`; nothing has changed then."""
        ...

    def renew(self, device: int) -> bool:
        """This device could not open what was sealed for it: begin another session, if that is not too soon. Whether
        the next seal will be in another session."""
        ...

    def take_keys_low(self, item: KeysLow) -> None:
        """The server has few of this device's one-time keys left."""
        ...
