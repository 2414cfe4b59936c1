"""A machine on a table: a test plays the server, word for word, with the real codecs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from nightmail.client.events import Event
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.machine import Machine
from nightmail.client.machine.turn import Turn
from nightmail.client.messages import Message
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Identity
from nightmail.client.trust.sealer import Sealer
from nightmail.model.answers import Accepted, Said
from nightmail.model.ids import account_id, device_id
from nightmail.model.records import Sent, Voided
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import decode_from_device, decode_hello, encode
from nightmail.wire.items import (
    VERSION,
    Answered,
    Ask,
    Devices,
    Entries,
    FromDevice,
    FromServer,
    Hello,
    Look,
    Ping,
    Pong,
    SaidByDevices,
    Welcome,
)
from sim.world.opaque import Opaque
from tests.e2ee.devices import Seeded

START = 1_700_000_000_000
ALICE, BOB = account_id("alice"), account_id("bob")
PHONE, LAPTOP, TABLET = device_id(ALICE, 1), device_id(ALICE, 2), device_id(BOB, 1)
ME = Identity("alice", ALICE, PHONE, 7, b"t" * 32)

STEADY = ClientLimits(retry_jitter=0)
"""The schedule to the millisecond."""

B = TypeVar("B")


class Script:
    """Alice's phone. `said` holds what it said since the last look; answers are given by the test."""

    def __init__(
        self, *, limits: ClientLimits | None = None, sealer: Sealer | None = None, store: MemoryStore | None = None
    ) -> None:
        self.now = START
        self.limits = limits or ClientLimits()
        self.store = store or MemoryStore()
        self.machine = Machine(self.store, ME, self.limits, Random(1), Seeded(1), lambda *_: sealer or Opaque())
        self.events: list[Event] = []
        self.hello: Hello | None = None
        self.lists = {ALICE: (1, {PHONE: 7}), BOB: (1, {TABLET: 7})}
        """What a `Look` is answered with, by itself."""
        self.pongs = True
        """Whether pings are answered, by themselves."""
        self._greeting = False
        self._frames: list[bytes] = []
        self._said: list[FromDevice] = []
        self.asked: Sequence[Ask] = ()

    # --- the connection -------------------------------------------------------------------------

    def connect(self, *, window: int = 256, frame_bytes: int = 1 << 20) -> list[SaidByDevices]:
        """Say Welcome; what the device says then."""
        self._greeting = True
        self.machine.connected(self.now)
        assert self.take() == []
        self.say(Welcome(VERSION, self.now, "here", 30_000, window, 65_536, frame_bytes))
        return self.bodies()

    def lose(self) -> None:
        self.machine.lost(self.now)
        self._frames.clear()
        self.take()

    def wait(self, ms: int) -> None:
        """Let time pass, as a driver would: tick at every deadline on the way."""
        until = self.now + ms
        while (due := self.turn().deadline) is not None and due <= until:
            self.now = max(self.now, due)
            self.machine.tick(self.now)
            self._said += self.take()
        self.now = until

    # --- saying and hearing ---------------------------------------------------------------------

    def say(self, *items: FromServer) -> None:
        self.machine.receive(encode(items), self.now)

    def turn(self) -> Turn:
        """One turn; its frames and events are kept for the test."""
        turn = self.machine.turn()
        self._frames += turn.frames
        self.events += turn.events
        return turn

    @property
    def hang_up(self) -> str | None:
        return self.turn().hang_up

    def frames(self) -> list[bytes]:
        """What is to be written now."""
        self.turn()
        frames, self._frames = self._frames, []
        return frames

    def take(self) -> list[FromDevice]:
        """What it says now; questions for lists are answered on the way."""
        said: list[FromDevice] = []
        while frames := self.frames():
            for frame in frames:
                if self._greeting:
                    self._greeting = False
                    self.hello = decode_hello(frame)
                    continue
                for item in decode_from_device(frame):
                    if isinstance(item, Look) and item.account in self.lists:
                        version, devices = self.lists[item.account]
                        self.say(Devices(item.ref, item.account, version, devices, b""))
                    elif isinstance(item, Ping) and self.pongs:
                        self.say(Pong(item.nonce, self.now))
                    else:
                        said.append(item)
        return said

    def asks(self) -> list[Ask]:
        said, self._said = [*self._said, *self.take()], []
        return [item for item in said if isinstance(item, Ask)]

    def bodies(self) -> list[SaidByDevices]:
        self.asked = self.asks()
        return [ask.body for ask in self.asked]

    def answer(self, *said: Said) -> list[SaidByDevices]:
        """Answer what was asked last, in order; what the device says to that."""
        for ask, answer in zip(self.asked, said, strict=False):
            self.say(Answered(ask.ref, answer))
        return self.bodies()

    def accept(self) -> list[SaidByDevices]:
        """Accept everything that was asked last."""
        return self.answer(*[accepted(ask.body) for ask in self.asked])

    # --- the person -----------------------------------------------------------------------------

    def write(self, body: bytes = b"hello", lane: Lane = Lane.NORMAL) -> Message:
        return self.machine.compose(BOB, body, self.now, lane=lane)

    def told(self, kind: type[B]) -> list[B]:
        self.turn()
        return [event for event in self.events if isinstance(event, kind)]

    def state(self, message: Message) -> tuple[str, str]:
        found = self.store.message(message.id)
        assert found is not None
        return found.state.name.lower(), found.reason


def connected(*, window: int = 256) -> Script:
    script = Script(limits=STEADY)
    script.connect(window=window)
    return script


def accepted(body: SaidByDevices) -> Accepted:
    assert isinstance(body, Sent | Voided), body
    if isinstance(body, Voided):
        return Accepted(body.id, b"", START + 1_000 + body.n, 0)
    return Accepted(body.id, body.tag, START + 1_000 + body.n, body.list_version)


def numbers(bodies: Sequence[SaidByDevices]) -> list[int]:
    return [body.n for body in bodies if isinstance(body, Sent | Voided)]


def an_entry(n: int, *, of: str | None = None, by: int = TABLET, to: int = ALICE, body: bytes = b"") -> Entry:
    return Entry(by, to, n, f"{by:x}:{START}:{n:05d}:x", b"t" * 16, Kind.TEXT, of, START + n, 0, body or b"body %d" % n)


def entries(first: int, *items: Entry, lane: Lane = Lane.NORMAL) -> Entries:
    return Entries(lane, first, items)
