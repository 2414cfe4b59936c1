"""Handing over what waits: in order, as much as the window allows, and again by the schedule until it is answered.

Knows:   when a stream goes on, and what must be known before a row can be sealed.
Touches: the rows of the streams, by sealing them and by giving up what cannot be sent.
Never:   skips a number, or decides what an answer asks of us: `answers.py` does.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nightmail.model.answers import Said
from nightmail.model.records import Sent, Voided
from nightmail.wire.items import Ask

from .events import WaitingForNetwork
from .framing import size_of
from .hub import Hub
from .lists import Lists
from .messages import conversation_id
from .retries import delay_ms
from .sealer import Sealer
from .sealing import addressed, seal, unsealed
from .store import DeviceList, Outgoing
from .stream import Stream
from .streams import Streams


class Sending:
    def __init__(self, hub: Hub, lists: Lists, sealer: Sealer, streams: Streams) -> None:
        self._hub, self._lists, self._sealer, self._streams = hub, lists, sealer, streams
        hub.rekeyed.append(self._rekeyed)
        hub.agreed.append(self._agreed)
        self.on_answer: Callable[[Stream, int, int, Said], None] = lambda stream, n, round_, said: None
        """Called with what the server says about a number, and the round in which it was asked."""

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        """Everything that is unanswered goes out at once, in order."""
        for stream in self._streams:
            stream.failures = 0
            self.begin(stream)

    def lost(self) -> None:
        for stream in self._streams:
            if stream.rows and not stream.paused:
                self.pause(stream)

    def deadline(self) -> int | None:
        dues: list[int] = []
        for stream in self._streams:
            if stream.due is not None:
                dues.append(stream.due)
            if stream.rows and not (oldest := stream.rows[stream.floor]).void:
                dues.append(oldest.composed_at + self._hub.limits.lifetime_ms + 1)
        return min(dues, default=None)

    def tick(self) -> None:
        hub = self._hub
        for stream in self._streams:
            self._end_old(stream)
            if stream.due is None or hub.now < stream.due:
                continue
            if stream.paused and hub.online:
                self.begin(stream)
            else:
                self.pause(stream)

    # --- how a stream goes on -------------------------------------------------------------------

    def add(self, row: Outgoing) -> None:
        """A new row, at the end of its stream."""
        stream = self._streams.of(row.to, row.lane)
        waits_for_a_void = stream.paused and bool(stream.rows) and stream.only_voids
        self._streams.put(stream, row)
        if waits_for_a_void:
            # Nobody waits for those; but now somebody does for what stands behind them.
            stream.begin()
        self._pump(stream)
        if stream.due is None and not stream.paused:
            self.pause(stream)  # offline: the schedule runs all the same

    def begin(self, stream: Stream) -> None:
        """A new round, from the lowest number."""
        stream.begin()
        self._end_old(stream)
        self._pump(stream)

    def progress(self, stream: Stream) -> None:
        """A number was answered for good."""
        stream.failures, stream.noticed = 0, False
        if not stream.rows:
            self._streams.let_go(stream)
        elif stream.paused:
            # The server is there after all: soon, so that the answers which come with this one are not asked for.
            soon = self._hub.now + self._hub.limits.soon_ms
            stream.due = soon if stream.due is None else min(stream.due, soon)
        else:
            stream.due = self._hub.now + self._hub.limits.answer_ms
            self._pump(stream)

    def pause(self, stream: Stream, at_least_ms: int = 0) -> None:
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

    def void(self, stream: Stream, row: Outgoing, why: str) -> None:
        """Give a number up, and say so now if the message itself is on its way already."""
        row = self._streams.void(stream, row, why)
        if self._hub.online and not stream.paused and row.n <= stream.sent:
            self._ask(stream, row)

    def to_nobody(self, stream: Stream) -> None:
        """Whoever wrote wants to know at once; the numbers are voided quietly, once there is somebody."""
        self._lists.forget(stream.to)
        for other in self._streams.to(stream.to):
            for row in list(other.rows.values()):
                if not row.void:
                    self._streams.end(other, row, "unknown_recipient")
        self.pause(stream)

    def _end_old(self, stream: Stream) -> None:
        oldest = self._hub.now - self._hub.limits.lifetime_ms
        for row in list(stream.rows.values()):
            if row.composed_at >= oldest:
                break
            if not row.void:
                self._streams.fail(row, "too_old")
                self.void(stream, row, "too_old")

    # --- what goes out --------------------------------------------------------------------------

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
                self.to_nobody(stream)
                return False
            if to is None or own is None:
                return False
            if self._sealer.is_held(row.to):
                stream.pause(None)
                stream.waits = True
                return False
            if row.only and row.only not in to.devices and row.only not in own.devices:
                row = self._streams.end(stream, row, "device_removed")
            else:
                if not self._is_ready(stream, row, to, own):
                    return False
                row, sent = seal(self._hub, self._sealer, row, stream.floor, to, own)
                if stream.rows[row.n] is not row:
                    self._streams.put(stream, row)
                if size_of(Ask(0, sent)) <= self._hub.frame_bytes:
                    self._say(stream, row.n, sent)
                    return True
                row = self._streams.end(stream, row, "too_large")
        self._say(stream, row.n, Voided(row.to, row.lane, row.n, stream.floor, row.id))
        return True

    def _say(self, stream: Stream, n: int, body: Sent | Voided) -> None:
        round_ = stream.round
        self._hub.ask(body, lambda said: self.on_answer(stream, n, round_, said))

    # --- what must be known first ---------------------------------------------------------------

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
            self.pause(stream)
            stream.waits = True

    def _agreed(self, account: int) -> None:
        for stream in self._streams:
            if stream.waits and account in (stream.to, self._hub.identity.account):
                stream.failures = 0
                self.begin(stream)

    def _rekeyed(self, account: int) -> None:
        """What was sealed for the former key is sealed anew, for whoever has the new one."""
        for stream in self._streams.to(account):
            for row in list(stream.rows.values()):
                if row.envelopes:
                    self._streams.put(stream, replace(row, envelopes={}))
