"""What waits for an answer, by conversation and lane: the same here and in the store.

Knows:   every number that is not answered yet, and what giving a number up means for its message.
Touches: outgoing rows, and the ticks of the messages that they carry.
Never:   sends anything: `sending.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.store.rows import MessageNumber, Outgoing
from nightmail.model.ids import account_of
from nightmail.model.words import Lane

from .stream import OutgoingStream
from .ticks import Ticks


class Streams:
    def __init__(self, context: Context, ticks: Ticks) -> None:
        self._context, self._ticks = context, ticks
        self._streams: dict[tuple[int, Lane], OutgoingStream] = {}
        for row in context.store.outgoing():
            stream = self.of(row.to, row.lane)
            stream.put(row)
            stream.pause(0)  # the schedule runs from the beginning, connected or not

    def __iter__(self) -> Iterator[OutgoingStream]:
        """The streams that there are now; the caller may add and drop streams meanwhile."""
        return iter(list(self._streams.values()))

    def of(self, to: int, lane: Lane) -> OutgoingStream:
        if (stream := self._streams.get((to, lane))) is None:
            stream = self._streams[to, lane] = OutgoingStream(to, lane)
        return stream

    def to(self, account: int) -> list[OutgoingStream]:
        """The streams to an account, in either lane."""
        return [stream for lane in Lane if (stream := self._streams.get((account, lane))) is not None]

    def discard(self, stream: OutgoingStream) -> None:
        """Nothing waits in this stream. A late answer finds nothing to change."""
        assert not stream.rows
        self._streams.pop((stream.to, stream.lane), None)

    # --- rows -----------------------------------------------------------------------------------

    def put(self, stream: OutgoingStream, row: Outgoing) -> None:
        stream.put(row)
        self._context.store.put_outgoing(row)

    def drop(self, stream: OutgoingStream, row: Outgoing) -> None:
        """The number is answered for good."""
        del stream.rows[row.n]
        self._context.store.drop_outgoing(row.to, row.lane, row.n)

    def make_room(self, to: int, lane: Lane, n: int) -> None:
        """Move everything from number `n` on up by one. Nothing of it may have been taken by the server.

        Messages to a group that were not taken are sealed again, so what carried the former number is not taken later.
        """
        store, stream = self._context.store, self.of(to, lane)
        moved = [row for row in stream.rows.values() if row.n >= n]
        for row in reversed(moved):
            del stream.rows[row.n]
            store.drop_outgoing(to, lane, row.n)
        for row in moved:
            row = replace(row, n=row.n + 1)
            self.put(stream, row)
            store.put_numbered(MessageNumber(self._context.identity.device, to, lane, row.n, row.original))
        stream.sent = min(stream.sent, n - 1)

    def void(self, stream: OutgoingStream, row: Outgoing, why: str) -> Outgoing:
        """Give a number up. The server must still hear of it: it takes no number before the one below it."""
        row = replace(row, void=why)
        self.put(stream, row)
        return row

    def end(self, stream: OutgoingStream, row: Outgoing, why: str) -> Outgoing:
        """The row cannot be sent: the message has failed, and its number is given up."""
        self.fail(row, why)
        return self.void(stream, row, why)

    def fail(self, row: Outgoing, reason: str) -> None:
        """What the row carries has failed: for one device, or as a whole."""
        message = self._context.store.message(row.original) if row.reseal else None
        if message is not None and reason == "device_removed" and account_of(row.only) == message.peer:
            self._context.signals.recipient_removed(message, row.only, self._context.now, reason)
        elif row.reseal:
            self._ticks.reseal_failed(row.original, row.only, reason)
        elif row.void != "lost":
            self._ticks.failed(row.original, reason)
