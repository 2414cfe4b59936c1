"""The account's own device list, as its primary device keeps it: signed, published, and never more than was agreed.

Knows:   which devices belong on it: this one, those that were linked here, less those that were revoked.
Never:   signs for a device because the server names it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nightmail.e2ee.identity import Address, Identity
from nightmail.e2ee.lists import DEPARTED_MAX, Departed, sign_list
from nightmail.e2ee.lists import DeviceList as SignedList
from nightmail.model.answers import Done, Said
from nightmail.model.records import Listed
from nightmail.model.refusals import ListConflict, Refusal
from nightmail.wire.items import Devices

from .hub import Hub
from .keyring import Keyring
from .lists import Lists
from .retries import delay_ms
from .trust import LEFT_MS, Trust


class Roster:
    def __init__(self, hub: Hub, lists: Lists, trust: Trust, keyring: Keyring) -> None:
        self._hub, self._lists, self._trust, self._keyring = hub, lists, trust, keyring
        self._asked = False
        self._failures = 0
        self._due: int | None = None
        self._taken = b""
        """The list that the server said it took."""
        self._guests: dict[Address, Identity] = {}
        """Devices that are to be on the next list."""
        self.on_listed: Callable[[], None] = lambda: None

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
        self._guests[address] = identity
        self.look()

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
        if known is not None and known.devices == wanted and item.signed == known.signed:
            self._failures = 0
            self._listed(known)
            return
        if known is not None and known.devices == wanted and known.signed == self._taken:
            # It said that it took this list, and shows another. Signing in a circle would not help.
            self._taken = b""
            self._later()
            return
        # A list that was signed and not confirmed is said again as it was, if it is still the next one.
        if known is not None and known.devices == wanted and known.version == item.version + 1:
            signed = known
        else:
            signed = sign_list(
                self._keyring.keys.account, item.account, item.version + 1, wanted, self._departed(item, wanted)
            )
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
        return {**wanted, keys.address: keys.identity.public, **self._guests}

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
            self._lists.look_again(signed.account)
            self.look()
            self._listed(signed)
        elif isinstance(said, ListConflict):
            self.look()
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
