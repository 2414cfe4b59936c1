"""Sending what waits: in order, as much as the window allows, and again by the schedule until it is answered.

Knows:   when a stream goes on, and what must be there before a row can be sealed.
Touches: the rows of the streams, by sealing them and by giving up what cannot be sent.
Never:   skips a number, or decides what an answer means: `answers.py` does.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import WaitingForNetwork
from nightmail.client.link.framing import size_of
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import retry_ms
from nightmail.client.media.addressing import Addressing
from nightmail.client.messages import conversation_id
from nightmail.client.store.rows import DeviceList, Outgoing
from nightmail.client.timers.lives import left_ms
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Sealer
from nightmail.model.group_chain import is_group
from nightmail.model.records import GroupSealed, GroupSent, GroupVoided, Sent, Voided
from nightmail.wire.items import Ask

from .envelopes import addressed, seal, unsealed
from .stream import OutgoingStream
from .streams import Streams


class Sending:
    def __init__(self, context: Context, lists: DeviceLists, sealer: Sealer, streams: Streams) -> None:
        self._context, self._lists, self._sealer, self._streams = context, lists, sealer, streams

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        """Send everything that is unanswered at once, in order."""
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
                dues.append(oldest.composed_at + self._context.limits.lifetime_ms + 1)
        return min(dues, default=None)

    def tick(self) -> None:
        context = self._context
        for stream in self._streams:
            self._end_old(stream)
            if stream.due is None or context.now < stream.due:
                continue
            if stream.paused and context.online:
                self.begin(stream)
            else:
                self.pause(stream)

    # --- how a stream goes on -------------------------------------------------------------------

    def add(self, row: Outgoing) -> None:
        """Append a new row to its stream."""
        stream = self._streams.of(row.to, row.lane)
        waits_for_a_void = stream.paused and bool(stream.rows) and stream.only_voids
        self._streams.put(stream, row)
        if waits_for_a_void:
            # Voids may wait for the schedule; the new row behind them may not.
            stream.begin()
        self._pump(stream)
        if stream.due is None and not stream.paused:
            self.pause(stream)  # offline: the schedule runs all the same

    def begin(self, stream: OutgoingStream) -> None:
        """A new round, from the lowest number."""
        stream.begin()
        self._end_old(stream)
        self._pump(stream)

    def progress(self, stream: OutgoingStream) -> None:
        """A number was answered for good."""
        stream.failures, stream.noticed = 0, False
        if not stream.rows:
            self._streams.discard(stream)
        elif stream.paused:
            # The server is there after all: begin again soon, but after the answers that come together with this one.
            soon = self._context.now + self._context.limits.soon_ms
            stream.due = soon if stream.due is None else min(stream.due, soon)
        else:
            stream.due = self._context.now + self._context.limits.answer_ms
            self._pump(stream)

    def pause(self, stream: OutgoingStream, at_least_ms: int = 0) -> None:
        """An attempt has failed: wait, then begin again from the lowest number."""
        context, limits = self._context, self._context.limits
        stream.failures += 1
        stream.pause(context.now + max(at_least_ms, retry_ms(stream.failures, limits, context.chance)))
        failed_retries = stream.failures - 1
        if failed_retries >= limits.retries_before_notice and not stream.noticed:
            stream.noticed = True
            ids = tuple(r.original for r in stream.rows.values() if not (r.void or r.reseal or r.content))
            if ids:
                context.tell(WaitingForNetwork(conversation_id(context.identity.account, stream.to), ids))
        if stream.noticed and not context.online:
            stream.due = None  # nothing left to count: the next connection sends it

    def void(self, stream: OutgoingStream, row: Outgoing, why: str) -> None:
        """Give a number up, and send the void now if the message itself was already sent."""
        row = self._streams.void(stream, row, why)
        if self._context.online and not stream.paused and row.n <= stream.sent:
            self._ask(stream, row)

    def to_nobody(self, stream: OutgoingStream) -> None:
        """There is no such account: the messages have failed now; their numbers are voided once it exists."""
        self._lists.forget(stream.to)
        for other in self._streams.to(stream.to):
            for row in list(other.rows.values()):
                if not row.void:
                    self._streams.end(other, row, "unknown_recipient")
        self.pause(stream)

    def _end_old(self, stream: OutgoingStream) -> None:
        oldest = self._context.now - self._context.limits.lifetime_ms
        for row in list(stream.rows.values()):
            if row.composed_at >= oldest:
                break
            if not row.void:
                self._streams.fail(row, "too_old")
                self.void(stream, row, "too_old")

    # --- what goes out --------------------------------------------------------------------------

    def _pump(self, stream: OutgoingStream) -> None:
        """Send what the window allows."""
        context = self._context
        if not context.online or stream.paused or not stream.rows:
            return
        if is_group(stream.to):
            self._context.signals.prepare_for_group(stream)
        floor = stream.floor
        first = max(stream.sent + 1, floor)
        for n in range(first, floor + context.window):
            if (row := stream.rows.get(n)) is None:
                if n > next(reversed(stream.rows)):
                    break
                continue
            if not self._ask(stream, row):
                break
            stream.sent = n
        if stream.due is None and not stream.paused and stream.rows:
            stream.due = context.now + context.limits.answer_ms

    def _ask(self, stream: OutgoingStream, row: Outgoing) -> bool:
        """Send one row; False: a list or keys must come first, and the stream is pumped again when they are here."""
        if is_group(row.to):
            record = self._context.signals.record_for_group(stream, row)
            stream.waits = record is None
            if record is not None:
                self._say(stream, row.n, record)
            return record is not None
        if not row.void:
            to, own = self._list(stream, row.to), self._list(stream, self._context.identity.account)
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
            elif row.reseal and not row.content and self._is_over(row.original):
                row = self._streams.end(stream, row, "expired")
            else:
                fresh = unsealed(row, addressed(self._context, row, to, own))
                if fresh and not self._is_ready(stream, fresh):
                    return False
                addressing = Addressing.NAMED
                if row.has_file and fresh:
                    addressing = self._context.signals.addressing(row, fresh)
                if addressing is Addressing.WAITING:
                    stream.waits = True
                    return False
                if addressing is Addressing.NAMED:
                    row, sent = seal(self._context, self._sealer, row, stream.floor, to, own)
                    if stream.rows[row.n] is not row:
                        self._streams.put(stream, row)
                    if size_of(Ask(0, sent)) <= self._context.frame_bytes:
                        self._say(stream, row.n, sent)
                        return True
                row = self._streams.end(stream, row, "too_large" if addressing is Addressing.NAMED else "file_gone")
        self._say(stream, row.n, Voided(row.to, row.lane, row.n, stream.floor, row.id))
        return True

    def _is_over(self, message_id: str) -> bool:
        """Whether the life of an own message is over: nothing is left to seal again."""
        message = self._context.store.message(message_id)
        return message is None or bool(message.life_ms and not left_ms(self._context, message))

    def _say(self, stream: OutgoingStream, n: int, body: Sent | Voided | GroupSent | GroupVoided | GroupSealed) -> None:
        round_, answered = stream.round, self._context.signals.number_answered
        is_void = isinstance(body, Voided | GroupVoided)
        self._context.ask(body, lambda said: answered(stream, n, round_, said, is_void=is_void))

    # --- what must be there first ---------------------------------------------------------------

    def _list(self, stream: OutgoingStream, account: int) -> DeviceList | None:
        if (known := self._lists.of(account)) is None:
            self._lists.want(account, stream, lambda _: self._pump(stream), lambda: self._wait(stream))
        return known

    def _is_ready(self, stream: OutgoingStream, fresh: dict[int, int]) -> bool:
        """Whether there is a session with every device that has no envelope yet; asked for if not."""
        return self._sealer.ready(fresh, stream, lambda: self._pump(stream), lambda: self._wait(stream))

    def _wait(self, stream: OutgoingStream) -> None:
        """A list or a key is not available now: try by the schedule, or as soon as it is."""
        if stream.rows and not stream.paused:
            self.pause(stream)
            stream.waits = True

    def unblocked(self, account: int) -> None:
        for stream in self._streams:
            if stream.waits and account in (stream.to, self._context.identity.account):
                stream.failures = 0
                self.begin(stream)

    def go_on(self, to: int) -> None:
        """What a stream waited for is here."""
        for stream in self._streams.to(to):
            if stream.waits or not stream.paused:
                if stream.paused:
                    stream.failures = 0
                    self.begin(stream)
                else:
                    self._pump(stream)

    def key_changed(self, account: int) -> None:
        """What was sealed for devices of the former key is sealed again, for those of the new one."""
        for stream in self._streams.to(account):
            for row in list(stream.rows.values()):
                if row.envelopes:
                    self._streams.put(stream, replace(row, envelopes={}))
