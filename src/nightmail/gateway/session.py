"""One connection, without the socket: frames in, records to the desk; answers and entries out, as frames.

Knows:   which device it is, once recognized, and what that device may say.
Touches: the desk, the link, and its gateway (`ports.py`).
Never:   reads a clock: time is an argument. Never decides about a message.

    stranger ── Hello ──► checking ── right token ──► live
        └──────────────────── closing ◄───────────────┘
"""

from __future__ import annotations

from enum import IntEnum

from nightmail.engine.ports import REF_BITS, Seat
from nightmail.model.answers import Said
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, FellowClaimed, Pace, ReceiptsAcked, Record, SaidByDevices
from nightmail.model.refusals import Malformed, NotMember, NotYet, RateLimited
from nightmail.model.rows import Account
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import BadFrame, decode_from_device, decode_hello, encode
from nightmail.wire.items import (
    REF_MAX,
    AboutGroups,
    AboutPresence,
    Answered,
    Ask,
    FromDevice,
    FromServer,
    Goodbye,
    Hello,
    KeysLow,
    Look,
    Ping,
    Pong,
)
from nightmail.wire.networks import network

from . import groups
from .greeting import check_hello, cursors_of, recognize, welcome
from .limits import LINGER_MS
from .lookups import Lookups, is_well_formed
from .ports import GONE, Host, Link, Shared
from .presence import ConnectionPresence, answer_ref
from .pump import RECEIPTS, Pump
from .rates import Bucket


class Stage(IntEnum):
    STRANGER = 0
    CHECKING = 1
    LIVE = 2
    CLOSING = 3


STRANGER, CHECKING, LIVE, CLOSING = Stage

HOLD_MS = 250
"""How long at most, in ms, nothing is read from a device that has sent faster than it may."""

SEND, ITEM = Pace.SEND, Pace.ITEM


class Session:
    __slots__ = (
        "_address", "_armed", "_early_frames", "_gateway", "_groups", "_items", "_lookups", "_opened", "_peer",
        "_presence", "_pump", "_received", "_sends",
        "_shared", "_stuck", "device", "heard", "link", "out", "queued", "seat", "stage",
    )  # fmt: skip

    def __init__(self, gateway: Host, shared: Shared, link: Link, now: int, peer: str = "") -> None:
        """`peer` is the address at the other end, as far as it is known."""
        self._gateway, self._shared, self.link, self._peer = gateway, shared, link, peer
        self.stage: Stage = STRANGER
        self.device = 0
        self.heard = self._opened = now
        self.out: list[FromServer] = []
        """Items for the next frame."""
        self.queued = False
        self.seat: Seat | None = None
        self._address = 0
        """Where answers go: the desk's line, and room for a ref; 0 if it has none."""
        self._early_frames = 0
        """Control frames and fragments before the device was recognized."""
        self._armed = False
        self._stuck = 0
        """Since when the device has read nothing from its socket; 0 while it reads."""
        self._sends: Bucket | None = None
        self._items: Bucket | None = None
        self._received: Bucket | None = None
        self._pump: Pump | None = None
        self._lookups: Lookups | None = None
        """Device lists that the device asked for, while there are any."""
        self._presence: ConnectionPresence | None = None
        """Once the device has said anything about presence."""
        self._groups: groups.ConnectionGroups | None = None
        """Once it has asked about a group."""

    # --- in -----------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: int) -> None:
        """One binary message. Its size was bounded before it was read."""
        self.heard = now
        counters, stage = self._shared.counters, self.stage
        counters.frames_in += 1
        counters.bytes_in += len(data)
        if stage is LIVE:
            try:
                items = decode_from_device(data)
            except BadFrame as error:
                counters.refuse("malformed", self._peer)
                self.close(CloseCode.MALFORMED, str(error))
                return
            self._take(items, now)
        elif stage is STRANGER:
            self._meet(data, now)
        elif stage is CHECKING:
            self.close(CloseCode.OUT_OF_STATE)

    def charge(self, now: int) -> bool:
        """Count a frame that brings no item: a control frame, a fragment, an empty array. False: too many, closed."""
        if self._items is not None:
            paid = self._items.take(now)
        else:
            self._early_frames += 1
            paid = self._early_frames <= self._shared.limits.hello_frames
        if not paid:
            self.close(CloseCode.TOO_FAST)
        return paid

    def charge_bytes(self, size: int, now: int) -> None:
        """So much was read at once. Nothing more is read while the account is above its rate."""
        if self._received is None:
            if self.stage is not LIVE:
                return
            self._received = self._gateway.budgets.received(self.device, now)
        self._received.spend(size)
        if self._received.level(now) < 0:
            self._hold(now, self._received.wait_ms(0))

    def _hold(self, now: int, ms: int) -> None:
        self.link.hold()
        self._shared.wheel.add(now + min(ms, HOLD_MS), lambda _: self.link.read_on())

    def _take(self, items: list[FromDevice], now: int) -> None:
        """Everything one frame says. This is where a message costs most, so it calls few functions."""
        gateway, device, address, form = self._gateway, self.device, self._address, self._shared.form
        records: list[Record] = []
        acks: list[Acked | ReceiptsAcked] = []
        sends = 0
        if not 0 < len(items) <= self._shared.items_max:
            if items:
                self.close(CloseCode.TOO_FAST)
            else:
                self.charge(now)
            return
        for item in items:
            if type(item) is Ask:
                ref, body = item.ref, item.body
                if ref >> REF_BITS:  # Something is left of a negative number, too.
                    self.close(CloseCode.MALFORMED, "a ref out of range")
                elif complaint := body.form(device, form):
                    self._refuse(ref, Malformed(complaint))
                else:
                    pace = body.pace
                    if pace is SEND:
                        sends += 1
                    elif type(body) is Acked or type(body) is ReceiptsAcked:
                        acks.append(body)
                    elif pace is not ITEM and (refusal := self._over_budget(body, now)):
                        if ref:
                            self.out.append(Answered(ref, refusal))
                        continue
                    records.append(Record(device, address | ref if ref else 0, body))
            elif type(item) is Ping:
                self.out.append(Pong(item.nonce, self._shared.clock()))
                if self._presence is not None:
                    self._presence.beat(now)
            elif type(item) is Look:
                self._look(item, now)
            elif isinstance(item, AboutPresence):
                self._take_presence(item, now)
            elif isinstance(item, AboutGroups):
                self._take_group(item, now)
            else:
                self.close(CloseCode.OUT_OF_STATE)
        if sends:
            if self._sends is None:
                self._sends = gateway.budgets.sends(device, now)
            if not self._sends.take(now, sends):
                held = len(records)
                records = self._hold_back(records, self._sends, now)
                sends -= held - len(records)
        assert self._items is not None
        # Refused items count here, too: otherwise asking for refusals would be a way around the limit.
        if len(items) > sends and not self._items.take(now, len(items) - sends):
            self.close(CloseCode.TOO_FAST)
        if self.stage is LIVE:
            if records:
                gateway.submit(records)
                if acks:
                    self._see_acks(acks, now)
            if (self.out or self._lookups) and not self.queued:
                gateway.ready(self)

    def _over_budget(self, body: SaidByDevices, now: int) -> RateLimited | NotMember | None:
        """Why a record that is counted by itself is not taken."""
        if isinstance(body, FellowClaimed) and (self._groups is None or body.group not in self._groups.member_of):
            return NotMember(body.group)
        wait_ms = self._gateway.budgets.wait_ms(self.device, self._peer, body, now)
        return RateLimited(wait_ms) if wait_ms else None

    def _hold_back(self, records: list[Record], budget: Bucket, now: int) -> list[Record]:
        """The device sends faster than it may: take what fits into its budget, refuse the rest."""
        taken: list[Record] = []
        for record in records:
            if record.body.pace is not SEND or budget.take(now):
                taken.append(record)
            else:
                self._shared.counters.refuse("rate_limited", self._peer)
                if record.via:
                    self.out.append(Answered(record.via & REF_MAX, RateLimited(budget.wait_ms())))
        # Reading what is then refused costs as much as the messages: what still comes waits in the peer's socket.
        self._hold(now, HOLD_MS)
        return taken

    def _see_acks(self, acks: list[Acked | ReceiptsAcked], now: int) -> None:
        """Acknowledgements are judged by the fold; here they only give credit back."""
        pump = self._pump
        if pump is None:
            return  # The records that came with the acknowledgements ended this session.
        for ack in acks:
            if type(ack) is Acked:
                if pump.acked(ack.lane, ack.upto, now):
                    self._gateway.renew_seat(self, now)
            elif type(ack) is ReceiptsAcked:
                pump.receipts_acked(ack.upto)
        if pump.owes and not self.queued and pump.wants:
            self._gateway.ready(self)
        self._arm()

    def _refuse(self, ref: int, refusal: Malformed) -> None:
        self._shared.counters.refuse("malformed", self._peer)
        if ref:
            self.out.append(Answered(ref, refusal))
        else:
            self.close(CloseCode.MALFORMED, refusal.sentence)

    def _look(self, look: Look, now: int) -> None:
        if not is_well_formed(look):
            self.close(CloseCode.MALFORMED, "no such ref or account")
            return
        if self._lookups is None:
            looks = self._gateway.budgets.looks(self.device, self._peer, now)
            self._lookups = Lookups(self._shared, looks, self.out, self._list_found)
        if not self._lookups.add(look):
            self.close(CloseCode.TOO_FAST)

    def _take_presence(self, item: AboutPresence, now: int) -> None:
        if self.stage is not LIVE:
            return  # closed by an item before it
        if self._presence is None:
            if self._gateway.presence is None:
                if ref := answer_ref(item):
                    self.out.append(Answered(ref, NotYet()))
                return  # A server without presence has groups all the same, and `items` cannot say so.
            self._presence = self._gateway.presence.connection(self)
        if refusal := self._presence.take(item, now):
            self._refuse(answer_ref(item), refusal)

    def _take_group(self, item: AboutGroups, now: int) -> None:
        if self.stage is not LIVE:
            return  # closed by an item before it
        if self._groups is None:
            self._groups = self._gateway.groups.connection(self)
        if refusal := self._groups.take(item, now):
            self._refuse(groups.answer_ref(item), refusal)

    def _list_found(self) -> None:
        if self._lookups is not None and self._lookups.finished:
            self._lookups = None
        self._gateway.ready(self)

    # --- the greeting -------------------------------------------------------------------------

    def _meet(self, data: bytes | bytearray | memoryview, now: int) -> None:
        try:
            hello = decode_hello(data)
        except BadFrame as error:
            self._shared.counters.refuse("malformed", self._peer)
            self.close(CloseCode.MALFORMED, str(error))
            return
        if rejection := check_hello(hello):
            self.close(*rejection)
            return
        self.stage = CHECKING
        self._gateway.greet(lambda: self._check(hello, now), network(self._peer))

    def _check(self, hello: Hello, arrived: int) -> None:
        if self.stage is CHECKING:
            self._shared.desk.account(account_of(hello.device), lambda row: self._checked(hello, arrived, row))

    def _checked(self, hello: Hello, arrived: int, row: Account | None) -> None:
        if self.stage is not CHECKING:
            return
        device = recognize(hello, row)
        if device is None:
            self._shared.counters.refuse("unauthorized", self._peer)
            self.close(CloseCode.UNAUTHORIZED)
            return
        self._go_live(hello, arrived)
        if device.low:
            self.low()

    def _go_live(self, hello: Hello, arrived: int) -> None:
        shared = self._shared
        self.device, self.stage = hello.device, LIVE
        line = shared.desk.open_line(self.answered)
        self._address = line << REF_BITS
        self._items = self._gateway.budgets.items(self.device, arrived)
        self._pump = Pump(self.device, cursors_of(hello), shared, self.out, self)
        # Between the answer to the handshake and the Hello lies one round trip.
        self._pump.measured(arrived - self._opened)
        self._opened = arrived  # which `heard` holds, too
        self.out.append(welcome(shared))
        self.seat = self._gateway.seat(self, line)
        self._gateway.ready(self)

    # --- out ----------------------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        return self._pump is not None and self._pump.draining

    @property
    def suspect(self) -> bool:
        return self._pump is not None and self._pump.suspect

    @property
    def handed_high(self) -> int:
        """How far the device was handed its high lane."""
        return self._pump.handed_high if self._pump is not None else 0

    def answered(self, ref: int, said: Said) -> None:
        self.out.append(Answered(ref, said))
        if not self.queued:
            self._gateway.ready(self)

    def grew(self, lane: int) -> None:
        pump = self._pump
        if pump is not None:
            pump.grew(lane)
            if not self.queued and not (pump.rests and lane == RECEIPTS):
                self._gateway.ready(self)

    def low(self) -> None:
        """The device should publish more keys."""
        self.tell(KeysLow())

    def tell(self, item: FromServer) -> None:
        """Send an item at the end of this turn, unless the connection has ended."""
        if self.stage is LIVE:
            self.out.append(item)
            self._gateway.ready(self)

    def flush(self, now: int, *, pressed: bool) -> bool:
        """Send everything pending as one frame. Returns whether another frame could follow at once."""
        if self.stage is CLOSING:
            return False
        pump, more = self._pump, False
        if pump is not None and (pump.owes or self._lookups or (self._groups and self._groups.owes)):
            more = self._pull(pump, now, pressed)
        if self.out:
            size = self._send(self.out)
            self.out.clear()
            if pump is not None:
                pump.sent(size, now)
                self._arm()
        return more

    def _pull(self, pump: Pump, now: int, pressed: bool) -> bool:
        """Add what is owed, if the socket has room for it. Returns whether more could go out at once."""
        if self.link.unsent() > self._shared.limits.unsent_bytes:
            return False
        if self._lookups is not None and self._lookups.can_ask:
            self._lookups.ask()
        pump.pull(now, pressed=pressed)
        more = self._groups is not None and self._groups.pull()
        return more or pump.wants or (self._lookups is not None and self._lookups.can_ask)

    def _send(self, items: list[FromServer]) -> int:
        """As one frame, unless that is larger than the device was told to expect. Returns the bytes sent."""
        counters = self._shared.counters
        frame = encode(items)
        if len(frame) > self._shared.limits.frame_bytes and len(items) > 1:
            half = len(items) // 2
            return self._send(items[:half]) + self._send(items[half:])
        counters.frames_out += 1
        counters.bytes_out += len(frame)
        self.link.send(frame)
        return len(frame)

    def _arm(self) -> None:
        """Set a timer for when the oldest unacknowledged entry may have to be offered again."""
        if not self._armed and self._pump is not None and (at := self._pump.repeat_at()):
            self._armed = True
            self._shared.wheel.add(at, self.on_repeat)

    def wake(self) -> None:
        """The socket has room again, or the desk has found what the pump asked for."""
        self._gateway.ready(self)

    # --- time passes --------------------------------------------------------------------------

    def on_repeat(self, now: int) -> None:
        """Offer the oldest entry again if it is unacknowledged for too long."""
        self._armed = False
        pump = self._pump
        if self.stage is not LIVE or pump is None or not (at := pump.repeat_at()):
            return
        if at <= now:
            if pump.repeat(stalled=self.link.stalled()):
                self._shared.counters.repeated += 1
            if pump.suspect:
                self._gateway.suspect(self)
        self._arm()

    def on_silence(self, now: int) -> None:
        """Close the connection if the device has sent or read nothing for too long."""
        limits, wheel = self._shared.limits, self._shared.wheel
        if self.stage is CLOSING:
            return
        if self.stage is not LIVE:
            if now - self._opened >= limits.hello_ms:
                self.close(CloseCode.HELLO_TIMEOUT)
                return
            wheel.add(self._opened + limits.hello_ms, self.on_silence)
            return
        if now - self.heard >= limits.silence_ms:
            self.close(CloseCode.SILENT)
            return
        if self.link.unsent() <= limits.unsent_bytes:
            self._stuck = 0
        elif not self._stuck:
            self._stuck = now
        elif now - self._stuck >= limits.unread_ms:
            self.close(CloseCode.UNREAD)
            return
        if self._pump is not None and not self._pump.suspect:
            self._gateway.renew_seat(self, now)
        wheel.add(min(now + limits.heartbeat_ms, self.heard + limits.silence_ms), self.on_silence)

    # --- the end ------------------------------------------------------------------------------

    def close(self, code: CloseCode, sentence: str = "") -> None:
        """Say why, and close."""
        if self.stage is CLOSING:
            return
        was_live, self.stage = self.stage is LIVE, CLOSING
        if code is CloseCode.TOO_FAST:
            self._shared.counters.refuse("too_fast", self._peer)
        sentence = sentence or SENTENCES[code]
        if was_live:
            self._send([*self.out, Goodbye(code, sentence, 0)])
        self._end()
        self.link.close(code, sentence)
        self._shared.wheel.add(self._shared.pace() + LINGER_MS, lambda _: self.link.cut())
        self._gateway.remove(self)

    def lost(self) -> None:
        """The connection is gone."""
        self._end()
        self._gateway.remove(self)
        # The link refers to its session. Otherwise both would stay until the collector looks at everything.
        self.link = GONE

    def _end(self) -> None:
        """Send nothing more, and hear no more answers."""
        self.stage, self._lookups, self._pump = CLOSING, None, None
        self.out.clear()
        presence, self._presence = self._presence, None
        if presence is not None:
            presence.end()
        about_groups, self._groups = self._groups, None
        if about_groups is not None:
            about_groups.end()
        if self._address:
            self._shared.desk.close_line(self._address >> REF_BITS)
            self._address = 0
