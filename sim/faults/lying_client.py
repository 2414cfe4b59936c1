"""Somebody whose software is broken, or worse: raw frames that say what is not so.

Every lie must be refused in the way that the protocol names, and harm nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from nightmail.client.store.rows import Identity
from nightmail.model.answers import Accepted, Joined, Said, Settled
from nightmail.model.ids import SERVER, MessageId, account_id
from nightmail.model.records import (
    Acked,
    Blocked,
    Closed,
    Envelope,
    Linked,
    Listed,
    ReceiptsAcked,
    Registered,
    Sent,
    Unlinked,
    Voided,
)
from nightmail.model.refusals import (
    AckAboveHead,
    IdReused,
    Malformed,
    NotAllowed,
    OutOfOrder,
    PinLocked,
    PinWrong,
    ShareFull,
    StaleDevices,
    UnknownRecipient,
)
from nightmail.model.words import Kind, Lane, Platform
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import (
    VERSION,
    Answered,
    Ask,
    Devices,
    FromDevice,
    Goodbye,
    Hello,
    Look,
    Ping,
    Receipts,
    SaidByDevices,
    Welcome,
)
from sim.world.network import Wire
from sim.world.people import Person

if TYPE_CHECKING:
    from sim.world.town import Town

FAR = 1_000_000
Expected: TypeAlias = tuple[type[Said], ...]
AGAIN_MS = 5_000
FIRST = {
    "silence": CloseCode.HELLO_TIMEOUT,
    "noise": CloseCode.MALFORMED,
    "a question": CloseCode.MALFORMED,
    "another's token": CloseCode.UNAUTHORIZED,
    "another version": CloseCode.UNSUPPORTED,
    "numbers out of range": CloseCode.MALFORMED,
    "two Hellos": CloseCode.OUT_OF_STATE,
}
"""What a stranger may say first, and how that ends."""
USUAL = frozenset({CloseCode.BUSY, CloseCode.DRAINING, CloseCode.DISPLACED, CloseCode.SILENT, 1006})
"""How any connection may end."""


class Liar:
    def __init__(self, town: Town, handle: str) -> None:
        self.town, self.world, self.handle = town, town.world, handle
        self.me: Identity | None = None
        self._wire: Wire | None = None
        self._first = ""
        self._live = False
        self._expected: set[int] = set()
        """How this connection may end."""
        self._asked: dict[int, tuple[SaidByDevices, Expected]] = {}
        self._ref = 0
        self._last: dict[int, int] = {}
        """Victim → the last number that was taken."""
        self._taken: list[Sent] = []
        self._guessing = False

    def register(self) -> None:
        person = Person(self.town, self.handle)
        token = self.world.chance.randbytes(32)
        body = Registered(person.account, self.handle, 1, sha256(token).digest(), "a clone", Platform.CLI)

        def joined(said: Said) -> None:
            assert isinstance(said, Joined), said
            self.me = Identity(self.handle, person.account, said.device, 1, token)
            self.town.history.liars.add(said.device)

        person.ask(SERVER, body, joined)

    # --- somebody else's PIN ----------------------------------------------------------------------

    def guess(self, victim: Person) -> None:
        """Try PINs until no more are compared. The owner's own use of the lock makes a series void."""
        if self._guessing or not victim.locked:
            return
        self._guessing = True
        most, before, wrong = self.town.limits.fold.pin_tries, victim.unlocked, 0
        token = self.world.chance.randbytes(32)
        number = self.world.between(1, 1_000)

        def attempt() -> None:
            pin = self.world.chance.randbytes(32)
            verified = self.world.maybe(0.5)
            body = Registered(victim.account, victim.handle, number, token, "a thief", Platform.CLI, verified, pin)
            self.town.backend.ask(SERVER, body, answered)

        def answered(said: Said) -> None:
            nonlocal wrong
            if isinstance(said, PinWrong):
                wrong += 1
                if wrong >= most and victim.unlocked == before:
                    raise self.town.history.broke("PINs cannot be guessed", f"{victim.handle}: {wrong} tries in a row")
                attempt()
            elif isinstance(said, PinLocked):
                self.world.hit("no more PINs")
            elif not getattr(said, "retry", False):
                raise self.town.history.broke("a wrong PIN opens nothing", f"{victim.handle}: {said!r}")

        attempt()
        self.world.later(AGAIN_MS, self._guessed)

    def _guessed(self) -> None:
        self._guessing = False

    # --- the connection ---------------------------------------------------------------------------

    def lie(self) -> None:
        if self.me is None:
            return
        if self._wire is None:
            self._dial()
        elif self._live:
            self._tell_a_lie(self.me)

    def _dial(self) -> None:
        world, backend = self.world, self.town.backend
        self._wire = Wire(world, self, self.town.link_delay, self.town.socket_room)
        self._expected = set(USUAL)
        address = world.chance.choice(backend.addresses)
        self._wire.dial(lambda: backend.front(address))

    def opened(self, wire: Wire) -> None:
        self._live, self._asked = False, {}
        # A Hello cannot be checked in time while its shard has no owner, or while its row cannot be read.
        self._expected = {*USUAL, CloseCode.HELLO_TIMEOUT}
        if self.town.mode == "cluster":
            self._expected.add(CloseCode.UNAUTHORIZED)  # by an owner that is behind
        if self.town.healing or self.world.maybe(0.7):
            self._first = ""
            self._say(self._hello())
        else:
            self._first = self.world.chance.choice(list(FIRST))
            self._expected.add(FIRST[self._first])
            self._begin_badly(wire)

    def _hello(self, token: bytes | None = None, version: int = VERSION, normal: int = 0) -> Hello:
        assert self.me is not None
        return Hello(version, self.me.device, self.me.token if token is None else token, normal, 0, 0, "liar")

    def _begin_badly(self, wire: Wire) -> None:
        match self._first:
            case "noise":
                wire.say(self.world.chance.randbytes(self.world.between(0, 60)))
            case "a question":
                self._say(Ask(1, Acked(Lane.NORMAL, 1)))
            case "another's token":
                self._say(self._hello(token=b"guess"))
            case "another version":
                self._say(self._hello(version=99))
            case "numbers out of range":
                self._say(self._hello(normal=-1))
            case "two Hellos":
                self._say(self._hello(), self._hello())
                self._expected.add(CloseCode.MALFORMED)
                wire.say(encode([self._hello()]))
            case _:
                pass

    def refused(self, wire: Wire, retry_ms: int) -> None:
        self._wire = None

    def ended(self, wire: Wire, code: int) -> None:
        self._wire, self._live = None, False
        if code not in self._expected:
            raise self.town.history.broke("lies are refused", f"{self.handle} began with {self._first!r}, got {code}")
        self.world.hit(f"liar sent away: {code}")

    def heal(self) -> None:
        """Take the receipts, so that nothing is left of it; again and again, because it has no timers of its own."""
        if self.me is not None:
            if self._wire is not None:
                self._wire.leave(silently=False)
            self._dial()
            self.world.later(AGAIN_MS, self.heal)

    def heard(self, wire: Wire, frame: bytes) -> None:
        for item in decode_from_server(frame):
            match item:
                case Welcome():
                    if self._first not in ("", "two Hellos"):
                        raise self.town.history.broke("lies are refused", f"{self.handle} was let in: {self._first!r}")
                    self._live = True
                case Answered():
                    self._answered(item)
                case Devices():
                    self._attack(item)
                case Receipts():
                    self._say(Ask(0, ReceiptsAcked(item.receipts[-1].seq)))
                case Goodbye():
                    self._expected.add(item.code)
                    if item.code in (CloseCode.UNAUTHORIZED, CloseCode.REMOVED):
                        raise self.town.history.broke("lies are refused", f"{self.handle} is no more: {item}")
                case _:
                    pass

    def _say(self, *items: FromDevice) -> None:
        if self._wire is not None:
            self._wire.say(encode(items))

    # --- lies -------------------------------------------------------------------------------------

    def _tell_a_lie(self, me: Identity) -> None:
        chance = self.world.chance
        victim = chance.choice(self.town.people)
        if not victim.devices:
            return
        device, lane = victim.devices[0].me.device, chance.choice(list(Lane))
        lies: list[Callable[[], None]] = [
            lambda: self._claim(Acked(lane, FAR), AckAboveHead),
            lambda: self._claim(ReceiptsAcked(FAR), AckAboveHead),
            lambda: self._claim(Closed(victim.account), NotAllowed),
            lambda: self._claim(Unlinked(device), NotAllowed),
            lambda: self._claim(Blocked(victim.account, me.account, True), NotAllowed),
            lambda: self._claim(Listed(victim.account, 99, (me.device,), b""), NotAllowed),
            lambda: self._claim(Linked(victim.account, 7, bytes(32), "spy", Platform.CLI), NotAllowed),
            lambda: self._claim(self._message(victim.account, by=device), Malformed),
            lambda: self._claim(Voided(victim.account, lane, FAR, FAR, self._id(me.device)), OutOfOrder),
            lambda: self._claim(self._message(account_id("nobody")), UnknownRecipient),
            lambda: self._claim(self._message(victim.account), StaleDevices, IdReused, Settled),
            lambda: self._say(Look(1, victim.account)),
            self._reuse_a_number,
            self._flood,
            self._stammer,
        ]
        chance.choice(lies)()

    def _claim(self, body: SaidByDevices, *expected: type[Said]) -> None:
        self._ref += 1
        self._asked[self._ref] = body, expected
        self._say(Ask(self._ref, body))

    def _answered(self, item: Answered) -> None:
        body, expected = self._asked.pop(item.ref, (None, ()))
        said = item.said
        if isinstance(said, expected):
            self.world.hit(f"a lie was answered {type(said).__name__}")
        elif not getattr(said, "retry", False) and body is not None:
            raise self.town.history.broke("lies are refused", f"{self.handle} said {body!r} and was told {said!r}")
        if isinstance(body, Sent) and body.n > self._last.get(body.to, 0):
            if isinstance(said, Accepted):
                self._taken.append(body)
                if self.town.has_small_shares and body.envelopes:
                    self._say(Look(1, body.to))  # As much as it may: until its share is full.
            elif isinstance(said, ShareFull):
                self.world.hit("a stranger's share was full")
            if isinstance(said, Accepted | IdReused | Settled):
                self._last[body.to] = body.n  # Its answer may have been lost before.

    def _id(self, device: int) -> str:
        return str(MessageId(self.world.now, self._ref, device, f"{self.world.chance.getrandbits(20):x}"))

    def _message(self, to: int, by: int = 0, devices: dict[int, int] | None = None, version: int = 0) -> Sent:
        assert self.me is not None
        n = self._last.get(to, 0) + 1
        envelopes = tuple(Envelope(d, r, bytes(40)) for d, r in (devices or {}).items())
        own = self.town.history.messages
        of = self.world.chance.choice(list(own)) if own and devices else None
        return Sent(
            to=to, lane=Lane.NORMAL, n=n, floor=n, seen=0, id=self._id(by or self.me.device), tag=bytes(16),
            kind=Kind.TEXT, of=of, life_ms=0, list_version=version, envelopes=envelopes, own_envelopes=(),
        )  # fmt: skip

    def _attack(self, item: Devices) -> None:
        """Well formed, for the right devices, under the id of somebody else's message: nobody may show it."""
        if item.version and not self.town.healing:
            body = self._message(item.account, devices=item.devices, version=item.version)
            self.town.history.attacks.update(item.devices.keys())
            self._claim(body, Accepted, StaleDevices, IdReused, Settled)

    def _reuse_a_number(self) -> None:
        """Another content under the id and number of a message that was accepted."""
        if self._taken:
            first = self.world.chance.choice(self._taken[-3:])
            body = Sent(
                to=first.to, lane=first.lane, n=first.n, floor=first.n, seen=0, id=first.id, tag=b"something else..",
                kind=Kind.TEXT, of=None, life_ms=0, list_version=first.list_version, envelopes=(), own_envelopes=(),
            )  # fmt: skip
            self._claim(body, IdReused, Settled)

    def _flood(self) -> None:
        """More than any honest client says."""
        self._expected.add(CloseCode.TOO_FAST)
        self._say(*[Ping(nonce) for nonce in range(600)])

    def _stammer(self) -> None:
        """No frame at all, or a second Hello."""
        self._expected |= {CloseCode.MALFORMED, CloseCode.OUT_OF_STATE}
        if self._wire is not None and self.world.maybe(0.5):
            self._wire.say(self.world.chance.randbytes(30))
        else:
            self._say(self._hello())
