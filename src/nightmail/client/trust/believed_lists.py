"""Which device lists are believed. The server hands lists out; only an account's own key can sign one.

Knows:   the newest list of each account, its key, its handle, and whether the person has compared safety numbers.
Touches: trusted rows; the handle of a conversation; the sessions of an account whose key changed.
Never:   believes in a device that its account has not signed for, or forgets a key that was seen; nor a list that names
         another handle than the person asked for.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import ListRefused, ListUnsigned, SecurityCodeChanged
from nightmail.client.machine.context import Context
from nightmail.client.store.rows import DeviceList, Trusted
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.errors import AccountKeyChanged, HandleDiffers, NotListed, Rejected
from nightmail.e2ee.lists import SignedDeviceList, check_handle, check_list
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.state import encode_peer
from nightmail.model.ids import account_id, account_of
from nightmail.model.limits import DAY_MS
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices

from .key_stock import KeyStock

LEFT_MS = 31 * DAY_MS
"""How long after a device left its account's list its entries may still come: the server keeps them for 30 days."""
FORMER_MAX = 128
"""How many devices of an account's former keys are kept without a session: a key can change every minute."""
FORMER_MS = 3_600_000
"""So long after a key was replaced here, what was signed under it is believed."""
UNSIGNED = "it is not signed"
SKEW_MS = 60_000
"""How far the server's clock may be ahead of this device's."""


class BelievedLists:
    def __init__(self, context: Context, key_stock: KeyStock) -> None:
        self._context, self._key_stock = context, key_stock
        self._lists: dict[int, SignedDeviceList] = {}
        self._refused: dict[int, str] = {}
        """Account → why its list was refused last: told once."""
        self.changes = 0
        """Counts changes of what is believed, so that what follows from it need not be worked out again."""

    def of(self, account: int) -> SignedDeviceList | None:
        """The newest list that was believed."""
        if (known := self._lists.get(account)) is None and (row := self._context.store.trusted(account)) is not None:
            known = self._lists[account] = check_list(row.signed, account)
        return known

    def former(self, account: int) -> SignedDeviceList | None:
        """The newest list of the key that the account had until a short while ago. What its devices signed before may
        be read only now; later a stolen device could still sign with it."""
        row = self.row(account)
        if row is None or not row.former or self._context.now > row.changed_at + FORMER_MS:
            return None
        return check_list(row.former, account)

    def row(self, account: int) -> Trusted | None:
        return self._context.store.trusted(account)

    def is_held(self, account: int) -> bool:
        row = self.row(account)
        return row is not None and row.held

    def knows(self, entry: Entry) -> bool:
        """Whether the author is on a believed list, or was when it wrote this."""
        account = account_of(entry.by)
        known = self.of(account)
        if known is None:
            return False
        if any(address.device == entry.by for address in known.devices):
            return True
        row = self.row(account)
        left = row.left.get(entry.by) if row else None
        return left is not None and entry.at <= left + SKEW_MS and self._is_kept(entry.by, known)

    def departed(self, device: int) -> Peer:
        """A device that its account's list names as having left recently. Raises NotListed."""
        known = self.of(account_of(device))
        if known is None:
            raise NotListed(device, 0)
        return known.departed_peer(device)

    def is_gone(self, device: int) -> bool:
        """Whether it left its account's list so long ago that no entry of it can still come."""
        row = self.row(account_of(device))
        left = row.left.get(device) if row else None
        return left is not None and self._context.now - left >= LEFT_MS

    def believe(self, item: Devices) -> DeviceList | None:
        """Whom to seal for, if the account has signed what the server says."""
        account = item.account
        if not item.version:
            return DeviceList(account, 0, {})
        if not item.signed:
            self._tell_unsigned(account)
            return None
        try:
            self._take(account, item)
        except HandleDiffers as error:
            # Two handles have one id, and this account is the other's: the wanted one has the id of the next probe.
            self._refuse(account, str(error))
            self._name(account, error.named)
            return DeviceList(account, 0, {})
        except Rejected as error:
            self._refuse(account, str(error))
            return None
        self._refused.pop(account, None)
        return DeviceList(account, item.version, item.devices)

    def put(self, signed: SignedDeviceList) -> None:
        """Believe this list from now on. The account's key is the same as before."""
        account = signed.account
        row = self.row(account) or Trusted(account, b"")
        known = self.of(account)
        if known is not None and known.signed == signed.signed:
            return
        now = self._context.now
        left = {device: at for device, at in row.left.items() if self._is_kept(device, signed)}
        for address in known.devices if known else ():
            if address not in signed.devices:
                left[address.device] = now
        for address, gone in signed.departed.items():
            # Clocks differ, but a list must not keep a device for years by naming a time in the future.
            left[address.device] = max(left.get(address.device, 0), min(gone.at, now + DAY_MS))
        self._store(replace(row, signed=signed.signed, left=left), signed)

    def adopt(self, row: Trusted) -> None:
        """Take over what another device of this account knows about an account. Raises Rejected."""
        moved, known, here = check_list(row.signed, row.account), self.of(row.account), self.row(row.account)
        if known is None or here is None:
            self._store(row, moved)
        elif known.key == moved.key:
            newest = max(known, moved, key=lambda signed: signed.version)
            here = replace(
                here, signed=newest.signed, verified=here.verified or row.verified, held=row.held and not here.verified,
                changed_at=here.changed_at or row.changed_at, left={**row.left, **here.left},
            )  # fmt: skip
            self._store(here, newest)
        else:
            # The server has shown this device another key since then: a change of key like any other.
            self._store(row, moved)
            self._change(row.account, known)

    def _is_kept(self, device: int, signed: SignedDeviceList) -> bool:
        """Whether the keys of a device that left are known: by a session, or because its account's list has them."""
        return self._context.store.peer(device) is not None or any(gone.device == device for gone in signed.departed)

    def agree(self, account: int, key: bytes, *, verified: bool) -> bool:
        """The person accepts this key, or has compared it; False if the account has another key."""
        row, known = self.row(account), self.of(account)
        if row is None or known is None or known.key != key:
            return False
        self.changes += 1
        self._context.store.put_trusted(replace(row, held=False, verified=row.verified or verified))
        return True

    def _take(self, account: int, item: Devices) -> None:
        known = self.of(account)
        if account == self._context.identity.account:
            self._take_own(known, item)
            return
        try:
            signed = check_list(item.signed, account, known)
        except AccountKeyChanged:
            signed = check_list(item.signed, account)
            check_handle(signed, known)
            _check_named(signed, item)
            self._check_wanted(signed)
            self._change(account, signed)
            return
        _check_named(signed, item)
        self._check_wanted(signed)
        self.put(signed)

    def _check_wanted(self, signed: SignedDeviceList) -> None:
        """Raises HandleDiffers if the person wrote to another handle than the list names."""
        account, named = signed.account, signed.handle
        wanted = self._context.store.conversation(account).handle
        if wanted and wanted != named and (named or account_id(wanted) != account):
            raise HandleDiffers(account, wanted, named)

    def _take_own(self, known: SignedDeviceList | None, item: Devices) -> None:
        """This account's own key never changes, whatever the server says."""
        account = item.account
        signed = check_list(item.signed, account, known)
        if signed.handle and signed.handle != self._context.identity.handle:
            raise HandleDiffers(account, self._context.identity.handle, signed.handle)
        if signed.key != (known.key if known else self._account_key()):
            raise AccountKeyChanged(account)
        _check_named(signed, item)
        self.put(signed)

    def _account_key(self) -> bytes:
        """The public key of this account, if this device signs for it; otherwise empty."""
        signing = self._key_stock.keys.account
        return signing_public(signing) if signing else b""

    def _change(self, account: int, signed: SignedDeviceList) -> None:
        """The account has another key. Nothing more is sealed for the former devices; what waits is sealed again.

        Entries that they sent before may still come, and are judged by the keys that they had.
        """
        context, row, known = self._context, self.row(account), self.of(account)
        assert row is not None
        assert known is not None
        former = {**{address: gone.identity for address, gone in known.departed.items()}, **known.devices}
        for address, identity in former.items():
            if context.store.peer(address.device) is None and len(context.store.peers(account)) < FORMER_MAX:
                context.store.put_peer(address.device, encode_peer(Peer.of(address, identity)))
        left = {device: row.left.get(device, context.now) for device in context.store.peers(account)}
        for device in {address.device for address in signed.devices} & set(left):
            context.store.drop_peer(device)  # another device now has the same number
            context.store.drop_claim(device)
            del left[device]
        held, was_verified = row.verified or row.held, row.verified
        row = Trusted(account, signed.signed, held=held, changed_at=context.now, left=left, former=known.signed)
        self._store(row, signed)
        for device in left:
            context.store.drop_claim(device)
        context.tell(SecurityCodeChanged(account, context.handle(account), was_verified))
        context.signals.key_changed(account)

    def _store(self, row: Trusted, signed: SignedDeviceList) -> None:
        self.changes += 1
        self._context.store.put_trusted(row)
        self._lists[row.account] = signed
        if signed.handle and row.account != self._context.identity.account:
            self._name(row.account, signed.handle)

    def _name(self, account: int, handle: str) -> None:
        """Show the conversation with this account under its handle."""
        store = self._context.store
        conversation = store.conversation(account)
        if conversation.handle != handle:
            store.put_conversation(replace(conversation, handle=handle))

    def _tell_unsigned(self, account: int) -> None:
        """The account registered, and none of its devices has signed a list yet."""
        if account != self._context.identity.account and self._refused.get(account) != UNSIGNED:
            self._refused[account] = UNSIGNED
            self._context.tell(ListUnsigned(account, self._context.handle(account)))

    def _refuse(self, account: int, why: str) -> None:
        if self._refused.get(account) != why:
            self._refused[account] = why
            self._context.tell(ListRefused(account, self._context.handle(account), why))


def _check_named(signed: SignedDeviceList, item: Devices) -> None:
    """The server may leave a device out, but add none."""
    for device, registration in item.devices.items():
        address, _ = signed.find(device)
        if address.registration != registration:
            raise NotListed(device, signed.version)
