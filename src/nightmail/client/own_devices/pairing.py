"""A new device that waits to be provisioned: it believes nothing until the primary device told it the account's key.

Knows:   the secret of the code that it showed.
Touches: its errand; then the list and the account key that it believes.
Never:   takes an account key from a device that does not know that secret; or uses up a one-time key on trying to.

PROVISION comes as an entry by a device that this one cannot judge yet. So it opens such entries with the list that the
server offers, without storing anything. Only if the MAC under the secret vouches for the key that signed this list, it
believes list and key. The lanes, which were held until then, go on from where they stood.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import Provisioned
from nightmail.client.machine.context import Context
from nightmail.client.messages import conversation_id
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.key_stock import KeyStock
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotAsAnnounced, Rejected
from nightmail.e2ee.lists import SignedDeviceList, check_list
from nightmail.e2ee.provision import check_provision
from nightmail.e2ee.sealing import open_entry
from nightmail.model.ids import account_of
from nightmail.model.rows import Entry
from nightmail.model.words import Kind
from nightmail.wire.items import Devices

from .controls import Control

ERRAND = "pairing"
PEEKED = 256
"""How many entries are kept to be tried again: as many as the server hands out unacknowledged."""


class Pairing:
    def __init__(self, context: Context, lists: DeviceLists, believed: BelievedLists, key_stock: KeyStock) -> None:
        self._context, self._lists, self._believed, self._key_stock = context, lists, believed, key_stock
        self._secret = context.store.errand(ERRAND)
        self._offered: SignedDeviceList | None = None
        """What the server says is the account's list. Nobody has vouched for it yet."""
        self._entries: list[Entry] = []

    @property
    def pending(self) -> bool:
        return self._secret is not None

    def connected(self) -> None:
        self._look()

    def lost(self) -> None:
        self._entries.clear()

    def offered(self, item: Devices) -> bool:
        """The server sent this account's list. Whether it is vouched for now."""
        try:
            self._offered = check_list(item.signed, item.account) if item.signed else None
        except Rejected:
            self._offered = None
        return any(self._try(entry) for entry in self._entries)

    def peek(self, entries: tuple[Entry, ...]) -> bool:
        """Whether one of these provisions this device."""
        own = self._context.identity.account
        controls = [entry for entry in entries if entry.kind is Kind.CONTROL and account_of(entry.by) == own]
        if any(self._try(entry) for entry in controls):
            return True
        if controls:
            self._entries = [*self._entries, *controls][-PEEKED:]
            self._look()  # the server's list may be newer than the one that was offered
        return False

    def _look(self) -> None:
        own = self._context.identity.account
        if self.pending and self._context.online:
            self._lists.forget(own)
            self._lists.want(own, self, lambda _: None, lambda: None)

    def _try(self, entry: Entry) -> bool:
        context, offered, secret = self._context, self._offered, self._secret
        if offered is None or secret is None:
            return False
        keys, own = self._key_stock.keys, context.identity.account
        try:
            peer = offered.peer(entry.by)
            opened = open_entry(keys, peer, entry, conversation_id(own, entry.to), context.now, context.secrets)
            content = decode_content(opened.note.content)
            if content.control != Control.PROVISION:
                return False
            said = check_provision(secret, keys.address, content.data or b"")
            if said.key != offered.key:
                raise NotAsAnnounced("account key")
        except Rejected:
            return False
        self._believed.put(offered)
        if said.signing:
            self._key_stock.put(replace(keys, account=said.signing))
            context.signals.account_received(entry.by)
        context.store.drop_errand(ERRAND)
        self._secret = None
        self._entries.clear()
        context.tell(Provisioned())
        return True
