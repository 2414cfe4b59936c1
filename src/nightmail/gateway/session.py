"""One connection, without the socket: frames in, records to the desk; answers and mail out, as frames.

Knows:   who the device is, once it has said so, and what it may say.
Touches: the desk; the link, by `send` and `close`.
Never:   reads a clock: time is an argument. Never decides about a message.

    stranger ── Hello ──► checking ── right token ──► live
        └──────────────────── closing ◄───────────────┘
"""

from __future__ import annotations

import hmac
from enum import IntEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from nightmail.engine.ports import REF_BITS, Seat
from nightmail.model.answers import Said
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX, TOKEN_BYTES
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.records import Acked, ChangesAcked, Pace, Record
from nightmail.model.refusals import Malformed, RateLimited
from nightmail.model.rows import Account
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import BadFrame, decode_from_device, decode_hello, encode
from nightmail.wire.items import (
    REF_MAX,
    VERSION,
    Answered,
    Ask,
    Devices,
    FromServer,
    Goodbye,
    Hello,
    KeysLow,
    Look,
    Ping,
    Pong,
    Welcome,
)

from .pump import Pump
from .rates import Bucket

if TYPE_CHECKING:
    from .gateway import Gateway


class Link(Protocol):
    """The socket, as far as a session knows it."""

    def send(self, frame: bytes) -> None: ...

    def close(self, code: int, sentence: str) -> None: ...

    def cut(self) -> None:
        """Without another word, if the last ones were not taken."""
        ...

    def unsent(self) -> int:
        """Bytes that wait here."""
        ...

    def stalled(self) -> bool:
        """Whether bytes are on their way that the other side has not confirmed. Costs more than `unsent`."""
        ...


class Stage(IntEnum):
    STRANGER = 0
    CHECKING = 1
    LIVE = 2
    CLOSING = 3


STRANGER, CHECKING, LIVE, CLOSING = Stage

LINGER_MS = 2_000
"""How long a peer has to take the last words before the connection is cut."""

SEND, ITEM = Pace.SEND, Pace.ITEM

LOOKS_AT_ONCE = 8
"""Device lists in one frame: each may be as long as a body."""


class Session:
    __slots__ = (
        "_address", "_armed", "_gateway", "_items", "_line", "_looking", "_looks", "_opened", "_pump", "_sends",
        "_stuck", "device", "heard", "link", "out", "queued", "seat", "stage",
    )  # fmt: skip

    def __init__(self, gateway: Gateway, link: Link, now: int) -> None:
        self._gateway, self.link = gateway, link
        self.stage: Stage = STRANGER
        self.device = 0
        self.heard = self._opened = now
        self.out: list[FromServer] = []
        """Goes out with the next frame."""
        self.queued = False
        """The gateway has it on its list."""
        self.seat: Seat | None = None
        self._line = self._address = 0
        self._armed = False
        self._stuck = 0
        """Since when the device has taken nothing from its socket; 0 if it does."""
        self._sends: Bucket | None = None
        self._items: Bucket | None = None
        self._pump: Pump | None = None
        self._looks: list[Look] = []
        """Questions about device lists, looked at when there is room for what they bring."""
        self._looking = 0

    # --- in -----------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview, now: int) -> None:
        """One binary message. Its size was bounded before it was read."""
        self.heard = now
        stage = self.stage
        if stage is LIVE:
            try:
                items = decode_from_device(data)
            except BadFrame as error:
                self._gateway.counters.malformed += 1
                self.close(CloseCode.MALFORMED, str(error))
                return
            self._take(items, now)
        elif stage is STRANGER:
            self._meet(data, now)
        elif stage is CHECKING:
            self.close(CloseCode.OUT_OF_STATE)

    def _take(self, items: list[Hello | Ask | Look | Ping], now: int) -> None:
        """Everything one frame says. What it costs per message is spent here, so little is called."""
        gateway, device, address, check = self._gateway, self.device, self._address, self._gateway.form.check
        records: list[Record] = []
        acks: list[Acked | ChangesAcked] = []
        sends = 0
        if len(items) > gateway.items_max:
            self.close(CloseCode.TOO_FAST)
            return
        for item in items:
            if type(item) is Ask:
                ref, body = item.ref, item.body
                if not 0 <= ref <= REF_MAX:
                    self.close(CloseCode.MALFORMED, "a ref out of range")
                elif refusal := check(device, body):
                    self._refuse(ref, refusal)
                else:
                    pace = body.pace
                    if pace is SEND:
                        sends += 1
                    elif type(body) is Acked or type(body) is ChangesAcked:
                        acks.append(body)
                    elif pace is not ITEM and (wait_ms := gateway.share_wait_ms(device >> DEVICE_BITS, pace, now)):
                        if ref:
                            self.out.append(Answered(ref, RateLimited(wait_ms)))
                        continue
                    records.append(Record(device, address | ref if ref else 0, body))
            elif type(item) is Ping:
                self.out.append(Pong(item.nonce, gateway.clock()))
            elif type(item) is Look:
                self._look(item)
            else:
                self.close(CloseCode.OUT_OF_STATE)
        assert self._sends is not None
        assert self._items is not None
        if sends and not self._sends.take(now, sends):
            held = len(records)
            records = self._hold_back(records, now)
            sends -= held - len(records)
        # Whatever is refused counts here, too: asking for refusals is no way around a limit.
        if len(items) > sends and not self._items.take(now, len(items) - sends):
            self.close(CloseCode.TOO_FAST)
        if self.stage is LIVE:
            if records:
                gateway.submit(records)
                if acks:
                    self._see_acks(acks, now)
            if (self.out or self._looks) and not self.queued:
                gateway.ready(self)

    def _hold_back(self, records: list[Record], now: int) -> list[Record]:
        """The device sends faster than it may: take what still fits, refuse the rest."""
        taken: list[Record] = []
        assert self._sends is not None
        for record in records:
            if record.body.pace is not SEND or self._sends.take(now):
                taken.append(record)
            else:
                self._gateway.counters.rate_limited += 1
                if record.via:
                    self.out.append(Answered(record.via & REF_MAX, RateLimited(self._sends.wait_ms())))
        return taken

    def _see_acks(self, acks: list[Acked | ChangesAcked], now: int) -> None:
        """Acknowledgements are judged by the fold; here they only give credit back."""
        pump = self._pump
        assert pump is not None
        for ack in acks:
            if type(ack) is Acked:
                if pump.acked(ack.lane, ack.upto, now):
                    self._gateway.stays(self, now)
            elif type(ack) is ChangesAcked:
                pump.heard(ack.upto)
        if pump.owes and not self.queued and pump.wants:
            self._gateway.ready(self)
        self._arm()

    def _refuse(self, ref: int, refusal: Malformed) -> None:
        self._gateway.counters.malformed += 1
        if ref:
            self.out.append(Answered(ref, refusal))
        else:
            self.close(CloseCode.MALFORMED, refusal.sentence)

    def _look(self, look: Look) -> None:
        if 0 <= look.ref <= REF_MAX and 1 <= look.account <= ACCOUNT_MAX:
            self._looks.append(look)
        else:
            self.close(CloseCode.MALFORMED, "no such ref or account")

    def _answer_looks(self) -> None:
        """A few at a time, and the next ones when these are answered."""
        looks, self._looks = self._looks[:LOOKS_AT_ONCE], self._looks[LOOKS_AT_ONCE:]
        self._looking = len(looks)
        for look in looks:
            self._answer_look(look)

    def _answer_look(self, look: Look) -> None:
        account = look.account

        def found(row: Account | None) -> None:
            if row is None or row.closed:
                self.out.append(Devices(look.ref, account, 0, {}, b""))
            else:
                self.out.append(Devices(look.ref, account, row.list_version, dict(row.listed), row.signed_list))
            self._looking -= 1
            self._gateway.ready(self)

        self._gateway.desk.account(account, found)

    # --- who is it? ---------------------------------------------------------------------------

    def _meet(self, data: bytes | bytearray | memoryview, now: int) -> None:
        try:
            hello = decode_hello(data)
        except BadFrame as error:
            self._gateway.counters.malformed += 1
            self.close(CloseCode.MALFORMED, str(error))
            return
        if hello.version != VERSION:
            self.close(CloseCode.UNSUPPORTED)
            return
        cursors = (hello.normal, hello.high, hello.changes)
        if not (1 <= hello.device <= DEVICE_MAX and all(0 <= cursor <= NUMBER_MAX for cursor in cursors)):
            self.close(CloseCode.MALFORMED, "a Hello with numbers out of range")
            return
        self.stage = CHECKING
        self._gateway.greet(lambda: self._check(hello, now))

    def _check(self, hello: Hello, arrived: int) -> None:
        if self.stage is CHECKING:
            self._gateway.desk.account(account_of(hello.device), lambda row: self._checked(hello, arrived, row))

    def _checked(self, hello: Hello, arrived: int, row: Account | None) -> None:
        if self.stage is not CHECKING:
            return
        device = row.devices.get(hello.device) if row else None
        digest = sha256(hello.token).digest()
        # Compared also when there is nothing to compare with: how long it takes tells nothing.
        right = hmac.compare_digest(digest, device.token if device else bytes(TOKEN_BYTES))
        if device is None or not right:
            self._gateway.counters.unauthorized += 1
            self.close(CloseCode.UNAUTHORIZED)
            return
        self._welcome(hello, arrived)
        if device.low:
            self.low()

    def _welcome(self, hello: Hello, arrived: int) -> None:
        gateway, limits = self._gateway, self._gateway.limits
        self.device, self.stage = hello.device, LIVE
        self._line = gateway.desk.open_line(self.answered)
        self._address = self._line << REF_BITS
        self._sends = Bucket(limits.sends_per_s, limits.sends_burst, arrived)
        self._items = Bucket(limits.items_per_s, limits.items_burst, arrived)
        cursors = (hello.normal, hello.high, hello.changes)
        self._pump = Pump(self.device, cursors, gateway.desk, limits, self.out, self.wake)
        # From the reply to the handshake to the Hello is one way there and back.
        self._pump.measured(arrived - self._opened)
        self.out.append(
            Welcome(
                VERSION, gateway.clock(), gateway.node, limits.heartbeat_ms, gateway.form.window,
                gateway.form.body_bytes, limits.frame_bytes,
            )
        )  # fmt: skip
        gateway.seat(self, self._line)
        gateway.ready(self)

    # --- out ----------------------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        return self._pump is not None and self._pump.draining

    def answered(self, ref: int, said: Said) -> None:
        self.out.append(Answered(ref, said))
        if not self.queued:
            self._gateway.ready(self)

    def grew(self, lane: int) -> None:
        if self._pump is not None:
            self._pump.grew(lane)
            if not self.queued:
                self._gateway.ready(self)

    def low(self) -> None:
        """The device should publish more keys."""
        self.out.append(KeysLow())
        self._gateway.ready(self)

    def flush(self, now: int, *, pressed: bool) -> bool:
        """Everything there is to say, as one frame. Whether another one could follow at once."""
        if self.stage is CLOSING:
            return False
        pump, more = self._pump, False
        if pump is not None and (pump.owes or self._looks):
            more = self._pull(pump, now, pressed)
        if self.out:
            size = self._send(self.out)
            self.out.clear()
            if pump is not None:
                pump.sent(size, now)
                self._arm()
        return more

    def _pull(self, pump: Pump, now: int, pressed: bool) -> bool:
        """What is owed, if the socket has room for it. Whether there is more that could go out at once."""
        if self.link.unsent() > self._gateway.limits.unsent_bytes:
            return False
        if self._looks and not self._looking:
            self._answer_looks()
        pump.pull(now, pressed=pressed)
        return pump.wants or (bool(self._looks) and not self._looking)

    def _send(self, items: list[FromServer]) -> int:
        """As one frame, unless that is larger than a device was told to expect. How many bytes it is."""
        counters = self._gateway.counters
        frame = encode(items)
        if len(frame) > self._gateway.limits.frame_bytes and len(items) > 1:
            half = len(items) // 2
            return self._send(items[:half]) + self._send(items[half:])
        counters.frames_out += 1
        counters.bytes_out += len(frame)
        self.link.send(frame)
        return len(frame)

    def _arm(self) -> None:
        """Come back when the oldest unacknowledged entry may have to be offered again."""
        if not self._armed and self._pump is not None and (at := self._pump.repeat_at()):
            self._armed = True
            self._gateway.wheel.add(at, self.on_repeat)

    def wake(self) -> None:
        self._gateway.ready(self)

    # --- time passes --------------------------------------------------------------------------

    def on_repeat(self, now: int) -> None:
        """Is something unacknowledged for too long?"""
        self._armed = False
        pump = self._pump
        if self.stage is not LIVE or pump is None or not (at := pump.repeat_at()):
            return
        if at <= now:
            if pump.repeat(stalled=self.link.stalled()):
                self._gateway.counters.repeated += 1
            if pump.suspect:
                self._gateway.is_suspect(self)
        self._arm()

    def on_silence(self, now: int) -> None:
        """Has nothing been heard for too long, or nothing been taken?"""
        limits = self._gateway.limits
        if self.stage is CLOSING:
            return
        if self.stage is not LIVE:
            if now - self._opened >= limits.hello_ms:
                self.close(CloseCode.HELLO_TIMEOUT)
                return
            self._gateway.wheel.add(self._opened + limits.hello_ms, self.on_silence)
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
            self._gateway.stays(self, now)
        self._gateway.wheel.add(min(now + limits.heartbeat_ms, self.heard + limits.silence_ms), self.on_silence)

    # --- the end ------------------------------------------------------------------------------

    def close(self, code: CloseCode, sentence: str = "", retry_ms: int = 0) -> None:
        """Say why, and hang up."""
        if self.stage is CLOSING:
            return
        known, self.stage = self.stage is LIVE, CLOSING
        sentence = sentence or SENTENCES[code]
        if known:
            self._send([*self.out, Goodbye(code, sentence, retry_ms)])
        self.out.clear()
        self._looks.clear()
        self.link.close(code, sentence)
        self._gateway.wheel.add(self._gateway.now() + LINGER_MS, lambda _: self.link.cut())
        self._gateway.forget(self)

    def lost(self) -> None:
        """The connection is gone."""
        self.stage = CLOSING
        self.out.clear()
        self._looks.clear()
        self._gateway.forget(self)

    def hang_up(self) -> None:
        """Nothing more is said to this line."""
        if self._line:
            self._gateway.desk.close_line(self._line)
            self._line = 0
