"""The account's own device list, as its primary device keeps it: signed, published, and nothing in it that the person
did not agree to.

Knows:   which devices belong on it: this one, those that were linked here, without those that were revoked.
Touches: the newest list ever signed, so that a server that was restored is brought above it again.
Never:   signs for a device because the server names it.

Contacts refuse every list below the highest version they saw. So when the server is behind what was signed here (it was
restored from a backup), this device signs list after list, each the next one for the server, until it is above.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from nightmail.client.events import ListRefused
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.trust.believed_lists import LEFT_MS, BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.key_stock import KeyStock
from nightmail.e2ee.identity import Address, PublicIdentity
from nightmail.e2ee.lists import DEPARTED_MAX, Departed, SignedDeviceList, sign_list
from nightmail.model.answers import Done, Said
from nightmail.model.records import Listed
from nightmail.model.refusals import ListConflict, Refusal
from nightmail.wire.items import Devices

MINUTE_MS = 60_000


class Newest(NamedTuple):
    version: int
    signed: bytes


class OwnDeviceList:
    def __init__(self, context: Context, lists: DeviceLists, believed: BelievedLists, key_stock: KeyStock) -> None:
        self._context, self._lists, self._believed, self._key_stock = context, lists, believed, key_stock
        self._asked = False
        self.retry = Retry(context, self.look)
        self._taken = b""
        """The list that the server said it took."""
        self._refused: tuple[int, dict[Address, PublicIdentity]] | None = None
        """The list that the server refused although it was the next version: it names a device that is gone."""
        self._pending: dict[Address, PublicIdentity] = {}
        """Devices that are to be listed: one with each list, so that a refusal tells which of them is gone."""
        self._minute, self._signed = 0, 0
        """Since when, and how many lists were signed since."""
        self._told_jump = False

    @property
    def is_primary(self) -> bool:
        return bool(self._key_stock.keys.account)

    def published(self) -> None:
        """The server has this device's keys: now it may be listed, and looks whether it is."""
        if self.is_primary or self._misses_itself:
            self.look()

    @property
    def _misses_itself(self) -> bool:
        """It was provisioned with a list that is older than the one that names it."""
        known = self._believed.of(self._context.identity.account)
        return known is not None and self._key_stock.keys.address not in known.devices

    def add(self, address: Address, identity: PublicIdentity) -> None:
        """List this device, too."""
        if address not in self._pending:
            self._pending[address] = identity
            self.retry.cancel()
        if self.retry.due is None:
            self.look()

    def drop(self, device: int) -> None:
        """Do not list it after all."""
        for address in [address for address in self._pending if address.device == device]:
            del self._pending[address]

    def look(self) -> None:
        """Ask which list the server has, and sign the next one if that is not as it should be."""
        if self._context.online:
            own = self._context.identity.account
            self._lists.forget(own)
            self._lists.want(own, self, lambda _: None, lambda: None)

    def lost(self) -> None:
        self._asked = False
        self.retry.cancel()

    def seen(self, item: Devices) -> None:
        """The server said which devices this account has."""
        if not self.is_primary and self._misses_itself:
            self.retry.later()
        if not self.is_primary or not self._key_stock.is_published or self._asked:
            return
        wanted = self._wanted(item)
        known = self._believed.of(item.account)
        newest = self._newest(known)
        shown = known is not None and item.signed == known.signed
        is_right = known is not None and known.devices == wanted and known.handle == self._context.identity.handle
        behind = item.version < newest.version or (item.version == newest.version and item.signed != newest.signed)
        if known is not None and is_right and shown and not behind:
            self._told_jump = False
            self.retry.reset()
            self._listed(known)
            return
        if known is not None and is_right and known.signed == self._taken and not shown:
            # The server said that it took this list, and shows another. Signing in a circle would not help.
            self._taken = b""
            self.retry.later()
            return
        if not self._may_sign(item, newest):
            return
        # A list that was signed and not confirmed is sent again as it was, if it is still the next one.
        if known is not None and is_right and known.version == item.version + 1:
            signed = known
        else:
            signed = sign_list(
                self._key_stock.keys.account, item.account, item.version + 1, wanted, self._departed(item, wanted),
                self._context.identity.handle,
            )  # fmt: skip
        if (signed.version, signed.devices) == self._refused and self._pending:
            # The server refuses this very list, and names every other device on it: so the pending one is gone.
            address = next(iter(self._pending))
            del self._pending[address]
            self._refused = None
            self._context.signals.pending_device_gone(address.device)
            self.seen(item)
            return
        self._remember(max(newest, Newest(signed.version, signed.signed), key=lambda one: one.version))
        self._asked = True
        devices = tuple(address.device for address in sorted(wanted))
        self._context.ask(
            Listed(item.account, signed.version, devices, signed.signed), partial(self._answered, signed)
        )  # fmt: skip

    def _wanted(self, item: Devices) -> dict[Address, PublicIdentity]:
        keys, known = self._key_stock.keys, self._believed.of(item.account)
        wanted = {
            address: who for address, who in (known.devices if known else {}).items() if address.device in item.devices
        }
        return {**wanted, keys.address: keys.identity.public, **dict(list(self._pending.items())[:1])}

    def _newest(self, known: SignedDeviceList | None) -> Newest:
        """The newest list that was ever signed for this account, as far as this device knows."""
        row = self._context.store.own_keys()
        assert row is not None
        if known and known.version > row.list_version:
            return Newest(known.version, known.signed)
        return Newest(row.list_version, row.list_signed)

    def _remember(self, newest: Newest) -> None:
        store = self._context.store
        row = store.own_keys()
        assert row is not None
        if row.list_version != newest.version:
            store.put_own_keys(replace(row, list_version=newest.version, list_signed=newest.signed))

    def _may_sign(self, item: Devices, newest: Newest) -> bool:
        """Whether to sign now: not before the next attempt is due, not too many, and not after a jump in versions."""
        context = self._context
        if self.retry.due is not None and context.now < self.retry.due:
            return False
        if item.version > newest.version + context.limits.list_jump:
            if not self._told_jump:
                self._told_jump = True
                why = f"version {item.version} is claimed, but {newest.version} was signed last"
                context.tell(ListRefused(item.account, context.handle(item.account), why))
            self.retry.later()
            return False
        if not 0 <= context.now - self._minute < MINUTE_MS:
            self._minute, self._signed = context.now, 0
        if self._signed >= context.limits.lists_per_minute:
            self.retry.set(self._minute + MINUTE_MS)
            return False
        self._signed += 1
        return True

    def _departed(self, item: Devices, wanted: dict[Address, PublicIdentity]) -> dict[Address, Departed]:
        """Devices that left recently: a contact that never saw them on a list must be able to judge what they sent."""
        store, now, known = self._context.store, self._context.now, self._believed.of(item.account)
        if known is None:
            return {}
        # By the server's clock if that is ahead: it has stamped nothing later than this.
        at = max([now, *(row.seen for row in store.conversations()[:1])])
        gone = {address: left for address, left in known.departed.items() if now - left.at < LEFT_MS}
        gone |= {address: Departed(who, at) for address, who in known.devices.items()}
        there = {address.device for address in wanted}
        latest = sorted(gone.items(), key=lambda each: -each[1].at)
        return dict([each for each in latest if each[0].device not in there][:DEPARTED_MAX])

    def _answered(self, signed: SignedDeviceList, said: Said) -> None:
        self._asked = False
        if isinstance(said, Done):
            self._taken = signed.signed
            self._believed.put(signed)
            self._lists.forget(signed.account)
            self.look()
            self._listed(signed)
        elif isinstance(said, ListConflict) and said.version != signed.version - 1 and not self.retry.failures:
            self.retry.count()
            self.look()
        elif isinstance(said, ListConflict):
            self._refused = (signed.version, signed.devices) if said.version == signed.version - 1 else None
            self.retry.later()
        elif isinstance(said, Refusal):
            self.retry.later()

    def _listed(self, signed: SignedDeviceList) -> None:
        """The server has this list: it said so or, if that answer was lost, it shows it."""
        if listed := [address for address in self._pending if address in signed.devices]:
            for address in listed:
                del self._pending[address]
            self._context.signals.own_list_published()
