"""The sealer of every client: own keys, believed lists and sessions, put together.

Knows:   who of its parts answers what. The rules are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.identity import Address
from nightmail.e2ee.note import Note
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices

from .events import Reachable
from .hub import Hub
from .keyring import Keyring
from .lists import Lists
from .pairing import Pairing
from .roster import Roster
from .sealer import Then
from .sessions import Sessions
from .store import DeviceList
from .trust import Trust

OVERHEAD_BYTES = 8_536
"""What sealing adds to a content at most: the note's head, padding, the header of a first message, the MAC."""


class Sealed:
    """A `Sealer`."""

    def __init__(self, hub: Hub, lists: Lists) -> None:
        self._hub = hub
        self._told_reachable = False
        self.awaits: Callable[[], bool] = lambda: False
        """Whether somebody is about to say whom this account trusts: until then nothing is sealed for others."""
        self.trust = Trust(hub)
        self.keyring = Keyring(hub, self._published)
        self.roster = Roster(hub, lists, self.trust, self.keyring)
        self.sessions = Sessions(hub, lists, self.trust, self.keyring)
        self.pairing = Pairing(hub, lists, self.trust, self.keyring)

    # --- for whom -------------------------------------------------------------------------------

    def believe(self, item: Devices) -> DeviceList | None:
        own = item.account == self._hub.identity.account
        if self.pairing.pending and not (own and self.pairing.offered(item)):
            return None
        if own and self.roster.is_primary:
            self.trust.own_key = signing_public(self.keyring.keys.account)
        found = self.trust.believe(item)
        if own:
            self.roster.seen(item)
            if found is not None:
                self._tell_reachable()
                self.agree(item.account)
        return found

    @property
    def is_reachable(self) -> bool:
        """Others can write to this device."""
        me = self._hub.identity
        row, listed = self._hub.store.own_keys(), self.trust.of(me.account)
        return bool(row and row.published and listed and Address(me.device, me.registration) in listed.devices)

    def _tell_reachable(self) -> None:
        if not self._told_reachable and self.is_reachable:
            self._told_reachable = True
            self._hub.tell(Reachable())

    def is_held(self, account: int) -> bool:
        return self.trust.is_held(account) or (account != self._hub.identity.account and self.awaits())

    def agree(self, account: int) -> None:
        """Whatever waited for this account goes on."""
        for agreed in self._hub.agreed:
            agreed(account)

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        return self.sessions.ready(devices, who, then, otherwise)

    @property
    def is_blind(self) -> bool:
        return self.pairing.pending

    def peek(self, entries: tuple[Entry, ...]) -> None:
        if self.pairing.peek(entries):
            self._tell_reachable()
            self.agree(self._hub.identity.account)
            self.roster.look()  # the list that vouched may be older than the one that names this device

    # --- both ways ------------------------------------------------------------------------------

    def fits(self, body_bytes: int) -> int:
        return min(body_bytes - OVERHEAD_BYTES, CONTENT_BYTES_MAX)

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        return self.sessions.seal(device, note)

    def knows(self, entry: Entry) -> bool:
        return self.trust.knows(entry)

    def open(self, entry: Entry) -> Note:
        return self.sessions.open(entry)

    def renew(self, device: int) -> bool:
        return self.sessions.renew(device)

    # --- life -----------------------------------------------------------------------------------

    def connected(self) -> None:
        self.keyring.connected()
        self.pairing.connected()

    def lost(self) -> None:
        for part in (self.keyring, self.roster, self.sessions, self.pairing):
            part.lost()

    def keys_low(self) -> None:
        self.keyring.low()

    def deadline(self) -> int | None:
        dues = (self.keyring.deadline(), self.roster.deadline(), self.sessions.deadline())
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        if self.keyring.tick():
            self.sessions.forget(self._hub.now)
            for forget in self._hub.daily:
                forget()
        self.roster.tick()
        self.sessions.tick()

    def _published(self) -> None:
        self._tell_reachable()
        self.roster.published()
