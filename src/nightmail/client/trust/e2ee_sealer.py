"""The sealer of every client: own keys, believed lists and sessions, put together.

Knows:   which of its parts answers what. The rules are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightmail.client.events import Reachable
from nightmail.client.machine.context import Context
from nightmail.client.own_devices.own_device_list import OwnDeviceList
from nightmail.client.own_devices.pairing import Pairing
from nightmail.client.store.rows import DeviceList
from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.e2ee.identity import Address
from nightmail.e2ee.note import Note
from nightmail.e2ee.sealing import envelope_bytes_max
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices, KeysLow

from .believed_lists import BelievedLists
from .key_stock import KeyStock
from .sealer import Then
from .sessions import Sessions

OVERHEAD_BYTES = 8_536
"""What sealing adds to a content at most: the note's head, padding, the header of a first message, the MAC."""


class E2eeSealer:
    """A `Sealer`."""

    def __init__(
        self, context: Context, believed: BelievedLists, key_stock: KeyStock, own_list: OwnDeviceList,
        sessions: Sessions, pairing: Pairing,
    ) -> None:  # fmt: skip
        self._context = context
        self.believed, self.key_stock, self.own_list = believed, key_stock, own_list
        self.sessions, self.pairing = sessions, pairing
        self._told_reachable = False

    # --- for whom -------------------------------------------------------------------------------

    def believe(self, item: Devices) -> DeviceList | None:
        own = item.account == self._context.identity.account
        if self.pairing.pending and not (own and self.pairing.offered(item)):
            return None
        found = self.believed.believe(item)
        if own:
            self.own_list.seen(item)
            if found is not None:
                self._tell_reachable()
                self._context.signals.unblocked(item.account)
        return found

    @property
    def is_reachable(self) -> bool:
        """Others can write to this device."""
        me = self._context.identity
        row, listed = self._context.store.own_keys(), self.believed.of(me.account)
        return bool(row and row.published and listed and Address(me.device, me.registration) in listed.devices)

    def _tell_reachable(self) -> None:
        if not self._told_reachable and self.is_reachable:
            self._told_reachable = True
            self._context.tell(Reachable())

    def is_held(self, account: int) -> bool:
        context = self._context
        return self.believed.is_held(account) or (
            account != context.identity.account and context.signals.awaits_trust()
        )

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        return self.sessions.ready(devices, who, then, otherwise)

    def ready_in_group(
        self, group: int, devices: Mapping[int, int], who: object, then: Then, otherwise: Then
    ) -> bool:  # fmt: skip
        """Likewise, for devices of members of a group."""
        return self.sessions.ready(devices, who, then, otherwise, group)

    @property
    def awaits_provisioning(self) -> bool:
        return self.pairing.pending

    def peek(self, entries: tuple[Entry, ...]) -> None:
        if self.pairing.peek(entries):
            self._tell_reachable()
            self._context.signals.unblocked(self._context.identity.account)
            self.own_list.look()  # the list that vouched may be older than the one that names this device

    # --- both ways ------------------------------------------------------------------------------

    def fits(self, body_bytes: int) -> int:
        return min(body_bytes - OVERHEAD_BYTES, CONTENT_BYTES_MAX)

    def envelope_bytes_max(self, content: bytes) -> int:
        return envelope_bytes_max(content)

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        return self.sessions.seal(device, note)

    def knows(self, entry: Entry) -> bool:
        return self.believed.knows(entry)

    def open(self, entry: Entry) -> Note:
        return self.sessions.open(entry)

    def renew(self, device: int) -> bool:
        return self.sessions.renew(device)

    # --- own keys -------------------------------------------------------------------------------

    def take_keys_low(self, item: KeysLow) -> None:
        self.key_stock.low()

    def keys_published(self) -> None:
        self._tell_reachable()
        self.own_list.published()
