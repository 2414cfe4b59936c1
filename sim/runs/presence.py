"""Presence and typing among a few people who come, go, hide, block and type: what each is told, against a plain model.

Knows:   what every person did and when; from that, `Model` says what each may be told.
Touches: the real gateway, desk, loop and presence, in memory. Time moves in steps of 100 ms.

    python -m sim.runs.presence --seeds 200
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random

from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRegistry, MemoryRows
from nightmail.engine.presence import EmbeddedPresence, PresenceSettings
from nightmail.engine.sqlite.presence_file import PresenceFile
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.gateway.session import Session
from nightmail.model.forms import Form
from nightmail.model.ids import SERVER, account_id, account_of, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, Blocked, Known, Linked, Listed, Record, Registered
from nightmail.model.words import Audience, Platform, PresenceState
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import (
    Foreground,
    FromDevice,
    FromServer,
    Hello,
    Peek,
    PersonSeen,
    Ping,
    Seen,
    ShowTo,
    Types,
    Typing,
    Watch,
)

from . import seeded_suite

START = 1_700_000_000_000
STEP_MS, LIFETIME_MS, TELL_MS, TYPING_MS, RECHECK_MS, SAVE_MS = 100, 60_000, 1_000, 3_000, 30_000, 10_000
TURNS = 200
WAITS_MS = (0, 0, 0, 0, 0, 0, 100, 100, 500, 500, 1_000, 3_000, 20_000)
ACCOUNTS = tuple(account_id(name) for name in ("ada", "ben", "cleo"))
DEVICES = tuple(device_id(account, n) for account in ACCOUNTS for n in (1, 2))


class Broken(Exception):
    """A promise about presence did not hold."""


class SimLink:
    """A `Link` that hands over what is sent."""

    def __init__(self, heard: Callable[[FromServer], None]) -> None:
        self._heard = heard
        self.is_open = True

    def send(self, frame: bytes) -> None:
        for item in decode_from_server(frame):
            self._heard(item)

    def close(self, code: int, sentence: str) -> None:
        self.is_open = False

    def cut(self) -> None: ...

    def unsent(self) -> int:
        return 0

    def hold(self) -> None: ...

    def read_on(self) -> None: ...

    def stalled(self) -> bool:
        return False


class Model:
    """What is true, by what people did."""

    def __init__(self) -> None:
        self.now = 0
        self.beats: dict[int, int] = {}
        """Device in the foreground → its last heartbeat."""
        self.last_seen: dict[int, int] = {}
        self.audience = dict.fromkeys(ACCOUNTS, Audience.CONTACTS)
        self.knows: set[tuple[int, int]] = set()
        self.blocks: set[tuple[int, int]] = set()
        self.typed: dict[tuple[int, int], int] = {}
        self.changed: dict[int, int] = {}
        """Account → when others may have begun to see something else of it, or it of others."""
        self.related: dict[int, int] = {}
        """Account → when it changed whom it knows or blocks."""

    def is_online(self, account: int) -> bool:
        return any(account_of(device) == account for device in self.beats)

    def beat(self, device: int) -> None:
        account = account_of(device)
        self.last_seen[account] = START + self.now
        self._flip(account, lambda: self.beats.update({device: self.now}))

    def leave(self, device: int) -> None:
        self._flip(account_of(device), lambda: self.beats.pop(device, None))

    def pass_time(self, ms: int) -> None:
        self.now += ms
        for device, beat in list(self.beats.items()):
            if self.now - beat >= LIFETIME_MS:
                self.leave(device)

    def _flip(self, account: int, do: Callable[[], object]) -> None:
        before = self.is_online(account)
        do()
        if self.is_online(account) != before:
            self.changed[account] = self.now

    def may_see(self, watcher: int, watched: int) -> bool:
        if watcher == watched:
            return True
        both = self.audience[watcher], self.audience[watched]
        shown = both[1] is Audience.EVERYONE or (watched, watcher) in self.knows
        return shown and Audience.NOBODY not in both and (watched, watcher) not in self.blocks

    def person(self, watcher: int, watched: int) -> PersonSeen:
        if not self.may_see(watcher, watched):
            return PersonSeen(watched, PresenceState.UNAVAILABLE, 0)
        if self.is_online(watched):
            return PersonSeen(watched, PresenceState.ONLINE, 0)
        return PersonSeen(watched, PresenceState.OFFLINE, self.last_seen.get(watched, 0))

    def is_settled(self, watcher: int, watched: int) -> bool:
        """Whether the watcher must have been told what is true."""
        newest = max(self.changed.get(watched, -TELL_MS), self.changed.get(watcher, -TELL_MS))
        return self.now - newest >= TELL_MS and self.now - self.related.get(watched, -RECHECK_MS) > RECHECK_MS + TELL_MS

    def passes_typing(self, account: int, to: int) -> bool:
        """Whether the other person must be told; what is counted counts also if nobody may be told."""
        said = self.typed.get((account, to))
        if account == to or (said is not None and self.now - said < TYPING_MS):
            return False
        self.typed[account, to] = self.now
        return self.may_see(to, account) and (to, account) in self.knows and (to, account) not in self.blocks


class Device:
    """One connection after the other, and what was told on the present one."""

    def __init__(self, world: PresenceWorld, number: int) -> None:
        self._world, self.number, self.account = world, number, account_of(number)
        self.link: SimLink | None = None
        self.session: Session | None = None
        self.is_in_foreground = False
        self.told: dict[int, PersonSeen] = {}
        """Watched account → what it was told last."""
        self.told_at: dict[int, int] = {}
        self.peeked: tuple[PersonSeen, ...] = ()
        self.types: list[int] = []

    @property
    def is_connected(self) -> bool:
        return self.link is not None and self.link.is_open

    def connect(self) -> None:
        self.disconnect()
        link = self.link = SimLink(self._heard)
        self.session = self._world.gateway.open(link)
        self.told, self.told_at, self.is_in_foreground = {}, {}, False
        self.say(Hello(1, self.number, _token(self.number), 0, 0, 0))

    def disconnect(self) -> None:
        if self.session is not None and self.is_connected:
            self.session.lost()
        self.session = self.link = None

    def say(self, item: FromDevice) -> None:
        if self.session is not None and self.is_connected:
            self.session.receive(encode([item]), self._world.model.now)
        self._world.settle()

    def _heard(self, item: FromServer) -> None:
        if isinstance(item, Types):
            self.types.append(item.by)
        elif isinstance(item, Seen) and item.ref == 1:
            self.told = {person.account: person for person in item.people}
            self.told_at = {}
        elif isinstance(item, Seen) and item.ref:
            self.peeked = item.people
            # What is watched counts as told by any answer.
            self.told.update({person.account: person for person in item.people if person.account in self.told})
        elif isinstance(item, Seen):
            self._heard_change(item.people[0])

    def _heard_change(self, person: PersonSeen) -> None:
        account, now = person.account, self._world.model.now
        if now - self.told_at.get(account, -TELL_MS) < TELL_MS:
            raise Broken(f"told twice of {account:x} within a second")
        if self.told.get(account) == person:
            raise Broken(f"told of {account:x} although nothing had changed")
        self.told[account], self.told_at[account] = person, now


class PresenceWorld:
    def __init__(self, seed: int) -> None:
        self.chance, self.model = Random(seed), Model()
        self._soon = False
        self._file = PresenceFile(":memory:")
        self._desk = LoopDesk(lambda size: b"\1" * size, self._pace)
        self._loop = Loop(MemoryLog(), MemoryRows(), self._clock, self._desk.on_effects, pace=self._pace)
        self._loop.recover()
        self._open()
        while not self._loop.adopt(2, FoldLimits()):
            pass
        for name in ("ada", "ben", "cleo"):
            self._register(name)
        self.devices = [Device(self, number) for number in DEVICES]

    def _pace(self) -> int:
        return self.model.now

    def _clock(self) -> int:
        return START + self.model.now

    def _open(self) -> None:
        self._presence = EmbeddedPresence(
            self._file, PresenceSettings(), post=lambda callback: callback(), execute=lambda job: job(),
            clock=self._clock,
        )  # fmt: skip
        self.gateway = Gateway(
            self._desk, MemoryRegistry(), Form(), GatewayLimits(), self._clock, self._pace, "node", self._come_soon,
            self.chance.random, (self._presence, PresenceLimits()),
        )  # fmt: skip
        self._desk.attend(self._loop, self.gateway)

    def _come_soon(self) -> None:
        self._soon = True

    def _register(self, name: str) -> None:
        account = account_id(name)
        first, second = device_id(account, 1), device_id(account, 2)
        self._fold(SERVER, Registered(account, name, 7, sha256(_token(first)).digest(), "phone", Platform.CLI))
        self._fold(first, Linked(account, 8, sha256(_token(second)).digest(), "laptop", Platform.CLI))
        self._fold(first, Listed(account, 2, (first, second), b""))

    def _fold(self, by: int, body: AnyBody) -> None:
        self._loop.submit(Record(by, 0, body))
        self.settle()

    def settle(self) -> None:
        self._loop.flush()
        while self._soon:
            self._soon = False
            self.gateway.flush()
            self._loop.flush()

    # --- what happens ---------------------------------------------------------------------------

    def run(self) -> None:
        acts: dict[Callable[[Device], None], int] = {
            self._connect: 4, self._disconnect: 1, self._foreground: 4, self._ping: 6, self._watch: 3, self._peek: 2,
            self._type: 6, self._show: 2, self._block: 1, self._know: 2, self._restart: 1,
        }  # fmt: skip
        for device in self.devices:
            self._know(device)
        for _ in range(TURNS):
            (act,) = self.chance.choices(list(acts), list(acts.values()))
            act(self.chance.choice(self.devices))
            self._check()
            self._wait(self.chance.choice(WAITS_MS))

    def _wait(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.model.pass_time(STEP_MS)
            self._loop.tick()
            self._desk.tick()
            self.gateway.tick(self.model.now)
            self.settle()
            self._check()

    def _connect(self, device: Device) -> None:
        if device.is_connected and self.chance.random() < 0.9:
            return
        self.model.leave(device.number)
        device.connect()

    def _disconnect(self, device: Device) -> None:
        self.model.leave(device.number)
        device.disconnect()
        self.settle()

    def _foreground(self, device: Device) -> None:
        if device.is_connected:
            device.is_in_foreground = self.chance.random() < 0.8
            if device.is_in_foreground:
                self.model.beat(device.number)
            else:
                self.model.leave(device.number)
            device.say(Foreground(device.is_in_foreground))

    def _ping(self, _device: Device) -> None:
        for device in self.devices:
            if device.is_connected and self.chance.random() < 0.8:
                if device.is_in_foreground:
                    self.model.beat(device.number)
                device.say(Ping(1))

    def _watch(self, device: Device) -> None:
        device.told = {}
        device.say(Watch(1, tuple(account for account in ACCOUNTS if self.chance.random() < 0.7)))

    def _peek(self, device: Device) -> None:
        device.peeked = ()
        device.say(Peek(2, ACCOUNTS))
        true = tuple(self.model.person(device.account, account) for account in ACCOUNTS)
        if device.is_connected and device.peeked != true:
            raise Broken(f"{device.number:x} is answered {device.peeked}, but {true} is true")

    def _type(self, device: Device) -> None:
        """One device types, and then perhaps the other one of the same person."""
        to = self.chance.choice(ACCOUNTS)
        for each in self.devices:
            if each is device or (each.account == device.account and self.chance.random() < 0.7):
                self._say_typing(each, to)

    def _say_typing(self, device: Device, to: int) -> None:
        if not device.is_connected:
            return
        is_passed = self.model.passes_typing(device.account, to)
        device.say(Typing(to))
        for other in self.devices:
            reached = is_passed and other.account == to and other.is_connected and other.is_in_foreground
            if other.types != ([device.account] if reached else []):
                raise Broken(f"{other.number:x} hears that {other.types} type; {device.account:x} does, to {to:x}")
            other.types.clear()

    def _show(self, device: Device) -> None:
        if device.is_connected:
            audience = self.chance.choice(tuple(Audience))
            self.model.audience[device.account] = audience
            self.model.changed[device.account] = self.model.now
            device.say(ShowTo(3, audience))

    def _block(self, device: Device) -> None:
        self._relate(device, self.model.blocks, lambda peer, on: Blocked(device.account, peer, on))

    def _know(self, device: Device) -> None:
        self._relate(device, self.model.knows, lambda peer, on: Known(device.account, peer, on))

    def _relate(self, device: Device, pairs: set[tuple[int, int]], record: Callable[[int, bool], AnyBody]) -> None:
        peer = self.chance.choice([account for account in ACCOUNTS if account != device.account])
        on = self.chance.random() < (0.3 if pairs is self.model.blocks else 0.8)
        if on:
            pairs.add((device.account, peer))
        else:
            pairs.discard((device.account, peer))
        self.model.related[device.account] = self.model.now
        self._fold(device.number, record(peer, on))

    def _restart(self, _device: Device) -> None:
        """The server stops, or it is killed after everything was stored: what it stored is there again."""
        if self.chance.random() < 0.7:
            return
        if self.chance.random() < 0.5:
            self._presence.close()
        else:
            self._wait(SAVE_MS)
        for device in self.devices:
            self.model.leave(device.number)
            device.session = device.link = None
        # The limit on typing is in memory only.
        self.model.typed.clear()
        self._open()

    # --- what must be so ------------------------------------------------------------------------

    def _check(self) -> None:
        for device in self.devices:
            if not device.is_connected:
                continue
            for account, person in device.told.items():
                true = self.model.person(device.account, account)
                if person != true and self.model.is_settled(device.account, account):
                    raise Broken(f"{device.number:x} was told {person}, but {true} is true")


def _token(device: int) -> bytes:
    return device.to_bytes(8, "big") * 4


def run(seed: int) -> None:
    PresenceWorld(seed).run()


if __name__ == "__main__":
    seeded_suite.main("presence", __doc__, run)
