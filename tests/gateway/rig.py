"""The real gateway over the real heart, with links that only collect what is sent, and time that a test moves.

Knows:   what each device was sent, frame by frame.
Never:   moves by itself: `turn` is the end of one turn of an event loop, `wait` lets time pass.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryRegistry
from nightmail.engine.ports import Desk
from nightmail.engine.presence import EmbeddedPresence, PresenceSettings
from nightmail.engine.sqlite.presence_file import PresenceFile
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.gateway.session import Session
from nightmail.model.forms import Form
from nightmail.model.ids import SERVER, account_id, account_of, device_id
from nightmail.model.records import (
    Acked,
    AnyBody,
    Envelope,
    FoldRaised,
    Known,
    Published,
    ReceiptsAcked,
    Record,
    Registered,
    Sent,
)
from nightmail.model.rows import Entry
from nightmail.model.words import Kind, Lane, Platform
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import Ask, Entries, FromDevice, FromServer, Goodbye, Hello, SaidByDevices
from sim.judges.strict import StrictState
from tests.engine.rig import START, HeldLog, HeldRows

ADA, BEN = account_id("ada"), account_id("ben")
PHONE, TABLET = device_id(ADA, 1), device_id(BEN, 1)
"""Ada's one device, and Ben's."""
TICK_MS = 20
TURNS = 10_000
"""More turns in a row than anything needs that comes to rest."""


def token_of(device: int) -> bytes:
    return device.to_bytes(8, "big") * 4


def a_message(
    n: int = 1, text: bytes = b"hello", *, by: int = PHONE, to: int = TABLET, lane: Lane = Lane.NORMAL,
    life_ms: int = 0,
) -> Sent:  # fmt: skip
    return Sent(
        to=account_of(to),
        lane=lane,
        n=n,
        floor=max(1, n - 255),
        seen=0,
        id=f"{by:x}:{START}:{n:05d}:x{lane}",
        tag=bytes(16),
        kind=Kind.TEXT,
        of=None,
        life_ms=life_ms,
        list_version=1,
        envelopes=(Envelope(to, 7, text),),
        own_envelopes=(),
    )


def as_entry(sent: Sent, at: int, by: int = PHONE) -> Entry:
    """What a message is in the recipient's mailbox."""
    (envelope,) = sent.envelopes
    s = sent
    return Entry(by, s.to, s.n, s.id, s.tag, s.kind, s.of, at, s.life_ms, envelope.ciphertext)


def some_keys(ids: int, kem_ids: int, first: int = 1) -> Published:
    """Of the form that they must have."""
    return Published(
        registration=7,
        identity=bytes(128),
        signed=first.to_bytes(4, "big").ljust(100, b"s"),
        last_resort=(b"\1" + first.to_bytes(4, "big")).ljust(1_637, b"l"),
        one_time=tuple(n.to_bytes(4, "big").ljust(36, b"o") for n in range(first, first + ids)),
        one_time_kem=tuple((b"\0" + n.to_bytes(4, "big")).ljust(1_637, b"k") for n in range(first, first + kem_ids)),
    )


class HeldLink:
    """A `Link` that keeps what it is given."""

    def __init__(self) -> None:
        self.frames: list[list[FromServer]] = []
        self.sizes: list[int] = []
        self.closed: tuple[int, str] | None = None
        self.was_cut = False
        self.unsent_bytes = 0
        self.is_stalled = False
        self.held = False
        self.on_frame: Callable[[list[FromServer]], None] = lambda _: None

    def send(self, frame: bytes) -> None:
        assert self.closed is None, "nothing follows a close"
        items = decode_from_server(frame)
        self.frames.append(items)
        self.sizes.append(len(frame))
        self.on_frame(items)

    def close(self, code: int, sentence: str) -> None:
        assert self.closed is None, "closed once"
        self.closed = code, sentence

    def cut(self) -> None:
        self.was_cut = True

    def unsent(self) -> int:
        return self.unsent_bytes

    def hold(self) -> None:
        self.held = True

    def read_on(self) -> None:
        self.held = False

    def stalled(self) -> bool:
        return self.is_stalled

    def take(self) -> list[FromServer]:
        """Everything since the last look, whatever the frames were."""
        items = [item for frame in self.frames for item in frame]
        self.frames.clear()
        return items


class Phone:
    """A device at the other end of a link."""

    def __init__(self, town: Town, device: int) -> None:
        self.town, self.device = town, device
        self.link = HeldLink()
        self.session: Session = town.gateway.open(self.link)
        self._ref = 0

    def hello(
        self, *, token: bytes | None = None, normal: int = 0, high: int = 0, receipts: int = 0, version: int = 1
    ) -> None:
        token = token_of(self.device) if token is None else token
        self.say_raw(encode([Hello(version, self.device, token, normal, high, receipts, "a test")]))

    def say_raw(self, frame: bytes) -> None:
        self.session.receive(frame, self.town.pace)

    def say(self, *items: FromDevice) -> None:
        self.say_raw(encode(items))

    def ask(self, *bodies: SaidByDevices) -> None:
        """Each under a number of its own, from 1 on."""
        asks: list[Ask] = []
        for body in bodies:
            self._ref += 1
            asks.append(Ask(self._ref, body))
        self.say(*asks)

    def ack(self, upto: int, lane: Lane = Lane.NORMAL) -> None:
        self.say(Ask(0, Acked(lane, upto)))

    def ack_changes(self, upto: int) -> None:
        self.say(Ask(0, ReceiptsAcked(upto)))

    def take(self) -> list[FromServer]:
        """Let the turn end; then everything that came."""
        self.town.turn()
        return self.link.take()

    def numbers(self, lane: Lane = Lane.NORMAL) -> list[int]:
        """The sequence numbers that came in one lane since the last look; the rest is dropped."""
        return numbers_of(self.take(), lane)

    @property
    def goodbye(self) -> Goodbye | None:
        for items in self.link.frames:
            for item in items:
                if isinstance(item, Goodbye):
                    return item
        return None


def numbers_of(items: list[FromServer], lane: Lane = Lane.NORMAL) -> list[int]:
    found: list[int] = []
    for item in items:
        if isinstance(item, Entries) and item.lane == lane:
            found += range(item.first, item.first + len(item.entries))
    return found


class Town:
    """A heart, a gateway, and hands to drive both with."""

    def __init__(
        self,
        limits: GatewayLimits | None = None,
        *,
        log: HeldLog | None = None,
        rows: HeldRows | None = None,
        wrap: Callable[[Desk], Desk] = lambda desk: desk,
        presence: PresenceLimits | None = None,
        groups: GroupLimits | None = None,
        make_desk: type[LoopDesk] = LoopDesk,
        new_state: Callable[[], ShardState] = StrictState,
    ) -> None:
        self.pace = 1_000
        """Milliseconds that never jump."""
        self.chance = 0.5
        self._soon = False
        self.log, self.rows = log or HeldLog(), rows or HeldRows()
        self.desk = make_desk(lambda size: bytes(size - 1) + b"\1", lambda: self.pace)
        self.loop = Loop(
            self.log, self.rows, lambda: self.clock, self.desk.on_effects, new_state=new_state,
            pace=lambda: self.pace,
        )  # fmt: skip
        self.registry = MemoryRegistry()
        self.presence_file = PresenceFile(":memory:")
        self.presence = EmbeddedPresence(
            self.presence_file, PresenceSettings(), post=lambda callback: callback(), execute=lambda job: job(),
            clock=lambda: self.clock,
        )  # fmt: skip
        self.gateway = Gateway(
            wrap(self.desk), self.registry, Form(), limits or GatewayLimits(), lambda: self.clock, lambda: self.pace,
            "node", self._come_soon, lambda: self.chance, (self.presence, presence or PresenceLimits()),
            groups,
        )  # fmt: skip
        self.desk.attend(self.loop, self.gateway)
        self.loop.recover()

    @property
    def clock(self) -> int:
        return START + self.pace

    def _come_soon(self) -> None:
        self._soon = True

    # --- time ---------------------------------------------------------------------------------

    def turn_once(self) -> bool:
        """One turn of the event loop, if anybody asked for it."""
        asked, self._soon = self._soon, False
        if asked:
            self.gateway.flush()
            self.loop.flush()
        return asked

    def turn(self) -> None:
        """Until nobody asks for another turn."""
        for _ in range(TURNS):
            if not self.turn_once():
                return
        raise AssertionError("it never comes to rest")

    def wait(self, ms: int) -> None:
        end = self.pace + ms
        while self.pace < end:
            self.pace = min(end, self.pace + TICK_MS)
            self.loop.tick()
            self.desk.tick()
            self.gateway.tick(self.pace)
            self.turn()

    # --- people -------------------------------------------------------------------------------

    def fold(self, by: int, *bodies: AnyBody) -> None:
        """Past the gateway."""
        for body in bodies:
            self.loop.submit(Record(by, 0, body))
        self.loop.flush()

    def register(self, *handles: str, with_keys: bool = True) -> None:
        """Whoever has no keys is told so."""
        for handle in handles:
            account = account_id(handle)
            token = sha256(token_of(device_id(account, 1))).digest()
            self.fold(SERVER, Registered(account, handle, 7, token, "phone", Platform.CLI))
            if with_keys:
                self.fold(device_id(account, 1), some_keys(20, 5))

    def stranger(self, device: int = TABLET) -> Phone:
        """A connection that has said nothing yet."""
        return Phone(self, device)

    def connect(self, device: int = TABLET, *, normal: int = 0, high: int = 0, receipts: int = 0) -> Phone:
        """A device that is live, and caught up if it may have everything at once; nothing of that is left to see."""
        phone = Phone(self, device)
        phone.hello(normal=normal, high=high, receipts=receipts)
        phone.take()
        return phone

    def write(self, count: int, text: bytes = b"hello", *, first: int = 1, lane: Lane = Lane.NORMAL) -> list[Sent]:
        """Ada writes to Ben, past the gateway."""
        sent = [a_message(n, text, lane=lane) for n in range(first, first + count)]
        self.fold(PHONE, *sent)
        return sent


def a_town(limits: GatewayLimits | None = None) -> Town:
    """Ada and Ben have registered."""
    town = Town(limits)
    town.register("ada", "ben")
    return town


def befriend(town: Town) -> None:
    """Ada and Ben know each other."""
    town.fold(SERVER, FoldRaised(NEWEST_FOLD))
    town.fold(PHONE, Known(ADA, BEN, True))
    town.fold(TABLET, Known(BEN, ADA, True))


def people(town: Town, count: int) -> list[int]:
    """Devices of so many people; each has a message from Ada waiting."""
    names = [f"person {n}" for n in range(count)]
    town.register(*names)
    devices = [device_id(account_id(name), 1) for name in names]
    for device in devices:
        town.fold(PHONE, a_message(1, to=device))
    return devices


def shapes(frames: list[list[FromServer]]) -> list[list[str]]:
    """What each frame brings, in short."""
    return [[shape(item) for item in frame] for frame in frames]


def shape(item: FromServer) -> str:
    if isinstance(item, Entries):
        return f"{item.lane.name.lower()} {item.first}-{item.first + len(item.entries) - 1}"
    return type(item).__name__


def greeted(town: Town, *, normal: int = 0) -> Phone:
    """Ben, who has said hello; what that brings is still to be seen."""
    ben = town.stranger()
    ben.hello(normal=normal)
    return ben
