"""The client without sockets, clocks or tasks: frames in, frames and events out.

Knows:   how a connection begins, lives and ends; which part takes what.
Never:   lets a frame or an event out before everything behind it is committed.

Whoever drives it tells it what happens (`connected`, `receive`, `closed`, `compose`, …), always with the
time; then takes `frames()` to write and `events()` to tell, and calls `tick` when `deadline()` has come.
Both commit what is open first, so that what happens in one turn costs one commit. `now` is milliseconds
since 1970 and must not go back. If the store fails, or anything is raised that is not a ClientError, the machine is
done for: `undo` what is not durable, and go on with one made `anew` from the store.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from random import Random, SystemRandom
from typing import Protocol

from nightmail.e2ee.chance import SYSTEM, Chance
from nightmail.e2ee.curves import signing_public
from nightmail.model.words import Kind, Lane
from nightmail.wire import frames as wire
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.items import (
    VERSION,
    Answered,
    Devices,
    Drained,
    Entries,
    FromServer,
    Gone,
    Goodbye,
    Hello,
    KeysLow,
    Ping,
    Pong,
    Welcome,
)
from nightmail.wire.items import (
    Receipts as ReceiptsItem,
)

from . import bounds
from .acks import Acks
from .errors import Misbehaved
from .events import Connected, DeviceRemoved, Disconnected, Ended, Event
from .framing import pack
from .household import Guest, Household
from .hub import Hub
from .inbox import Inbox
from .limits import ClientLimits
from .lists import Lists
from .mending import Mending
from .messages import Message
from .outbox import Outbox
from .reads import Reads
from .receipts import Receipts
from .sealed import Sealed
from .sealer import MakeSealer
from .store import Cursors, Identity, Store
from .successors import Successors
from .ticks import Ticks

AGENT = "nightmail-python"
BLIND = "nobody has told this device yet whose it is"


class Part(Protocol):
    def lost(self) -> None: ...


class Timed(Protocol):
    def deadline(self) -> int | None: ...

    def tick(self) -> None: ...


class Machine:
    def __init__(
        self,
        store: Store,
        identity: Identity,
        limits: ClientLimits | None = None,
        chance: Random | None = None,
        secrets: Chance = SYSTEM,
        sealer: MakeSealer = Sealed,
    ) -> None:
        """`secrets` is what keys and nonces are drawn from; another `sealer` than the real one is for tests."""
        self.limits, self._make_sealer = limits or ClientLimits(), sealer
        self._hub = hub = Hub(store, identity, self.limits, chance or SystemRandom(), secrets)
        self._lists = Lists(hub)
        self._sealer = sealer(hub, self._lists)
        self._lists.believe = self._sealer.believe
        ticks = Ticks(hub)
        self._outbox = Outbox(hub, self._lists, self._sealer, ticks)
        self._reads = Reads(hub)
        self._acks = Acks(hub)
        self._successors = Successors(hub, self._lists, ticks, self._outbox)
        self._mending = Mending(hub, self._sealer, ticks, self._outbox)
        receipts = Receipts(hub, self._sealer, ticks, self._outbox, self._mending, self._successors)
        self._inbox = Inbox(hub, self._lists, self._sealer, self._acks, receipts, self._reads)
        self._timed: list[Timed] = [
            self._outbox, self._acks, self._reads, self._lists, self._sealer, self._successors, self._mending
        ]  # fmt: skip
        self._parts: list[Part] = [
            self._sealer,
            self._lists,
            self._outbox,
            self._acks,
            self._reads,
            self._inbox,
            self._successors,
            self._mending,
        ]
        self._sealed = self._sealer if isinstance(self._sealer, Sealed) else None
        self._household: Household | None = None
        if self._sealed is not None:
            self._household = Household(hub, self._sealed, self._outbox, self._reads)
            self._inbox.on_control = self._household.obey
            self._inbox.on_shown = self._household.moving.stored
            self._timed.append(self._household)
            self._parts.append(self._household)
        self._greeted = False
        self._first: bytes | None = None
        self._heartbeat_ms = 0
        self._patience: int | None = None
        """When to give the server up: no Welcome, or no Pong."""
        self._ping_at: int | None = None
        self._nonce = 0
        self._blind_at: int | None = None
        """When a device that cannot judge anything yet looks into its mailbox from the beginning."""
        self.hangup: str | None = None
        """Why the connection must be closed by us; None: it need not."""
        self.goodbye: Goodbye | None = None
        """What the server said last, if it said why it closes."""

    @property
    def reached(self) -> Cursors:
        """How far the mailbox is in the store."""
        return self._hub.store.cursors()

    @property
    def online(self) -> bool:
        return self._hub.online

    # --- the connection -------------------------------------------------------------------------

    def connected(self, now: int) -> None:
        """A socket is open: say who we are and how far we got."""
        self._at(now)
        assert not self._greeted, "one connection at a time"
        self._greeted, self.hangup, self.goodbye = True, None, None
        me, cursors = self._hub.identity, self._acks.cursors
        hello = Hello(VERSION, me.device, me.token, cursors.normal, cursors.high, cursors.changes, AGENT)
        self._first = wire.encode([hello])
        self._patience = now + self.limits.welcome_ms

    def receive(self, frame: bytes, now: int) -> None:
        """What a server may not say sets `hangup`. Anything that this raises leaves the machine done for."""
        self._at(now)
        if self.hangup or not self._greeted:
            return
        try:
            items = wire.decode_from_server(frame)
            for item in items:
                bounds.check(item)
            for item in items:
                self._take(item)
        except (Misbehaved, wire.BadFrame) as error:
            # What came before it in the frame was in order, and counts.
            self.hangup = str(error)
        except (ValueError, OverflowError, LookupError, struct.error) as error:
            # Half of an item may be written, and nobody knows which half.
            raise Misbehaved(f"the server said what nobody here understands ({type(error).__name__})") from error

    def leave(self, now: int) -> None:
        """The connection is about to be closed by us: whoever waits for an acknowledgement gets it now."""
        self._at(now)
        self._acks.leave()

    def lost(self, now: int) -> None:
        """The connection is gone, and nobody said why."""
        self.closed(1006, now)

    def closed(self, code: int, now: int, why: str = "") -> None:
        """The connection was closed. What it means for the next one is the caller's to decide."""
        self._at(now)
        if not self._greeted:
            return
        self._greeted, self._first, self._patience, self._ping_at = False, None, None, None
        self._blind_at = None
        self._hub.lost()
        for part in self._parts:
            part.lost()
        code = self.goodbye.code if self.goodbye else code
        known = next((known for known in CloseCode if known == code), None)
        sentence = why or self.hangup or (SENTENCES[known] if known else "the connection broke")
        self._hub.tell(Disconnected(sentence, code))
        if known in (CloseCode.REMOVED, CloseCode.UNAUTHORIZED):
            self._hub.tell(DeviceRemoved(code, sentence))
        elif known is not None and known.final:
            self._hub.tell(Ended(code, sentence))

    # --- what the person does -------------------------------------------------------------------

    def compose(
        self, to: int, body: bytes, now: int, *, kind: Kind = Kind.TEXT, lane: Lane = Lane.NORMAL, life_ms: int = 0
    ) -> Message:
        """Queue a message. Raises TooLarge; nothing is queued then."""
        self._at(now)
        return self._outbox.compose(to, body, kind, lane, life_ms)

    def mark_read(self, peer: int, now: int, only: Collection[str] | None = None) -> int:
        self._at(now)
        read = self._reads.mark(peer, only)
        if read and self._household is not None:
            self._household.tell_read(read)
        return len(read)

    def give_up(self, message_id: str, now: int) -> bool:
        self._at(now)
        return self._outbox.give_up(message_id)

    # --- whose devices are whose ----------------------------------------------------------------

    @property
    def sealed(self) -> Sealed:
        assert self._sealed is not None, "a test's sealer knows nobody"
        return self._sealed

    def invite(self, guest: Guest, now: int) -> None:
        """Take a device into the account. Goes on by itself; `DeviceLinked` tells that it is done. Raises Misused."""
        self._at(now)
        assert self._household is not None
        self._household.invite(guest)

    def dismiss(self, device: int, now: int) -> None:
        """The person has revoked a device: if it was still to be linked, it no longer is."""
        self._at(now)
        assert self._household is not None
        self._household.dismiss(device, "it was revoked")

    def sign_again(self, now: int) -> None:
        """The server's list may have changed by this account's own wish: sign what is left, if this is the primary."""
        self._at(now)
        self.sealed.roster.look()

    def account_key(self, account: int) -> bytes:
        """The key that an account's list is signed with; empty: not known here."""
        sealed = self.sealed
        if account == self._hub.identity.account and sealed.roster.is_primary:
            return signing_public(sealed.keyring.keys.account)
        known = sealed.trust.of(account)
        return known.key if known else b""

    def agree(self, account: int, now: int, *, key: bytes, verified: bool) -> bool:
        """The person accepts this key of an account, or has verified it; False: it is not theirs, or not any more."""
        self._at(now)
        agreed = self.sealed.trust.agree(account, key, verified=verified)
        if agreed:
            self.sealed.agree(account)
        return agreed

    def forget_own_devices(self) -> None:
        """Seal the next copies for whoever is on this account's list then. For whoever links a device.

        The server tells a sender of an own device that it missed only if it sealed for some other: a sender
        who believes to be alone must ask.
        """
        self._lists.forget(self._hub.identity.account)

    # --- time -----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """When `tick` wants to be called; None: not until something happens."""
        dues = [due for part in self._timed if (due := part.deadline()) is not None]
        dues += [due for due in (self._patience, self._ping_at, self._blind_at) if due is not None]
        return min(dues, default=None)

    def tick(self, now: int) -> None:
        self._at(now)
        if self._patience is not None and now >= self._patience:
            self._patience = None
            self.hangup = self.hangup or "the server is silent"
        if self._ping_at is not None and now >= self._ping_at:
            self._nonce += 1
            self._hub.items.append(Ping(self._nonce))
            self._ping_at = now + self._heartbeat_ms
            self._patience = self._patience or now + self._heartbeat_ms
        if self._blind_at is not None and now >= self._blind_at:
            self._blind_at = now + self.limits.blind_ms
            # What it cannot judge it cannot acknowledge, and so may have no credit left for the word it waits for.
            # A new connection begins with the high lane, in which that word is.
            if self._sealer.is_blind and self._inbox.stands_still:
                self.hangup = self.hangup or BLIND
        for part in self._timed:
            part.tick()

    # --- out ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Make everything durable that has happened. Raises StoreFailed."""
        if self._hub.store.dirty:
            self._hub.store.commit()

    def undo(self) -> None:
        """Nothing that is not durable has happened. The machine is done for."""
        self._hub.store.rollback()

    def anew(self) -> Machine:
        """What a restart would make of what is durable: nothing that is in memory here is in that one."""
        hub = self._hub
        return Machine(hub.store, hub.identity, self.limits, hub.chance, hub.secrets, self._make_sealer)

    def frames(self) -> list[bytes]:
        """What to write now, in order; everything behind it is durable."""
        self.settle()
        frames = [] if self._first is None else [self._first]
        self._first = None
        frames += pack(self._hub.items, self._hub.frame_bytes)
        self._hub.items.clear()
        return frames

    def events(self) -> list[Event]:
        """What to tell the app; everything behind it is durable."""
        self.settle()
        events = list(self._hub.events)
        self._hub.events.clear()
        return events

    # --- in -------------------------------------------------------------------------------------

    def _at(self, now: int) -> None:
        self._hub.now = max(self._hub.now, now)

    def _take(self, item: FromServer) -> None:
        if isinstance(item, Goodbye):
            self.goodbye = item
        elif isinstance(item, Welcome):
            self._welcome(item)
        elif not self._hub.online:
            raise Misbehaved("something before Welcome")
        else:
            match item:
                case Answered():
                    self._hub.answered(item)
                case Entries() | Gone():
                    self._inbox.take(item)
                case ReceiptsItem():
                    self._inbox.changes(item.changes)
                case Drained():
                    self._inbox.drained()
                case Devices():
                    self._hub.devices(item)
                case KeysLow():
                    self._sealer.keys_low()
                case Pong():
                    self._patience = None

    def _welcome(self, item: Welcome) -> None:
        if self._hub.online or item.version != VERSION:
            raise Misbehaved("a second Welcome, or one for another version")
        self._hub.online, self._patience = True, None
        self._hub.window = min(self.limits.window, max(1, item.window))
        self._hub.body_bytes = item.body_bytes
        self._hub.frame_bytes = item.frame_bytes
        self._heartbeat_ms = max(1_000, item.heartbeat_ms)
        self._ping_at = self._hub.now + self._heartbeat_ms
        self._blind_at = self._hub.now + self.limits.blind_ms if self._sealer.is_blind else None
        self._hub.tell(Connected(item.node, item.at))
        self.forget_own_devices()
        self._sealer.connected()
        self._acks.connected()
        self._reads.connected()
        self._outbox.connected()
        self._successors.connected()
        self._mending.connected()
        if self._household is not None:
            self._household.connected()
