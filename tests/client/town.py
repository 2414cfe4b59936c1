"""The real heart with a tiny session in front of it, and devices whose wires a test can cut.

Knows:   the loop, the desk and the wire; nothing here sleeps, and nothing happens unless a test says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from nightmail.client.events import Event
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.machine import Machine
from nightmail.client.machine.parts import MakeSealer, build_sealer
from nightmail.client.messages import Message
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.own_devices.pairing import ERRAND
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Identity, OwnKeys
from nightmail.client.trust.sealer import Sealer
from nightmail.core.state import NEWEST_FOLD, ShardState
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.state import encode_keys
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.engine.ports import REF_BITS, Offered
from nightmail.model.answers import Joined, Said
from nightmail.model.forms import Form
from nightmail.model.ids import SERVER, account_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Acked, AnyBody, Linked, Listed, Record, Registered
from nightmail.model.rows import Account, Gap, PendingReceipt
from nightmail.model.words import Kind, Lane, Platform
from nightmail.wire.frames import decode_from_device, decode_hello, encode
from nightmail.wire.items import (
    FIRST_ITEMS,
    GROUP_ITEMS,
    NEWEST_SINCE,
    VERSION,
    Answered,
    Ask,
    Devices,
    Drained,
    Entries,
    FromServer,
    Gone,
    GroupLook,
    Hello,
    LogFetch,
    Look,
    MembersLook,
    Ping,
    Pong,
    Receipts,
    ReceiptsLook,
    Welcome,
)
from sim.world.opaque import Opaque
from tests.client.group_answers import answer_about_groups
from tests.e2ee.devices import Seeded

E = TypeVar("E")

START = 1_700_000_000_000
CREDIT = 20
GROUP_FOLD = 4


class Town:
    """One server, and everybody's devices."""

    def __init__(
        self, seed: int = 0, *, sealed: bool = False, fold: int = NEWEST_FOLD, limits: FoldLimits | None = None
    ) -> None:
        self.now, self.sealed, self.has_groups = START, sealed, fold >= GROUP_FOLD
        self.chance = Random(seed)
        self.secrets = Seeded(seed)
        self.desk = LoopDesk(self.chance.randbytes, lambda: self.now)
        self.loop = Loop(
            MemoryLog(), MemoryRows(), lambda: self.now, self.desk.on_effects,
            new_state=lambda: ShardState(newest_fold=fold),
        )  # fmt: skip
        self.desk.attend(self.loop, self)
        self.loop.recover()
        while not self.loop.adopt(fold, limits or FoldLimits()):
            self.loop.flush()
        self._answers: dict[int, Said] = {}
        self._line = self.desk.open_line(self._answers.__setitem__)
        self._ref = 0
        self.devices: list[Device] = []
        self.meddle: Callable[[int, FromServer], FromServer | None] = lambda device, item: item
        """What the server does to each item that it hands to a device; None: it keeps it back."""

    # --- the server's side ----------------------------------------------------------------------

    def grew(self, device: int, lane: Lane) -> None: ...

    def changed(self, device: int) -> None: ...

    def dismissed(self, device: int) -> None: ...

    def low(self, device: int) -> None: ...

    def settled(self) -> None: ...

    def say(self, by: int, body: AnyBody) -> Said:
        self._ref += 1
        self.loop.submit(Record(by, self._line << REF_BITS | self._ref, body))
        self.loop.flush()
        return self._answers[self._ref]

    # --- people ---------------------------------------------------------------------------------

    def join(self, handle: str, *, limits: ClientLimits | None = None, sealer: Sealer | None = None) -> Device:
        account = account_id(handle)
        said = self.say(SERVER, Registered(account, handle, 7, self.chance.randbytes(32), "first", Platform.CLI))
        assert isinstance(said, Joined), said
        return self._device(Identity(handle, account, said.device, 7, b"t" * 32), limits, sealer)

    def link(self, first: Device, *, sealer: Sealer | None = None) -> Device:
        """Another device, listed at once."""
        account = first.me.account
        body = Linked(account, 8, self.chance.randbytes(32), "next", Platform.CLI)
        said = self.say(first.me.device, body)
        assert isinstance(said, Joined), said
        ours = [device.me.device for device in self.devices if device.me.account == account]
        self.say(first.me.device, Listed(account, said.list_version + 1, (*ours, said.device), b""))
        return self._device(Identity(first.me.handle, account, said.device, 8, b"t" * 32), first.limits, sealer)

    def rejoin(self, handle: str, device: int, registration: int) -> Device:
        """A device that registered by itself."""
        return self._device(Identity(handle, account_id(handle), device, registration, b"t" * 32), None, None)

    def pair(self, first: Device, secret: bytes = b"s" * 16, *, hand_over: bool = False) -> Device:
        """Another device of a sealed account: vouched for by the first, which does the rest by itself."""
        said = self.say(first.me.device, Linked(first.me.account, 8, self.chance.randbytes(32), "next", Platform.CLI))
        assert isinstance(said, Joined), said
        me = Identity(first.me.handle, first.me.account, said.device, 8, b"t" * 32)
        keys = make_keys(Address(me.device, me.registration), self.secrets, self.now)
        store = MemoryStore()
        store.put_own_keys(OwnKeys(encode_keys(keys)))
        store.put_errand(ERRAND, b"s" * 16)
        store.commit()
        pending = PendingLink(me.device, me.registration, keys.identity.public.encode(), secret, hand_over)
        first.machine.link(pending, self.now)
        first.look()
        return self._device(me, first.limits, None, store)

    def _device(
        self, me: Identity, limits: ClientLimits | None, sealer: Sealer | None, store: MemoryStore | None = None
    ) -> Device:
        device = Device(self, me, limits or ClientLimits(), self._sealer(sealer), store or MemoryStore())
        self.devices.append(device)
        return device

    def _sealer(self, sealer: Sealer | None) -> MakeSealer:
        if self.sealed and sealer is None:
            return build_sealer
        return lambda *_: sealer or Opaque()

    # --- time -----------------------------------------------------------------------------------

    def settle(self, *devices: Device) -> None:
        """Carry everything back and forth until nobody has anything to say, a few milliseconds at a time."""
        for _ in range(1_000):
            moved = False
            for device in devices or self.devices:
                moved = device.exchange() or moved
            if not moved:
                dues = [due for device in self.devices if (due := device.deadline()) is not None]
                if not dues or min(dues) > self.now + 1_000:
                    return
                self.wait(max(0, min(dues) - self.now))
        raise AssertionError("there is no end to it")

    def wait(self, ms: int) -> None:
        self.now += ms
        self.loop.tick()
        for device in self.devices:
            device.machine.tick(self.now)
            device.look()


class Session:
    """A server's end of a connection: what the gateway does, in the fewest lines."""

    def __init__(self, town: Town, hello: Hello) -> None:
        self.town, self.device = town, hello.device
        items = GROUP_ITEMS if town.has_groups else FIRST_ITEMS
        self.out: list[FromServer] = [
            Welcome(VERSION, town.now, "town", 30_000, 256, 65_536, 1 << 20, NEWEST_SINCE, items)
        ]
        self._next = [hello.normal, hello.high]
        self._acked = [hello.normal, hello.high]
        self._changes = hello.receipts
        self._line = town.desk.open_line(lambda ref, said: self.out.append(Answered(ref, said)))
        self._form = Form()
        self._drained = False
        self.heard: list[AnyBody] = []
        self.looked: list[int] = []
        """Accounts whose device list was asked for."""

    def take(self, frame: bytes) -> None:
        for item in decode_from_device(frame):
            match item:
                case Ask():
                    self.heard.append(item.body)
                    via = self._line << REF_BITS | item.ref if item.ref else 0
                    if wrong := self._form.check(self.device, item.body):
                        self.out.append(Answered(item.ref, wrong))
                    else:
                        self.town.loop.submit(Record(self.device, via, item.body))
                    if isinstance(item.body, Acked):
                        self._acked[item.body.lane] = max(self._acked[item.body.lane], item.body.upto)
                case Look():
                    self.looked.append(item.account)
                    self.town.desk.account(item.account, lambda row, item=item: self._found(item, row))
                case Ping():
                    self.out.append(Pong(item.nonce, self.town.now))
                case GroupLook() | MembersLook() | LogFetch() | ReceiptsLook():
                    self.out += answer_about_groups(self.town.loop.state, self.device, item)
                case Hello():
                    raise AssertionError("a second Hello")
        self.town.loop.flush()

    def _found(self, look: Look, row: Account | None) -> None:
        there = row is not None and not row.closed
        version, devices = (row.list_version, dict(row.listed)) if row and there else (0, {})
        self.out.append(Devices(look.ref, look.account, version, devices, row.signed_list if row and there else b""))

    def pump(self) -> None:
        for lane in (Lane.HIGH, Lane.NORMAL):
            room = CREDIT - (self._next[lane] - self._acked[lane])
            if room > 0:
                self.town.desk.offer(self.device, lane, self._next[lane], room, 1 << 20, partial(self._offer, lane))
        self.town.desk.receipts(self.device, self._changes, 10, self._tell)
        if not self._drained:
            self._drained = True
            self.out.append(Drained(self._next[0], self._next[1], self._changes))

    def _offer(self, lane: Lane, found: Sequence[Offered], more: bool) -> None:
        for run in found:
            if isinstance(run, Gap):
                self.out.append(Gone(lane, run.low, run.high, run.reason))
                self._next[lane] = run.high
            else:
                self.out.append(Entries(lane, run[0], run[1]))
                self._next[lane] = run[0] + len(run[1]) - 1

    def _tell(self, changes: Sequence[PendingReceipt]) -> None:
        if changes:
            copies = tuple(PendingReceipt(c.key, c.seq, c.at, c.reason, list(c.numbers)) for c in changes)
            self.out.append(Receipts(copies))
            self._changes = changes[-1].seq

    def repeat(self) -> None:
        """Offer the oldest unacknowledged entry of each lane once more."""
        for lane in Lane:
            if self._next[lane] > self._acked[lane]:
                self.town.desk.offer(self.device, lane, self._acked[lane], 1, 1, partial(self._again, lane))

    def _again(self, lane: Lane, found: Sequence[Offered], more: bool) -> None:
        for run in found:
            # What it has acknowledged in the log is no longer there to repeat.
            if not isinstance(run, Gap) and run[0] <= self._next[lane]:
                self.out.append(Entries(lane, run[0], run[1]))

    def frames(self) -> list[bytes]:
        self.pump()
        items, self.out = self.out, []
        told = [said for item in items if (said := self.town.meddle(self.device, item)) is not None]
        return [encode(told)] if told else []

    def close(self) -> None:
        self.town.desk.close_line(self._line)


class Device:
    """A machine, its store, and a wire to the server that may be cut at any moment."""

    def __init__(self, town: Town, me: Identity, limits: ClientLimits, sealer: MakeSealer, store: MemoryStore) -> None:
        self.town, self.me, self.limits, self.sealer = town, me, limits, sealer
        self.store = store
        self.events: list[Event] = []
        self.session: Session | None = None
        self.up: deque[bytes] = deque()
        self.down: deque[bytes] = deque()
        self.plugged = False
        self.hung_up: str | None = None
        """Why the machine ended the last connection."""
        self._deadline: int | None = None
        self.machine = self._new_machine()

    def _new_machine(self) -> Machine:
        return Machine(self.store, self.me, self.limits, self.town.chance, self.town.secrets, self.sealer)

    # --- what a test does -----------------------------------------------------------------------

    def connect(self) -> None:
        assert not self.plugged
        self.plugged, self.hung_up = True, None
        self.machine.connected(self.town.now)
        self.look()

    def cut(self) -> None:
        """Both directions are lost, and the machine notices."""
        self._unplug()
        self.machine.lost(self.town.now)
        self.look()

    def crash(self) -> None:
        """The power goes off: what was not committed is gone, and so is everything in memory."""
        self._unplug()
        self.store.crash()
        self.machine = self._new_machine()

    def _unplug(self) -> None:
        self.up.clear()
        self.down.clear()
        self.plugged = False
        if self.session:
            self.session.close()
            self.session = None

    def send(self, to: Device | str, body: bytes = b"hello", lane: Lane = Lane.NORMAL) -> Message:
        account = account_id(to) if isinstance(to, str) else to.me.account
        message = self.machine.compose(account, body, self.town.now, lane=lane)
        self.look()
        return message

    def says(self, to: Device | str, text: str) -> Message:
        """As the person types it."""
        return self.send(to, encode_content(Content(Kind.TEXT, text)))

    def heard(self) -> list[str]:
        """What the app was told that somebody else wrote."""
        return [message.text for message in self.told(Message) if not message.own]

    def read(self, peer: Device) -> None:
        self.machine.mark_read(peer.me.account, self.town.now)
        self.look()

    # --- the wire -------------------------------------------------------------------------------

    def look(self) -> None:
        """Take a turn, and carry it out."""
        turn = self.machine.turn()
        self.up.extend(turn.frames)
        self.events += turn.events
        self._deadline = turn.deadline
        if turn.hang_up and self.plugged:
            self.hung_up = turn.hang_up
            self.cut()

    def deadline(self) -> int | None:
        self.look()
        return self._deadline

    def exchange(self) -> bool:
        """Carry what there is, once in each direction; whether there was anything."""
        return self.carry_up() | self.carry_down()

    def carry_up(self, limit: int = 1_000) -> bool:
        moved = bool(self.up)
        while self.up and limit:
            limit -= 1
            frame = self.up.popleft()
            if self.session is None:
                self.session = Session(self.town, decode_hello(frame))
            else:
                self.session.take(frame)
        return moved

    def carry_down(self, limit: int = 1_000) -> bool:
        if self.session:
            self.down.extend(self.session.frames())
        moved = bool(self.down)
        while self.down and limit:
            limit -= 1
            self.machine.receive(self.down.popleft(), self.town.now)
            self.look()
        return moved

    # --- what it knows --------------------------------------------------------------------------

    def told(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def texts(self, peer: Device) -> list[bytes]:
        return [message.body for message in self.store.history(peer.me.account, 10_000)]

    def seen(self) -> list[bytes]:
        """What the app was told of, in the order it was told."""
        return [message.body for message in self.told(Message)]

    def state(self, message: Message) -> str:
        found = self.store.message(message.id)
        assert found is not None
        return found.state.name.lower()
