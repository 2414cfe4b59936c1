"""A sealer that seals nothing, for tests of everything around it. No client can be given it.

Knows:   nothing. It believes every list, needs no keys, and passes bytes on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightmail.client.store.rows import DeviceList
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.note import Note
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices, KeysLow


class Opaque:
    """A `Sealer`."""

    def believe(self, item: Devices) -> DeviceList | None:
        return DeviceList(item.account, item.version, item.devices)

    def is_held(self, account: int) -> bool:
        return False

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        return True

    @property
    def awaits_provisioning(self) -> bool:
        return False

    def peek(self, entries: tuple[Entry, ...]) -> None: ...

    def fits(self, body_bytes: int) -> int:
        return body_bytes

    def envelope_bytes_max(self, content: bytes) -> int:
        return len(content)

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        return note.content

    def knows(self, entry: Entry) -> bool:
        return True

    def open(self, entry: Entry) -> Note:
        return Note(b"", entry.of or entry.id, entry.ciphertext)

    def renew(self, device: int) -> bool:
        return True

    def take_keys_low(self, item: KeysLow) -> None: ...
