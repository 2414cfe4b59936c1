"""Sending: every message durable here first, in order, under one id and number, until it is answered.

Knows:   what waits, per conversation and lane; when to try again; what each refusal asks of us.
Touches: outgoing rows and the messages they carry.
Never:   sends what the store has not committed (the machine sees to that), or drops a number silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.ids import account_of
from nightmail.model.records import Sent, Voided
from nightmail.model.refusals import (
    IdReused,
    NumberVoided,
    OutOfOrder,
    RateLimited,
    Refusal,
    StaleDevices,
    UnknownRecipient,
)
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import Ask

from .errors import Misbehaved, TooLarge
from .events import WaitingForNetwork
from .framing import size_of
from .hub import Hub
from .lists import Lists
from .messages import Message, conversation_id
from .retries import delay_ms
from .sealer import Sealer
from .sealing import address, addressed, new_id, seal, unsealed
from .spoken import Spoken
from .store import DeviceList, Numbered, Outgoing
from .stream import Stream
from .ticks import Ticks

RENUMBERED_MAX = 256
"""So many numbers in a row may turn out to be used before the schedule makes it wait."""
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


class Outbox:
    def __init__(self, hub: Hub, lists: Lists, sealer: Sealer, ticks: Ticks) -> None:
        self._hub, self._lists, self._sealer, self._ticks = hub, lists, sealer, ticks
        hub.rekeyed.append(self._rekeyed)
        hub.agreed.append(self._agreed)
        self._streams: dict[tuple[int, Lane], Stream] = {}
        self.spoken = Spoken(hub)
        self._when_sent: dict[str, Callable[[], None]] = {}
        self.on_removed: Callable[[Message, int, int, str], object] = ticks.failed_on
        """Called when the device that a message was to be sealed for once more is gone."""
        for row in hub.store.outgoing():
            stream = self._stream(row.to, row.lane)
            stream.put(row)
            stream.pause(0)  # the schedule runs from the first moment on, connected or not

    # --- writing --------------------------------------------------------------------------------

    def compose(self, to: int, body: bytes, kind: Kind, lane: Lane, life_ms: int) -> Message:
        """Write a message down. It has its id and number for good."""
        hub = self._hub
        if len(body) > (limit := self._sealer.fits(hub.body_bytes)):
            raise TooLarge(len(body), limit)
        ident = new_id(hub)
        message = Message(id=ident, peer=to, by=hub.identity.device, own=True, body=body, kind=kind, life_ms=life_ms)
        hub.store.put_message(message)
        self._number(to, lane, ident, ident, body, 0)
        return message

    def reseal(self, message: Message, device: int) -> None:
        """The same message once more, for one device: an ordinary send under an id and number of its own."""
        self._number(message.peer, Lane.HIGH, new_id(self._hub), message.id, message.body, device)

    def control(
        self, to: int, content: bytes, only: int = 0, then: Callable[[], None] | None = None, lane: Lane = Lane.HIGH
    ) -> None:
        """A word from device to device, for all of an account or for one. Nobody sees it, no tick follows it.

        `then` is called when the server has it; not if that is after a restart. Raises TooLarge: no note can hold it.
        What only this server finds too large it refuses, and that is the end of it.
        """
        if len(content) > CONTENT_BYTES_MAX:
            raise TooLarge(len(content), CONTENT_BYTES_MAX)
        ident = new_id(self._hub)
        if then:
            self._when_sent[ident] = then
        # For one device alone it is, to the server, a re-seal of something that was never sent.
        original = new_id(self._hub) if only else ident
        self._number(to, lane, ident, original, content, only, is_control=True)

    def say_again(self, original: str, device: int) -> None:
        """A control message could not be opened by the device that it was for."""
        if (word := self.spoken.again(original, device)) is not None:
            self._number(word.to, word.lane, new_id(self._hub), original, word.content, device, is_control=True)

    def give_up(self, message_id: str) -> bool:
        """Take a message back, if the server has not got it; False: it no longer waits."""
        for stream in self._streams.values():
            for row in stream.rows.values():
                if row.id == message_id and not row.void:
                    self._void(stream, row, "given_up")
                    return True
        return False

    def _number(
        self, to: int, lane: Lane, ident: str, original: str, body: bytes, only: int, *, is_control: bool = False
    ) -> None:
        hub = self._hub
        store, me = hub.store, hub.identity
        n = store.last_number(to, lane) + 1
        row = address(hub, to, lane, n, ident, original, body, only)
        if is_control:
            row = replace(row, content=body)
        store.put_last_number(to, lane, n)
        store.put_outgoing(row)
        store.put_numbered(Numbered(me.device, to, lane, n, original))
        stream = self._stream(to, lane)
        waits_for_a_void = stream.paused and bool(stream.rows) and stream.only_voids
        stream.put(row)
        if waits_for_a_void:
            # Nobody waits for those; but now somebody does for what stands behind them.
            stream.begin()
        self._pump(stream)
        if stream.due is None and not stream.paused:
            self._pause(stream)  # offline: the schedule runs all the same

    # --- the connection -------------------------------------------------------------------------

    def connected(self) -> None:
        """Everything that is unanswered goes out at once, in order."""
        self.spoken.forget()
        for stream in list(self._streams.values()):
            stream.failures = 0
            self._begin(stream)

    def lost(self) -> None:
        for stream in self._streams.values():
            if stream.rows and not stream.paused:
                self._pause(stream)

    def deadline(self) -> int | None:
        dues: list[int] = []
        for stream in self._streams.values():
            if stream.due is not None:
                dues.append(stream.due)
            if stream.rows and not (oldest := stream.rows[stream.floor]).void:
                dues.append(oldest.composed_at + self._hub.limits.lifetime_ms + 1)
        return min(dues, default=None)

    def tick(self) -> None:
        hub = self._hub
        for stream in list(self._streams.values()):
            self._fail_old(stream)
            if stream.due is None or hub.now < stream.due:
                continue
            if stream.paused and hub.online:
                self._begin(stream)
            else:
                self._pause(stream)

    # --- sending --------------------------------------------------------------------------------

    def _stream(self, to: int, lane: Lane) -> Stream:
        if (stream := self._streams.get((to, lane))) is None:
            stream = self._streams[to, lane] = Stream(to, lane)
        return stream

    def _begin(self, stream: Stream) -> None:
        stream.begin()
        self._fail_old(stream)
        self._pump(stream)

    def _pump(self, stream: Stream) -> None:
        """Hand over what the window allows."""
        hub = self._hub
        if not hub.online or stream.paused or not stream.rows:
            return
        floor = stream.floor
        first = max(stream.sent + 1, floor)
        for n in range(first, floor + hub.window):
            if (row := stream.rows.get(n)) is None:
                if n > next(reversed(stream.rows)):
                    break
                continue
            if not self._ask(stream, row):
                break
            stream.sent = n
        if stream.due is None and not stream.paused and stream.rows:
            stream.due = hub.now + hub.limits.answer_ms

    def _ask(self, stream: Stream, row: Outgoing) -> bool:
        """Say one row; False: something must be known first, and the stream is pumped again when it is."""
        if not row.void:
            to, own = self._list(stream, row.to), self._list(stream, self._hub.identity.account)
            if to is not None and not to.version:
                self._unknown_recipient(stream)
                return False
            if to is None or own is None:
                return False
            if self._sealer.is_held(row.to):
                stream.pause(None)
                stream.waits = True
                return False
            if row.only and row.only not in to.devices and row.only not in own.devices:
                self._fail(row, "device_removed")
                row = self._void_row(stream, row, "device_removed")
            else:
                if not self._is_ready(stream, row, to, own):
                    return False
                row, sent = seal(self._hub, self._sealer, row, stream.floor, to, own)
                if stream.rows[row.n] is not row:
                    self._put(stream, row)
                if size_of(Ask(0, sent)) <= self._hub.frame_bytes:
                    self._say(stream, row.n, sent)
                    return True
                self._fail(row, "too_large")
                row = self._void_row(stream, row, "too_large")
        self._say(stream, row.n, Voided(row.to, row.lane, row.n, stream.floor, row.id))
        return True

    def _say(self, stream: Stream, n: int, body: Sent | Voided) -> None:
        round_ = stream.round
        self._hub.ask(body, lambda said: self._answered(stream, n, round_, said))

    def _list(self, stream: Stream, account: int) -> DeviceList | None:
        if (known := self._lists.of(account)) is None:
            self._lists.want(account, stream, lambda _: self._pump(stream), lambda: self._wait(stream))
        return known

    def _is_ready(self, stream: Stream, row: Outgoing, to: DeviceList, own: DeviceList) -> bool:
        """Whether there is a session with everyone who has no envelope yet; asked for if not."""
        fresh = unsealed(row, addressed(self._hub, row, to, own))
        return not fresh or self._sealer.ready(
            fresh, stream, lambda: self._pump(stream), lambda: self._wait(stream)
        )  # fmt: skip

    def _wait(self, stream: Stream) -> None:
        """A list or a key cannot be had now: by the schedule, or as soon as it can."""
        if stream.rows and not stream.paused:
            self._pause(stream)
            stream.waits = True

    def _agreed(self, account: int) -> None:
        for stream in list(self._streams.values()):
            if stream.waits and account in (stream.to, self._hub.identity.account):
                stream.failures = 0
                self._begin(stream)

    def _rekeyed(self, account: int) -> None:
        """What was sealed for the former key is sealed anew, for whoever has the new one."""
        for stream in self._streams.values():
            if stream.to == account:
                for row in list(stream.rows.values()):
                    if row.envelopes:
                        self._put(stream, replace(row, envelopes={}))

    # --- what the server says -------------------------------------------------------------------

    def _answered(self, stream: Stream, n: int, round_: int, said: Said) -> None:
        if (row := stream.rows.get(n)) is None:
            return  # an answer to an earlier attempt came first
        match said:
            case Accepted():
                self._accepted(stream, row, said)
            case NumberVoided() if row.void:
                pass  # to a late copy of what was given up; the void itself is answered, too
            case Settled() | IdReused() if not row.void:
                self._renumber(stream, row)
            case Settled() | NumberVoided() | IdReused():
                self._drop(stream, row)
                if not row.void:
                    self._fail(row, _word(said))
                self._progress(stream)
            case StaleDevices() if round_ != stream.round:
                # The next round is on its way already; but if every round ends before this is heard, it must count.
                self._lists.outdate(row.to, said.version)
            case Refusal() if round_ != stream.round and said.retry:
                pass  # likewise
            case OutOfOrder():
                self._out_of_order(stream, said.expected)
            case StaleDevices():
                self._stale(stream, row, said)
            case UnknownRecipient():
                if round_ == stream.round:
                    self._unknown_recipient(stream)
            case RateLimited():
                self._pause(stream, said.retry_ms)
            case Refusal() if said.retry:
                self._pause(stream)
            case _ if row.void:
                # Not even the void is taken. What stands behind will ask for it again.
                self._drop(stream, row)
                self._pause(stream)
            case _:
                self._fail(row, _word(said))
                self._void(stream, row, _word(said))

    def _renumber(self, stream: Stream, row: Outgoing) -> None:
        """The number was used, and not here: this profile is an older copy of itself. The message takes the next one.

        It keeps its id: whoever has it already, from then, shows it once.
        """
        store, to, lane = self._hub.store, row.to, row.lane
        self._drop(stream, row)
        me, n = self._hub.identity.device, store.last_number(to, lane) + 1
        store.put_numbered(Numbered(me, to, lane, row.n, ""))  # its receipts are not about anything that is known here
        store.put_last_number(to, lane, n)
        store.put_numbered(Numbered(me, to, lane, n, row.original))
        self._put(stream, replace(row, n=n))
        stream.renumbered += 1
        if stream.renumbered % RENUMBERED_MAX or stream.paused:
            self._progress(stream)
        else:
            self._pause(stream)

    def _accepted(self, stream: Stream, row: Outgoing, said: Accepted) -> None:
        if said.id != row.id or said.tag not in (b"", row.tag):
            raise Misbehaved("an answer to something else")
        self._drop(stream, row)
        stream.renumbered = 0
        self.spoken.accepted(row)
        if then := self._when_sent.pop(row.id, None):
            then()
        if said.tag:
            self._ticks.sent(row, said)
        elif row.void == "given_up":
            self._fail(row, row.void)
        self._progress(stream)

    def _progress(self, stream: Stream) -> None:
        stream.failures, stream.noticed = 0, False
        if not stream.rows:
            # An answer that still comes finds nothing to change.
            self._streams.pop((stream.to, stream.lane), None)
        elif stream.paused:
            # The server is there after all: soon, so that the answers which come with this one are not asked for.
            soon = self._hub.now + self._hub.limits.soon_ms
            stream.due = soon if stream.due is None else min(stream.due, soon)
        else:
            stream.due = self._hub.now + self._hub.limits.answer_ms
            self._pump(stream)

    def _out_of_order(self, stream: Stream, expected: int) -> None:
        """An earlier number must come first. If nobody here knows it any more, it is given up."""
        if expected < 1:
            raise Misbehaved("a number that must come first, and is none")
        if expected < stream.floor:
            ident = new_id(self._hub)
            lost = address(self._hub, stream.to, stream.lane, expected, ident, ident, b"", 0)
            self._put(stream, replace(lost, void="lost"))
        if stream.failures:
            self._pause(stream)
        else:
            stream.failures = 1
            stream.pause(self._hub.now + self._hub.limits.soon_ms)

    def _stale(self, stream: Stream, row: Outgoing, said: StaleDevices) -> None:
        """Seal anew for whom there is now: at once the first time, by the schedule if that did not help."""
        self._lists.forget(row.to)
        self._lists.forget(self._hub.identity.account)
        if row.only and row.only in (*said.extra, *said.rekeyed):
            self._fail(row, "device_removed")
            self._void_row(stream, row, "device_removed")
        if stream.failures:
            self._pause(stream)
        else:
            stream.failures = 1
            self._begin(stream)

    def _unknown_recipient(self, stream: Stream) -> None:
        """Whoever wrote wants to know at once; the numbers are voided quietly, once there is somebody."""
        self._lists.forget(stream.to)
        for lane in Lane:
            other = self._streams.get((stream.to, lane), stream)
            for row in list(other.rows.values()):
                if not row.void:
                    self._fail(row, "unknown_recipient")
                    self._void_row(other, row, "unknown_recipient")
        self._pause(stream)

    # --- waiting --------------------------------------------------------------------------------

    def _pause(self, stream: Stream, at_least_ms: int = 0) -> None:
        """An attempt has failed: wait, and begin again from the lowest number."""
        hub, limits = self._hub, self._hub.limits
        stream.failures += 1
        stream.pause(hub.now + max(at_least_ms, delay_ms(stream.failures, limits, hub.chance)))
        failed_retries = stream.failures - 1
        if failed_retries >= limits.retries_before_notice and not stream.noticed:
            stream.noticed = True
            ids = tuple(r.original for r in stream.rows.values() if not (r.void or r.reseal or r.content))
            if ids:
                hub.tell(WaitingForNetwork(conversation_id(hub.identity.account, stream.to), ids))
        if stream.noticed and not hub.online:
            stream.due = None  # nothing left to count: the next connection sends it

    def _fail_old(self, stream: Stream) -> None:
        oldest = self._hub.now - self._hub.limits.lifetime_ms
        for row in list(stream.rows.values()):
            if row.composed_at >= oldest:
                break
            if not row.void:
                self._fail(row, "too_old")
                self._void(stream, row, "too_old")

    # --- ending ---------------------------------------------------------------------------------

    def _void(self, stream: Stream, row: Outgoing, why: str) -> None:
        """Give a number up, and say so now if the message itself is on its way already."""
        row = self._void_row(stream, row, why)
        if self._hub.online and not stream.paused and row.n <= stream.sent:
            self._ask(stream, row)

    def _void_row(self, stream: Stream, row: Outgoing, why: str) -> Outgoing:
        row = replace(row, void=why)
        self._put(stream, row)
        return row

    def _fail(self, row: Outgoing, reason: str) -> None:
        message = self._hub.store.message(row.original) if row.reseal else None
        if message is not None and reason == "device_removed" and account_of(row.only) == message.peer:
            self.on_removed(message, row.only, self._hub.now, reason)
        elif row.reseal:
            self._ticks.reseal_failed(row.original, row.only, reason)
        elif row.void != "lost":
            self._ticks.failed(row.original, reason)

    def _put(self, stream: Stream, row: Outgoing) -> None:
        stream.put(row)
        self._hub.store.put_outgoing(row)

    def _drop(self, stream: Stream, row: Outgoing) -> None:
        del stream.rows[row.n]
        self._hub.store.drop_outgoing(row.to, row.lane, row.n)


def _word(said: Refusal | Said) -> str:
    """The name of an answer as a reason: `id_reused`."""
    return _CAPITAL.sub(r"_\1", type(said).__name__).lower()
