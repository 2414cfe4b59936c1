"""What waits to be sent, by conversation and lane: the same here and in the store.

Knows:   every number that is not answered yet, and what it means for a message that its number is given up.
Touches: outgoing rows, and the ticks of the messages that they carry.
Never:   says anything to the server: `sending.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from nightmail.model.ids import account_of
from nightmail.model.words import Lane

from .hub import Hub
from .messages import Message
from .store import Outgoing
from .stream import Stream
from .ticks import Ticks


class Streams:
    def __init__(self, hub: Hub, ticks: Ticks) -> None:
        self._hub, self._ticks = hub, ticks
        self._streams: dict[tuple[int, Lane], Stream] = {}
        self.on_removed: Callable[[Message, int, int, str], object] = ticks.failed_on
        """Called when the device that a message was to be sealed for once more is gone."""
        for row in hub.store.outgoing():
            stream = self.of(row.to, row.lane)
            stream.put(row)
            stream.pause(0)  # the schedule runs from the first moment on, connected or not

    def __iter__(self) -> Iterator[Stream]:
        """Those that there are now: meanwhile some may go, and others come."""
        return iter(list(self._streams.values()))

    def of(self, to: int, lane: Lane) -> Stream:
        if (stream := self._streams.get((to, lane))) is None:
            stream = self._streams[to, lane] = Stream(to, lane)
        return stream

    def to(self, account: int) -> list[Stream]:
        """What waits for an account, in either lane."""
        return [stream for lane in Lane if (stream := self._streams.get((account, lane))) is not None]

    def let_go(self, stream: Stream) -> None:
        """Nothing waits in it. An answer that still comes finds nothing to change."""
        assert not stream.rows
        self._streams.pop((stream.to, stream.lane), None)

    # --- rows -----------------------------------------------------------------------------------

    def put(self, stream: Stream, row: Outgoing) -> None:
        stream.put(row)
        self._hub.store.put_outgoing(row)

    def drop(self, stream: Stream, row: Outgoing) -> None:
        """Its number is answered."""
        del stream.rows[row.n]
        self._hub.store.drop_outgoing(row.to, row.lane, row.n)

    def void(self, stream: Stream, row: Outgoing, why: str) -> Outgoing:
        """Give a number up. It still has to be said: the server takes no number before the one below it."""
        row = replace(row, void=why)
        self.put(stream, row)
        return row

    def end(self, stream: Stream, row: Outgoing, why: str) -> Outgoing:
        """It cannot be sent: the message has failed, and its number is given up."""
        self.fail(row, why)
        return self.void(stream, row, why)

    def fail(self, row: Outgoing, reason: str) -> None:
        """Tell whoever waits for what a row carries."""
        message = self._hub.store.message(row.original) if row.reseal else None
        if message is not None and reason == "device_removed" and account_of(row.only) == message.peer:
            self.on_removed(message, row.only, self._hub.now, reason)
        elif row.reseal:
            self._ticks.reseal_failed(row.original, row.only, reason)
        elif row.void != "lost":
            self._ticks.failed(row.original, reason)
