"""Linking a new device to the account, on the primary device: step by step, each safe to repeat.

Knows:   the pending links: devices that the person agreed to, by a code that was carried over from their screen.
Touches: one errand per pending link, so that a crash only delays it.
Never:   lists a device whose published keys are not those of its code, waits for one that is gone, or leaves one that
         did not finish linked at the server.

    1. wait for the device's keys, and begin a session with them: they must be those of the code
    2. sign the list that names the device
    3. tell it the account's key, under the secret of its code (PROVISION), and the person's contacts (CONTACTS)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.errors import Misused
from nightmail.client.events import DeviceLinked, DeviceNotLinked
from nightmail.client.groups.own_devices import GroupSync
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Timer
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.store.rows import Outgoing
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee.identity import Address, PublicIdentity
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.provision import make_provision

from .backup_sync import BackupSync
from .contact_sync import ContactSync
from .controls import Control, control
from .move_out import MoveOut
from .revocations import Revocations
from .schedule_sync import ScheduleSync
from .timer_sync import TimerSync

ERRAND = "guest "
NOT_PRIMARY = (
    "use the code on the account's primary device: only that one (the first, or the one that the account was moved to) "
    "holds the key that signs the list of devices"
)
KEYS_MS = 1_000
"""How often a new device's keys are asked for at first: a person waits in front of both screens."""
KEYS_PART = 10
"""Later they are asked for with growing intervals: each is this part of the time since the person agreed."""


class PendingLink(Struct, frozen=True, array_like=True):
    device: int
    registration: int
    identity: bytes
    secret: bytes
    hand_over: bool = False
    """The account moves to this device."""
    since: int = 0
    """When the person agreed to it."""

    @property
    def address(self) -> Address:
        return Address(self.device, self.registration)

    def __repr__(self) -> str:
        return f"<pending link of {self.device:x}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("device", f"{self.device:x}")]


_encode = msgspec.msgpack.Encoder().encode
_pending = msgspec.msgpack.Decoder(PendingLink).decode


class DeviceLinking:
    def __init__(
        self, context: Context, e2ee: E2eeSealer, outbox: Outbox, move_out: MoveOut, revocations: Revocations,
        contact_sync: ContactSync, timer_sync: TimerSync, group_sync: GroupSync, schedule_sync: ScheduleSync,
        backup_sync: BackupSync,
    ) -> None:  # fmt: skip
        self._context, self._e2ee, self._outbox = context, e2ee, outbox
        self._move_out, self._revocations = move_out, revocations
        self._contact_sync, self._timer_sync = contact_sync, timer_sync
        self._group_sync, self._schedule_sync, self._backup_sync = group_sync, schedule_sync, backup_sync
        self.timer = Timer(context, self.step)

    def begin(self, pending: PendingLink) -> None:
        """The person agreed to this device. Raises Misused."""
        if not self._e2ee.own_list.is_primary:
            raise Misused(NOT_PRIMARY)
        PublicIdentity.decode(pending.identity)
        self._revocations.spare(pending.device)
        self._context.store.put_errand(_name(pending.device), _encode(replace(pending, since=self._context.now)))
        self.step()

    def dismiss(self, device: int, why: str) -> None:
        """Stop linking a device."""
        if self._context.store.errand(_name(device)) is None:
            return
        self._context.store.drop_errand(_name(device))
        self._e2ee.own_list.drop(device)
        self._e2ee.sessions.drop_pending(device)
        self._context.tell(DeviceNotLinked(device, why))

    def connected(self) -> None:
        self.step()

    def step(self) -> None:
        """Take every pending link as far as it goes now."""
        store = self._context.store
        if self._context.online:
            for name in store.errands(ERRAND):
                if (state := store.errand(name)) is not None:
                    self._step(name, _pending(state))

    def _step(self, name: str, pending: PendingLink) -> None:
        context, e2ee, own = self._context, self._e2ee, self._context.identity.account
        if not pending.since:
            pending = replace(pending, since=context.now)
            context.store.put_errand(name, _encode(pending))
        if context.now - pending.since >= context.limits.link_ms:
            self.dismiss(pending.device, "it did not come in time")
            self._revocations.revoke(pending.device)
            return
        device, identity = pending.device, PublicIdentity.decode(pending.identity)
        e2ee.sessions.add_pending(Peer.of(pending.address, identity))
        if not e2ee.sessions.ready({device: pending.registration}, self, self.step, partial(self._later, pending)):
            return
        listed = e2ee.believed.of(own)
        if listed is None or pending.address not in listed.devices:
            e2ee.own_list.add(pending.address, identity)
            return
        data = make_provision(
            pending.secret, pending.address, e2ee.key_stock.keys.account, hand_over=pending.hand_over
        )  # fmt: skip
        self._outbox.control(own, control(Control.PROVISION, data), only=device)
        self._contact_sync.send_all(device)
        self._timer_sync.send_all(device)
        self._group_sync.send_all(device)
        self._schedule_sync.send_all(device)
        self._backup_sync.send_all(device)
        context.store.drop_errand(name)
        e2ee.sessions.confirm_pending(device)
        if pending.hand_over:
            self._move_out.begin(device)

    def provision_accepted(self, row: Outgoing) -> None:
        """The server has the message that provisions a device. Only now may the app be told, and not when it was
        written: the app may end this process as soon as it knows."""
        self._context.tell(DeviceLinked(row.only))

    def revoked(self, device: int) -> None:
        """It may be on the list already, if only PROVISION was missing: then sign the next list without it."""
        listed = self._e2ee.believed.of(self._context.identity.account)
        if listed is not None and any(address.device == device for address in listed.devices):
            self._e2ee.own_list.look()

    def _later(self, pending: PendingLink) -> None:
        now = self._context.now
        self.timer.set_earlier(now + max(KEYS_MS, (now - pending.since) // KEYS_PART))


def _name(device: int) -> str:
    return f"{ERRAND}{device:016x}"
