"""Taking a new device into the account, on the primary device: step by step, each safe to repeat.

Knows:   the guests: devices that the person has agreed to, by a code that was carried over from their screen.
Touches: one errand per guest, so that a crash only delays it.
Never:   lists a device whose published keys are not those of its code, waits for one that is gone, or leaves one that
         did not come linked at the server.

    1. wait for the guest's keys, and begin a session with them: they must be the code's
    2. sign the list that names it
    3. tell it the account's key, under the secret of its code
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.e2ee.content import Content, decode_content
from nightmail.e2ee.identity import Address, Identity
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.provision import make_provision
from nightmail.model.rows import Entry

from .controls import Control, control, part_of, read, read_of
from .errors import Misused
from .events import DeviceLinked, DeviceNotLinked
from .hub import Hub
from .moving import Moving
from .outbox import Outbox
from .reads import Reads
from .revoking import Revoking
from .sealed import Sealed
from .store import Outgoing

ERRAND = "guest "
AGAIN_MS = 1_000
"""How often a guest's keys are asked for: somebody stands before two screens."""
AGAIN_PART = 10
"""And later ever more seldom: when this part of the time that it was waited for has passed once more."""

READ_IDS = 500
"""How many messages one word about reading names."""


class Guest(Struct, frozen=True, array_like=True):
    device: int
    registration: int
    identity: bytes
    secret: bytes
    hand_over: bool = False
    """The account moves to it."""
    since: int = 0
    """When the person agreed to it."""

    @property
    def address(self) -> Address:
        return Address(self.device, self.registration)

    def __repr__(self) -> str:
        return f"<guest {self.device:x}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("device", f"{self.device:x}")]


_encode = msgspec.msgpack.Encoder().encode
_guest = msgspec.msgpack.Decoder(Guest).decode


class Household:
    def __init__(self, hub: Hub, sealed: Sealed, outbox: Outbox, reads: Reads) -> None:
        self._hub, self._sealed, self._outbox, self._reads = hub, sealed, outbox, reads
        self.moving = Moving(hub, sealed.keyring, sealed.trust, outbox, sealed.fits)
        self._revoking = Revoking(hub)
        self._revoking.on_revoked = self._revoked
        sealed.awaits = lambda: self.moving.awaits
        sealed.pairing.on_handed = self.moving.expect
        outbox.spoken.on_said = self._said
        self._due: int | None = None
        sealed.roster.on_listed = self.step
        sealed.roster.on_gone = sealed.sessions.on_gone = partial(self.dismiss, why="the server no longer has it")

    def invite(self, guest: Guest) -> None:
        if not self._sealed.roster.is_primary:
            raise Misused("only the primary device of an account can link another")
        Identity.decode(guest.identity)
        self._revoking.spare(guest.device)
        self._hub.store.put_errand(_name(guest.device), _encode(replace(guest, since=self._hub.now)))
        self.step()

    def dismiss(self, device: int, why: str) -> None:
        """A guest is not waited for any more."""
        if self._hub.store.errand(_name(device)) is None:
            return
        self._hub.store.drop_errand(_name(device))
        self._sealed.roster.drop(device)
        self._sealed.sessions.drop_guest(device)
        self._hub.tell(DeviceNotLinked(device, why))

    def tell_read(self, ids: list[str]) -> None:
        """The person has seen these here: the other own devices need not show them as new."""
        own = self._hub.identity.account
        listed = self._sealed.trust.of(own)
        if listed is not None and len(listed.devices) > 1:
            for at in range(0, len(ids), READ_IDS):
                self._outbox.control(own, read(ids[at : at + READ_IDS]))

    def obey(self, entry: Entry, content: Content) -> None:
        """What another device of this account says."""
        data = content.data or b""
        match content.control:
            case Control.READ:
                self._reads.mark_elsewhere(set(read_of(data)))
            case Control.HISTORY:
                self.moving.take(entry.by, part_of(data))
            case Control.MOVED:
                self.moving.arrived(entry.by, data)
            case Control.READY:
                self.moving.ready(entry.by, data)
            case _:
                pass

    def connected(self) -> None:
        self._revoking.connected()
        self.step()
        self.moving.connected()

    def lost(self) -> None:
        self._due = None
        self.moving.lost()
        self._revoking.lost()

    def deadline(self) -> int | None:
        dues = (self._due, self.moving.deadline(), self._revoking.deadline())
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        self.moving.tick()
        self._revoking.tick()
        if self._due is not None and self._hub.now >= self._due:
            self._due = None
            self.step()

    def step(self) -> None:
        """As far as it goes now."""
        store = self._hub.store
        if self._hub.online:
            for name in store.errands(ERRAND):
                if (state := store.errand(name)) is not None:
                    self._step(name, _guest(state))

    def _step(self, name: str, guest: Guest) -> None:
        hub, sealed, own = self._hub, self._sealed, self._hub.identity.account
        if not guest.since:
            guest = replace(guest, since=hub.now)
            hub.store.put_errand(name, _encode(guest))
        if hub.now - guest.since >= hub.limits.guest_ms:
            self.dismiss(guest.device, "it did not come in time")
            self._revoking.revoke(guest.device)
            return
        identity = Identity.decode(guest.identity)
        sealed.sessions.guests[guest.device] = Peer.of(guest.address, identity)
        if not sealed.sessions.ready({guest.device: guest.registration}, self, self.step, partial(self._later, guest)):
            return
        listed = sealed.trust.of(own)
        if listed is None or guest.address not in listed.devices:
            sealed.roster.add(guest.address, identity)
            return
        data = make_provision(
            guest.secret, guest.address, sealed.keyring.keys.account, hand_over=guest.hand_over
        )  # fmt: skip
        self._outbox.control(own, control(Control.PROVISION, data), only=guest.device)
        self._hub.store.drop_errand(name)
        sealed.sessions.guests.pop(guest.device, None)
        if guest.hand_over:
            self.moving.hand_over(guest.device)

    def _said(self, row: Outgoing) -> None:
        """The server has a word from here. Only now may whoever waits for that leave, and not when it was written."""
        match decode_content(row.content).control:
            case Control.PROVISION:
                self._hub.tell(DeviceLinked(row.only))
            case Control.MOVED:
                self.moving.said()
            case _:
                pass

    def _revoked(self, device: int) -> None:
        """It may be on the list already, if only the word to it was missing: then the next list does without it."""
        listed = self._sealed.trust.of(self._hub.identity.account)
        if listed is not None and any(address.device == device for address in listed.devices):
            self._sealed.roster.look()

    def _later(self, guest: Guest) -> None:
        now = self._hub.now
        due = now + max(AGAIN_MS, (now - guest.since) // AGAIN_PART)
        self._due = due if self._due is None else min(self._due, due)


def _name(device: int) -> str:
    return f"{ERRAND}{device:016x}"
