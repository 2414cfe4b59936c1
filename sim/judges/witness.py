"""Looks over a device's shoulder: what becomes durable on it, what its app is told, and whether both keep the promises.

Knows:   how far each of its messages got, and which lists it believes.
Touches: the history.
Never:   asks the machine, or does anything for it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nightmail.client.events import (
    Event,
    KeysRefused,
    ListRefused,
    MessageFailed,
    Provisioned,
    SecurityCodeChanged,
    ServerBehind,
    WaitingForNetwork,
)
from nightmail.client.group_events import GroupEvent
from nightmail.client.messages import Message as Written
from nightmail.client.messages import Tick
from nightmail.client.store.rows import MessageNumber, Missed, Outgoing, ReadMark, Trusted
from nightmail.e2ee.lists import check_list
from nightmail.model.words import Kind
from sim.world.device_store import Written as Durable
from sim.world.world import Broken

from .history import Message, Shown

if TYPE_CHECKING:
    from sim.world.device import Device

BETTER = {Tick.DELIVERED: (Tick.DELIVERED, Tick.READ), Tick.READ: (Tick.READ,)}
"""What may follow in the life of a message: nothing that was delivered becomes less."""


class Witness:
    def __init__(self, device: Device) -> None:
        self._device, self._world, self._history = device, device.world, device.history
        self._seen = device.seen
        self._ticks: dict[str, Tick] = {}
        """Own message → how far it got, as is durable here."""
        self._keys: dict[int, bytes] = {}
        """Account → the key that its list was last believed by, durably."""
        self._believed: dict[int, tuple[bytes, int]] = {}
        """Account → that key, and the list's version."""
        self.rekeyed: Counter[int] = Counter()
        """Account → how often that was another one."""
        self._guarded: set[int] = set()
        """Accounts whose key its person has verified, or whose next key the person has not agreed to."""
        self._unannounced: set[int] = set()
        """Accounts whose key has changed and whose person here was not told yet."""
        self._writing: dict[str, tuple[int, int, int]] = {}
        """Message → what its person had seen, when it was written and its timer, until it is durable."""

    def _broke(self, promise: str, what: str) -> Broken:
        return self._history.broke(promise, f"{self._device.name} {what}")

    def writes(self, message_id: str, seen: int, life_ms: int) -> None:
        """Its person writes something, which is not durable yet."""
        self._writing[message_id] = seen, self._world.now, life_ms

    def crashed(self) -> None:
        """What was not durable has never been."""
        self._writing.clear()
        self._unannounced.clear()

    # --- what its app is told ---------------------------------------------------------------------

    def told(self, event: Event) -> None:
        if self._device.later.told(event):
            return
        match event:
            case Written(group=int()) | GroupEvent():
                self._device.groups.told(event)
            case Written():
                if event.id not in self._seen.shown:
                    raise self._broke("durable before it is shown", f"tells its app of {event.id}")
                if event.id in self._seen.told:
                    raise self._broke("nothing twice", f"tells its app of {event.id} again")
                self._seen.told.add(event.id)
            case MessageFailed():
                self._world.hit(event.reason if event.reason == "too_old" else f"message failed: {event.reason}")
            case WaitingForNetwork():
                self._world.hit("waiting for network")
            case SecurityCodeChanged():
                self._world.hit("key changed")
                self._unannounced.discard(event.account)
                if event.account not in self._history.started_over:
                    raise self._broke("no false alarm", f"is told of a new key: {event}")
            case Provisioned():
                self._world.hit("linked by a code")
            case ListRefused() | KeysRefused():
                self._refused(event)
            case ServerBehind():
                raise self._broke("acks", f"is told that the server is behind: {event}")
            case _:
                pass

    def _refused(self, event: ListRefused | KeysRefused) -> None:
        """An honest server's word is believed."""
        if not self._device.removed and not self._device.forger.has_lied:
            raise self._history.broke("an honest server is believed", f"{self._device.name}: {event}")

    def check_all_told(self) -> None:
        """A turn is over."""
        if self._unannounced:
            raise self._broke("a new key is told", f"took one of {self._unannounced} without a word")

    # --- what is durable --------------------------------------------------------------------------

    def written(self, row: Durable) -> None:
        """Something is durable."""
        if self._device.groups.written(row) or self._device.later.written(row):
            return
        if isinstance(row, MessageNumber):
            self._numbered(row)
        elif isinstance(row, Outgoing):
            self._outgoing(row)
        elif isinstance(row, Trusted):
            self._trusted(row)
        elif isinstance(row, Missed):
            if row.healed:
                self._world.hit("unreadable healed")
        elif isinstance(row, Written) and row.by != self._device.me.device:
            self._shown(row)
        elif isinstance(row, Written):
            before = self._ticks.get(row.id)
            if before is not None and row.state not in BETTER.get(before, (row.state,)):
                raise self._history.broke("receipts never go backward", f"{row.id} was {before}, is {row.state}")
            self._ticks[row.id] = row.state

    def _outgoing(self, row: Outgoing) -> None:
        message = self._history.messages.get(row.id)
        if message is None:
            seen, written_at, life_ms = self._writing.pop(row.id, (0, 0, 0))
            of = row.original if row.reseal else None
            body = self._device.store.message(row.original)
            first = self._history.messages.get(of) if of else None
            is_successor = body and first and row.only not in first.addressed
            message = Message(row.id, self._device.me.device, row.to, row.lane, row.n, of, seen, life_ms=life_ms)
            message.body, message.written_at = body.body if body else b"", written_at
            self._history.add(message)
            message.is_control = bool(row.content)
            message.sets_timer = body is not None and body.kind is Kind.CONTROL
            if is_successor:
                self._world.hit("re-sealed for a successor")
            if of and not row.content:
                self._world.hit("re-sealed")
            what = f"writes {row.id} to {row.to:x} as {row.lane.name} {row.n}"
            self._world.tell(self._device.name, what + (f" of {of}" if of else ""))
        message.given_up = message.given_up or row.void

    def _trusted(self, row: Trusted) -> None:
        """A list is believed from now on, or what its person said about it has changed."""
        if row.signed not in self._history.signed:
            raise self._broke("only signed lists", "believes a list that nobody signed")
        found = check_list(row.signed, row.account)
        key, version = found.key, (found.key, found.version)
        if (before := self._believed.get(row.account, version))[0] == key and before[1] > found.version:
            raise self._broke("a list never goes back", f"believes {found.version} after {before[1]}")
        self._believed[row.account] = version
        if self._keys.setdefault(row.account, key) != key:
            self._keys[row.account] = key
            self.rekeyed[row.account] += 1
            self._unannounced.add(row.account)
            if row.account in self._guarded and not row.held:
                raise self._broke("not before the person agrees", f"believes another key of {row.account:x} unasked")
        elif row.verified:
            self._guarded.add(row.account)
        elif not row.held:
            self._guarded.discard(row.account)

    def _numbered(self, row: MessageNumber) -> None:
        if row.by == self._device.me.device:
            return
        key = (row.by, row.to, row.lane, row.n)
        self._seen.stored.add(key)
        if row.mark is ReadMark.READING:
            if key not in self._seen.reading and self._device.person.hides_reading(row.by >> 12):
                self._seen.read_hidden.add(key)
            self._seen.reading.add(key)
        elif row.mark is ReadMark.NONE and key in self._seen.reading:
            self._seen.read.add(key)

    def _shown(self, row: Written) -> None:
        message = self._history.messages.get(row.id)
        if message is None or (message.body, message.by) != (row.body, row.by):
            raise self._broke("no ghost", f"shows {row.id}, which nobody wrote so")
        if row.id not in self._seen.shown:
            shown = Shown(row.id, row.by, row.at, message.lane, len(self._seen.shown))
            self._seen.shown[row.id] = shown
