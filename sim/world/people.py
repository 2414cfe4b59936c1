"""People with devices, and what they do all day: write, read, lose connections, change phones, block each other.

Which habits there are, and how strong, is drawn for each seed, so that every run is a
different kind of bad day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING

from nightmail.client.store.rows import Identity
from nightmail.e2ee.identity import Address
from nightmail.model.answers import Done, Joined, Said
from nightmail.model.ids import SERVER, account_id, account_of
from nightmail.model.records import AnyBody, Blocked, Linked, Listed, PinSet, ReceiptsSet, Registered, Unlinked
from nightmail.model.refusals import ListConflict, UnknownDevice
from nightmail.model.words import Lane, Platform

from .device import Device
from .sealed_device import Code, carry
from .world import World

if TYPE_CHECKING:
    from .town import Town

RETRY_MS = 300
SETTLED_MS = 5_000
"""Longer than a copy of what was said may still be on its way."""
COPIES_MS = 2_000
"""Likewise, of the wish for a lock: a late copy of it begins to count wrong PINs from 0."""
HUNG_MS = (20, 4_000)
DEEDS_OFFLINE = ("write", "read", "give_up", "crash")
DEEDS = (
    *DEEDS_OFFLINE, "cut", "second_link", "offline", "hang", "block", "receipts", "link", "remove", "lie",
    "start_over", "guess", "set_back", "verify",
)  # fmt: skip


@dataclass
class Habits:
    """How likely each thing is, out of all that a device does."""

    write: float
    read: float
    cut: float
    crash: float
    second_link: float
    offline: float
    hang: float
    give_up: float
    block: float
    receipts: float
    link: float
    remove: float
    high_lane: float
    torn: float
    """Of a device's commits, so many are the last thing it does."""
    bad_disk: float
    unreadable: float
    timer: float
    lie: float
    start_over: float
    guess: float
    set_back: float = 0.0
    """Of sealed devices only, as is the next one."""
    verify: float = 0.0
    forge_entries: float = 0.0
    """The part of all entries that the server alters or repeats; likewise of the next two."""
    forge_lists: float = 0.0
    forge_keys: float = 0.0
    set_timer: float = 0.005
    """Of a device's writing, so much is another timer of the conversation."""
    clock_back: float = 0.2
    """Of a device's restarts, so many find its clock set back."""
    hesitate: float = 0.0
    """Of the times at which a person could agree to another key, so many pass unused."""

    @classmethod
    def draw(cls, world: World, off: frozenset[str], *, sealed: bool = False) -> Habits:
        chance = world.chance

        def some(most: float) -> float:
            return most * chance.random() if chance.random() < 0.7 else 0.0

        habits = cls(
            write=30, read=6, cut=some(4), crash=some(2), second_link=some(2), offline=some(3), hang=some(2),
            give_up=some(2), block=some(0.6), receipts=some(0.4), link=some(0.5), remove=some(0.3),
            high_lane=chance.choice((0.0, 0.1, 0.5)), torn=some(0.01), bad_disk=some(0.005), unreadable=some(0.08),
            timer=some(0.2), lie=some(2), start_over=some(0.2), guess=some(0.3),
        )  # fmt: skip
        if sealed:
            habits.set_back, habits.verify = chance.choice((0, 0, 0.5)), some(1)
            habits.forge_entries = habits.forge_lists = habits.forge_keys = chance.choice((0, 0, 0.05))
            habits.link, habits.remove, habits.start_over = 2 * habits.link, 3 * habits.remove, 2 * habits.start_over
            habits.unreadable /= 2
        for habit in off & {habit.name for habit in fields(cls)}:
            setattr(habits, habit, 0.0)
        return habits

    @property
    def forges(self) -> bool:
        """Whether the server lies to sealed devices."""
        return bool(self.forge_entries or self.forge_lists or self.forge_keys)

    @cached_property
    def deeds(self) -> tuple[tuple[str, ...], list[float]]:
        """What one does, with cumulative weights."""
        return DEEDS, list(accumulate(getattr(self, name) for name in DEEDS))

    @cached_property
    def deeds_offline(self) -> tuple[tuple[str, ...], list[float]]:
        return DEEDS_OFFLINE, list(accumulate(getattr(self, name) for name in DEEDS_OFFLINE))


class Person:
    def __init__(self, town: Town, handle: str) -> None:
        self.town, self.world, self.handle = town, town.world, handle
        self.account = account_id(handle)
        self.devices: list[Device] = []
        self.blocked: set[int] = set()
        self.receipts_on = True
        self.is_private = False
        """The server has said that it tells nobody what this person reads."""
        self.pin = sha256(handle.encode()).digest()
        self.unlocked = 0
        """How often the lock was opened, or may have been: wrong PINs are then counted from 0."""
        self.locked = False
        self._changing = False
        self._wishing: set[int] = set()
        self._devices_made = 0

    # --- what chance decides ----------------------------------------------------------------------

    def finds_unreadable(self) -> bool:
        return not self.town.healing and self.world.maybe(self.town.habits.unreadable)

    def crashes_after_commit(self) -> bool:
        return not self.town.healing and self.world.maybe(self.town.habits.torn)

    def store_fails(self) -> bool:
        return not self.town.healing and self.world.maybe(self.town.habits.bad_disk)

    def hides_reading(self, peer: int) -> bool:
        return self.account in self.town.history.receipts_off or any(
            (a, p) == (self.account, peer) for a, p, _, _ in self.town.history.blocks
        )

    def hesitates(self) -> bool:
        """To agree to another key, for now."""
        return bool(self.town.habits.hesitate) and self.world.maybe(self.town.habits.hesitate)

    # --- account and devices ------------------------------------------------------------------------

    def ask(self, by: int, body: AnyBody, answered: Callable[[Said], None]) -> None:
        """Say something until it is answered with anything but 'try again'."""
        open_question = [True]

        def answer(said: Said) -> None:
            if getattr(said, "retry", False) or not open_question[0]:
                return
            open_question[0] = False
            answered(said)

        def attempt() -> None:
            if open_question[0]:
                self.town.backend.ask(by, body, answer)
                self.world.later(RETRY_MS, attempt)

        attempt()

    def register(self) -> None:
        number, token = self._new_device()
        label = f"device {number}"
        body = Registered(self.account, self.handle, number, sha256(token).digest(), label, Platform.CLI)

        def joined(said: Said) -> None:
            self._add_device(said, number, token)
            self.ask(self.devices[0].me.device, PinSet(self.account, bytes(16), self.pin), locked)

        def locked(said: Said) -> None:
            # A person who starts over at once has no lock: the device that asked for it is gone.
            if isinstance(said, Done):
                self.world.later(COPIES_MS, self._is_locked)

        self.ask(SERVER, body, joined)

    def _is_locked(self) -> None:
        self.locked = True

    def start_over(self) -> None:
        """All devices are lost at once. The person proves the PIN and starts over with a new one."""
        if self._changing or self._wishing:
            return
        self._changing = True
        self.unlocked += 1
        lost = list(self.devices)
        for device in lost:
            device.removed = True
            device.dead = self.world.maybe(0.5)
            if device.dead:
                device.crash()
            self.town.history.removed.add(device.me.device)
        self.town.history.started_over.add(self.account)
        self.is_private = False
        # Also what was sent by devices removed before: the devices that were told about it are gone, too.
        self.town.history.forgotten |= {each for each in self.town.history.removed if account_of(each) == self.account}
        self.world.tell(self.handle, "loses everything, and starts over")
        number, token = self._new_device()
        digest, label = sha256(token).digest(), f"device {number}"
        body = Registered(self.account, self.handle, number, digest, label, Platform.CLI, True, self.pin)

        def joined(said: Said) -> None:
            self._add_device(said, number, token)
            assert isinstance(said, Joined)
            self.unlocked += 1
            self.devices = [device for device in self.devices if device not in lost]
            now = (self.world.now, said.list_version, frozenset({said.device}))
            self.town.history.listed.setdefault(self.account, []).append(now)
            self.world.hit("started over")
            # A copy of the question may still be on its way: a device that it brings back must be this one.
            self.world.later(SETTLED_MS, self._has_changed)

        self.ask(SERVER, body, joined)

    def _has_changed(self) -> None:
        self._changing = False

    def _new_device(self) -> tuple[int, bytes]:
        """Its registration and its token."""
        self._devices_made += 1
        return self._devices_made, self.world.chance.randbytes(32)

    def _add_device(self, said: Said, registration: int, token: bytes, code: Code | None = None) -> None:
        if not isinstance(said, Joined):
            raise self.town.history.broke("accounts", f"{self.handle} could not join: {said!r}")
        device = Device(self, Identity(self.handle, self.account, said.device, registration, token), code)
        self.world.tell(device.name, "joins")
        self.devices.append(device)
        self.town.live(device)

    def link_device(self) -> None:
        """Another device: linked, then listed, so that others seal for it."""
        if self._changing or len(self.devices) >= self.town.most_devices:
            return
        self._changing = True
        number, token = self._new_device()
        body = Linked(self.account, number, sha256(token).digest(), f"device {number}", Platform.CLI)

        def linked(said: Said) -> None:
            if not self.town.sealed:
                self._add_device(said, number, token)
                self._list()
                return
            address = Address(getattr(said, "device", 0), number)
            code = Code(self.world.chance, address, self.town.client_limits, self.world.now)
            self._add_device(said, number, token, code)
            carry(code, self.devices[-1], lambda: self.devices[0], self._has_changed)

        self.ask(self.devices[0].me.device, body, linked)

    def remove_device(self) -> None:
        """A device is lost: the next list does not name it. A finder may go on using it."""
        if self._changing or len(self.devices) < 2:
            return
        self._changing = True
        lost = self.devices.pop(self.world.between(1, len(self.devices) - 1))
        lost.removed = True
        lost.dead = self.world.maybe(0.5)
        if lost.dead:
            lost.crash()
        self.town.history.removed.add(lost.me.device)
        self.world.tell(lost.name, "is lost")
        self.world.hit("device removed")
        if self.town.sealed:
            self._revoke(lost)
        else:
            self._list()

    def _revoke(self, lost: Device) -> None:
        """Cut off at once; the primary device signs a list without it when it can."""

        def revoked(said: Said) -> None:
            assert isinstance(said, Done), said
            self._changing = False
            self.devices[0].revoked(lost.me.device)

        self.ask(self.devices[0].me.device, Unlinked(lost.me.device), revoked)

    def _list(self) -> None:
        def listed(version: int) -> None:
            devices = tuple(device.me.device for device in self.devices)
            body = Listed(self.account, version + 1, devices, version.to_bytes(4, "big"))

            def answered(said: Said) -> None:
                if isinstance(said, ListConflict):
                    listed(said.version)
                    return
                assert isinstance(said, Done), said
                self._changing = False
                confirmed = (self.world.now, body.version, frozenset(devices))
                self.town.history.listed.setdefault(self.account, []).append(confirmed)
                # The device that changes the list knows; the others find out.
                self.devices[0].machine.forget_own_devices()

            self.ask(self.devices[0].me.device, body, answered)

        listed(0)

    def block(self, peer: int) -> None:
        """Block somebody, or change one's mind: not before every copy of the last wish has arrived."""
        if peer in self._wishing:
            return
        self._wishing.add(peer)
        on = peer not in self.blocked
        if on:
            self.blocked.add(peer)
            self.town.history.block(self.account, peer)
            self.world.hit("blocked")
        else:
            self.blocked.discard(peer)
            self.town.history.unblocks(self.account, peer)

        def answered(said: Said) -> None:
            if isinstance(said, UnknownDevice):
                # The device that asked was removed meanwhile: the one that came after it asks.
                self.world.later(RETRY_MS, ask)
                return
            assert isinstance(said, Done), said
            if on:
                self.town.history.surely_blocked(self.account, peer)
            else:
                self.town.history.unblocked(self.account, peer)
            self.world.later(SETTLED_MS, lambda: self._wishing.discard(peer))

        def ask() -> None:
            self.ask(self.devices[0].me.device, Blocked(self.account, peer, on), answered)

        self.world.tell(self.handle, f"{'blocks' if on else 'unblocks'} {peer:x}")
        ask()

    def lift_blocks(self) -> None:
        """Hear from everybody again. Who is blocked may wait as for somebody who never comes back."""
        for peer in list(self.blocked):
            self.block(peer)
        if self.blocked:
            self.world.later(RETRY_MS, self.lift_blocks)

    def switch_receipts(self) -> None:
        self.receipts_on = not self.receipts_on
        self.town.history.receipts_off.add(self.account)
        self.is_private, wish = False, self.receipts_on

        def answered(said: Said) -> None:
            self.is_private = said == Done() and not wish and not self.receipts_on

        self.ask(self.devices[0].me.device, ReceiptsSet(self.account, wish), answered)

    # --- a device's day -------------------------------------------------------------------------------

    def act(self, device: Device) -> None:
        """One thing that a device, or the person holding it, does."""
        habits, chance, world = self.town.habits, self.world.chance, self.world
        if self.town.group_life is not None and self.town.group_life.act(device):
            return
        if self.town.schedule_life is not None and self.town.schedule_life.act(device):
            return
        peer = chance.choice([p for p in self.town.people if p is not self]).account
        names, weights = habits.deeds if device.wants_online else habits.deeds_offline
        match chance.choices(names, cum_weights=weights)[0]:
            case "write":
                self._write(device, peer)
            case "read":
                device.read(peer)
            case "cut":
                if device.wire is not None:
                    device.wire.sever(half=world.maybe(0.3))
            case "crash":
                device.crash()
            case "second_link":
                self._come_again(device)
            case "offline":
                self._go_offline(device)
            case "hang":
                device.freeze(world.between(*HUNG_MS))
            case "give_up":
                device.give_up()
            case "block":
                self.block(peer)
            case "receipts":
                self.switch_receipts()
            case "link":
                self.link_device()
            case "remove":
                self.remove_device()
            case "start_over":
                self.start_over()
            case "set_back":
                device.set_back()
            case "verify":
                device.verify(peer)
            case "guess":
                self.town.liar.guess(self)
            case _:
                self.town.liar.lie()

    def _write(self, device: Device, peer: int) -> None:
        lane = Lane.HIGH if self.world.maybe(self.town.habits.high_lane) else Lane.NORMAL
        timer = self.world.between(1_000, 30_000) if self.world.maybe(self.town.habits.timer) else 0
        chance = self.town.timer_chance
        if chance.random() < self.town.habits.set_timer:
            device.set_timer(peer, chance.choice((0, chance.randint(1_000, 20_000))))
        device.write(peer, lane, timer)

    def _come_again(self, device: Device) -> None:
        """Another network: the old connection stays half open, and the server believes in both."""
        if device.wire is not None:
            self.world.hit("two connections of one device")
            device.leave(silently=True)
            device.dial()

    def _go_offline(self, device: Device) -> None:
        device.wants_online = False
        device.leave(silently=self.world.maybe(0.5))
        self.world.tell(device.name, "goes offline")
        self.world.later(self.world.between(1_000, self.town.offline_ms), lambda: self.come_back(device))

    def come_back(self, device: Device) -> None:
        device.wants_online = True
        device.dial()
