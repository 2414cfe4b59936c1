"""The account's own device list, as its primary device keeps it: signed, published, and never more than was agreed.

Knows:   which devices belong on it: this one, those that were linked here, less those that were revoked.
Touches: the newest list ever signed, so that a server that went back is brought above it again.
Never:   signs for a device because the server names it.

Contacts refuse whatever lies below the highest version they saw. So when the server is behind what was signed here (it
was restored from a backup), list after list is signed, each the next to the server, until it is above.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from nightmail.e2ee.identity import Address, Identity
from nightmail.e2ee.lists import DEPARTED_MAX, Departed, sign_list
from nightmail.e2ee.lists import DeviceList as SignedList
from nightmail.model.answers import Done, Said
from nightmail.model.records import Listed
from nightmail.model.refusals import ListConflict, Refusal
from nightmail.wire.items import Devices

from .events import ListRefused
from .hub import Hub
from .keyring import Keyring
from .lists import Lists
from .retries import delay_ms
from .trust import LEFT_MS, Trust

MINUTE_MS = 60_000


class Newest(NamedTuple):
    version: int
    signed: bytes


class Roster:
    def __init__(self, hub: Hub, lists: Lists, trust: Trust, keyring: Keyring) -> None:
        self._hub, self._lists, self._trust, self._keyring = hub, lists, trust, keyring
        self._asked = False
        self._failures = 0
        self._due: int | None = None
        self._taken = b""
        """The list that the server said it took."""
        self._refused: tuple[int, dict[Address, Identity]] | None = None
        """What the server refused although it was the next version: it names a device that is gone."""
        self._guests: dict[Address, Identity] = {}
        """Devices that are to be listed: one with each list, so that it is known which of them is refused."""
        self._minute, self._signed = 0, 0
        """How many lists were signed since when."""
        self._told_jump = False
        self.on_listed: Callable[[], None] = lambda: None
        self.on_gone: Callable[[int], None] = lambda _: None
        """Called with a guest that the server no longer has."""

    @property
    def is_primary(self) -> bool:
        return bool(self._keyring.keys.account)

    def published(self) -> None:
        """This device's keys are there for others to use: now it may be listed, and wants to see that it is."""
        if self.is_primary or self._misses_itself:
            self.look()

    @property
    def _misses_itself(self) -> bool:
        """It was told whose it is, by a list that is older than the one that names it."""
        known = self._trust.of(self._hub.identity.account)
        return known is not None and self._keyring.keys.address not in known.devices

    def add(self, address: Address, identity: Identity) -> None:
        if address not in self._guests:
            self._guests[address], self._due = identity, None
        if self._due is None:
            self.look()

    def drop(self, device: int) -> None:
        """It is not to be listed after all."""
        for address in [address for address in self._guests if address.device == device]:
            del self._guests[address]

    def look(self) -> None:
        """See what the server has, and sign the next list if that is not what it should be."""
        if self._hub.online:
            own = self._hub.identity.account
            self._lists.forget(own)
            self._lists.want(own, self, lambda _: None, lambda: None)

    def lost(self) -> None:
        self._asked, self._due = False, None

    def deadline(self) -> int | None:
        return self._due

    def tick(self) -> None:
        if self._due is not None and self._hub.now >= self._due:
            self._due = None
            self.look()

    def seen(self, item: Devices) -> None:
        """What the server says about this account."""
        if not self.is_primary and self._misses_itself:
            self._later()
        if not self.is_primary or not self._keyring.is_published or self._asked:
            return
        wanted = self._wanted(item)
        known = self._trust.of(item.account)
        newest = self._newest(known)
        shown = known is not None and item.signed == known.signed
        behind = item.version < newest.version or (item.version == newest.version and item.signed != newest.signed)
        if known is not None and known.devices == wanted and shown and not behind:
            self._failures, self._told_jump = 0, False
            self._listed(known)
            return
        if known is not None and known.devices == wanted and known.signed == self._taken and not shown:
            # It said that it took this list, and shows another. Signing in a circle would not help.
            self._taken = b""
            self._later()
            return
        if not self._may_sign(item, newest):
            return
        # A list that was signed and not confirmed is said again as it was, if it is still the next one.
        if known is not None and known.devices == wanted and known.version == item.version + 1:
            signed = known
        else:
            signed = sign_list(
                self._keyring.keys.account, item.account, item.version + 1, wanted, self._departed(item, wanted)
            )
        if (signed.version, signed.devices) == self._refused and self._guests:
            # Refused as it is, by a server that names everybody else on it: so it is the guest that is gone.
            address = next(iter(self._guests))
            del self._guests[address]
            self._refused = None
            self.on_gone(address.device)
            self.seen(item)
            return
        self._remember(max(newest, Newest(signed.version, signed.signed), key=lambda one: one.version))
        self._asked = True
        devices = tuple(address.device for address in sorted(wanted))
        self._hub.ask(
            Listed(item.account, signed.version, devices, signed.signed), partial(self._answered, signed)
        )  # fmt: skip

    def _wanted(self, item: Devices) -> dict[Address, Identity]:
        keys, known = self._keyring.keys, self._trust.of(item.account)
        wanted = {
            address: who for address, who in (known.devices if known else {}).items() if address.device in item.devices
        }
        return {**wanted, keys.address: keys.identity.public, **dict(list(self._guests.items())[:1])}

    def _newest(self, known: SignedList | None) -> Newest:
        """The newest list that was ever signed for this account, as far as this device knows."""
        row = self._hub.store.own_keys()
        assert row is not None
        if known and known.version > row.list_version:
            return Newest(known.version, known.signed)
        return Newest(row.list_version, row.list_signed)

    def _remember(self, newest: Newest) -> None:
        store = self._hub.store
        row = store.own_keys()
        assert row is not None
        if row.list_version != newest.version:
            store.put_own_keys(replace(row, list_version=newest.version, list_signed=newest.signed))

    def _may_sign(self, item: Devices, newest: Newest) -> bool:
        """Not before it is due, not too many, and not because somebody claims that there were very many."""
        hub = self._hub
        if self._due is not None and hub.now < self._due:
            return False
        if item.version > newest.version + hub.limits.list_jump:
            if not self._told_jump:
                self._told_jump = True
                why = f"version {item.version} is claimed, but {newest.version} was signed last"
                hub.tell(ListRefused(item.account, hub.handle(item.account), why))
            self._later()
            return False
        if not 0 <= hub.now - self._minute < MINUTE_MS:
            self._minute, self._signed = hub.now, 0
        if self._signed >= hub.limits.lists_per_minute:
            self._due = self._minute + MINUTE_MS
            return False
        self._signed += 1
        return True

    def _departed(self, item: Devices, wanted: dict[Address, Identity]) -> dict[Address, Departed]:
        """Who left of late: whoever never saw a list with them must be able to judge what they sent before."""
        store, now, known = self._hub.store, self._hub.now, self._trust.of(item.account)
        if known is None:
            return {}
        # By the server's clock if that is ahead: nothing that was seen is later than this.
        at = max([now, *(row.seen for row in store.conversations()[:1])])
        gone = {address: left for address, left in known.departed.items() if now - left.at < LEFT_MS}
        gone |= {address: Departed(who, at) for address, who in known.devices.items()}
        there = {address.device for address in wanted}
        latest = sorted(gone.items(), key=lambda each: -each[1].at)
        return dict([each for each in latest if each[0].device not in there][:DEPARTED_MAX])

    def _answered(self, signed: SignedList, said: Said) -> None:
        self._asked = False
        if isinstance(said, Done):
            self._taken = signed.signed
            self._trust.put(signed)
            self._lists.forget(signed.account)
            self.look()
            self._listed(signed)
        elif isinstance(said, ListConflict) and said.version != signed.version - 1 and not self._failures:
            self._failures = 1
            self.look()
        elif isinstance(said, ListConflict):
            self._refused = (signed.version, signed.devices) if said.version == signed.version - 1 else None
            self._later()
        elif isinstance(said, Refusal):
            self._later()

    def _listed(self, signed: SignedList) -> None:
        """The server has this list: by its answer or, if that was lost, by what it shows."""
        if guests := [address for address in self._guests if address in signed.devices]:
            for address in guests:
                del self._guests[address]
            self.on_listed()

    def _later(self) -> None:
        hub = self._hub
        self._failures += 1
        self._due = hub.now + delay_ms(self._failures, hub.limits, hub.chance)
