"""A new device that does not know yet whose it is: it believes nothing until the primary device has told it.

Knows:   the secret of the code that it showed.
Touches: its errand; then the list and the account key that it believes.
Never:   takes an account key from anybody who does not know that secret; or spends a key on trying to.

The word that it waits for comes as an entry by a device that it cannot judge yet. So it looks into such entries with
the list that the server offers, without keeping anything of that. Only if the secret's MAC vouches for the key that
signed this list, list and key are believed. The lanes, which stood still until then, go on from where they stood.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import NotAsAnnounced, Refused
from nightmail.e2ee.lists import DeviceList as SignedList
from nightmail.e2ee.lists import check_list
from nightmail.e2ee.provision import check_provision
from nightmail.e2ee.sealing import open_entry
from nightmail.model.ids import account_of
from nightmail.model.rows import Entry
from nightmail.model.words import Kind
from nightmail.wire.items import Devices

from .controls import Control
from .events import Provisioned
from .hub import Hub
from .keyring import Keyring
from .lists import Lists
from .messages import conversation_id
from .trust import Trust

ERRAND = "pairing"
LOOKED_INTO = 256
"""Entries that are kept to be looked into: as many as the server hands out unacknowledged."""


class Pairing:
    def __init__(self, hub: Hub, lists: Lists, trust: Trust, keyring: Keyring) -> None:
        self._hub, self._lists, self._trust, self._keyring = hub, lists, trust, keyring
        self._secret = hub.store.errand(ERRAND)
        self._offered: SignedList | None = None
        """What the server says is the account's list. Nobody has vouched for it."""
        self._entries: list[Entry] = []
        self.on_handed: Callable[[int], None] = lambda _: None
        """Called with the device that handed the account over to this one."""

    @property
    def pending(self) -> bool:
        return self._secret is not None

    def connected(self) -> None:
        self._look()

    def lost(self) -> None:
        self._entries.clear()

    def offered(self, item: Devices) -> bool:
        """The server's word about the own account; whether it is vouched for by now."""
        try:
            self._offered = check_list(item.signed, item.account) if item.signed else None
        except Refused:
            self._offered = None
        return any(self._look_into(entry) for entry in self._entries)

    def peek(self, entries: tuple[Entry, ...]) -> bool:
        """Whether one of these is the word that is waited for."""
        words = [e for e in entries if e.kind is Kind.CONTROL and account_of(e.by) == self._hub.identity.account]
        if any(self._look_into(entry) for entry in words):
            return True
        if words:
            self._entries = [*self._entries, *words][-LOOKED_INTO:]
            self._look()  # the list may be newer than the one that was looked at
        return False

    def _look(self) -> None:
        own = self._hub.identity.account
        if self.pending and self._hub.online:
            self._lists.forget(own)
            self._lists.want(own, self, lambda _: None, lambda: None)

    def _look_into(self, entry: Entry) -> bool:
        hub, offered, secret = self._hub, self._offered, self._secret
        if offered is None or secret is None:
            return False
        keys, own = self._keyring.keys, hub.identity.account
        try:
            peer = offered.peer(entry.by)
            opened = open_entry(keys, peer, entry, conversation_id(own, entry.to), hub.now, hub.secrets)
            content = decode_content(opened.note.content)
            if content.control != Control.PROVISION:
                return False
            said = check_provision(secret, keys.address, content.data or b"")
            if said.key != offered.key:
                raise NotAsAnnounced("account key")
        except Refused:
            return False
        self._trust.put(offered)
        if said.signing:
            self._keyring.put(replace(keys, account=said.signing))
            self.on_handed(entry.by)
        hub.store.drop_errand(ERRAND)
        self._secret = None
        self._entries.clear()
        hub.tell(Provisioned())
        return True
