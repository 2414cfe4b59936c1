"""What the server says about a number, and what each answer asks of us.

Knows:   which answers end a wait, which ask for another attempt, and which mean that there will never be one.
Touches: the rows that are answered, the ticks of what was accepted, the lists that turn out to be out of date.
Never:   lets a number go that the server has not answered for good, or lets an answer of yesterday put off today.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.refusals import (
    IdReused,
    NumberVoided,
    OutOfOrder,
    RateLimited,
    Refusal,
    StaleDevices,
    UnknownRecipient,
)

from .errors import Misbehaved
from .hub import Hub
from .lists import Lists
from .sealing import address, new_id
from .sending import Sending
from .spoken import Spoken
from .store import Numbered, Outgoing
from .stream import Stream
from .streams import Streams
from .ticks import Ticks

RENUMBERED_MAX = 256
"""So many numbers in a row may turn out to be used before the schedule makes it wait."""
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


class Answers:
    def __init__(
        self, hub: Hub, lists: Lists, streams: Streams, sending: Sending, spoken: Spoken, ticks: Ticks
    ) -> None:  # fmt: skip
        self._hub, self._lists, self._streams, self._sending = hub, lists, streams, sending
        self._spoken, self._ticks = spoken, ticks

    def take(self, stream: Stream, n: int, round_: int, said: Said) -> None:
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
                self._streams.drop(stream, row)
                if not row.void:
                    self._streams.fail(row, _word(said))
                self._sending.progress(stream)
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
                    self._sending.to_nobody(stream)
            case RateLimited():
                self._sending.pause(stream, said.retry_ms)
            case Refusal() if said.retry:
                self._sending.pause(stream)
            case _ if row.void:
                # Not even the void is taken. What stands behind will ask for it again.
                self._streams.drop(stream, row)
                self._sending.pause(stream)
            case _:
                self._streams.fail(row, _word(said))
                self._sending.void(stream, row, _word(said))

    def _accepted(self, stream: Stream, row: Outgoing, said: Accepted) -> None:
        if said.id != row.id or said.tag not in (b"", row.tag):
            raise Misbehaved("an answer to something else")
        self._streams.drop(stream, row)
        stream.renumbered = 0
        self._spoken.accepted(row)
        if said.tag:
            self._ticks.sent(row, said)
        elif row.void == "given_up":
            self._streams.fail(row, row.void)
        self._sending.progress(stream)

    def _renumber(self, stream: Stream, row: Outgoing) -> None:
        """The number was used, and not here: this profile is an older copy of itself. The message takes the next one.

        It keeps its id: whoever has it already, from then, shows it once.
        """
        store, to, lane = self._hub.store, row.to, row.lane
        self._streams.drop(stream, row)
        me, n = self._hub.identity.device, store.last_number(to, lane) + 1
        store.put_numbered(Numbered(me, to, lane, row.n, ""))  # its receipts are not about anything that is known here
        store.put_last_number(to, lane, n)
        store.put_numbered(Numbered(me, to, lane, n, row.original))
        self._streams.put(stream, replace(row, n=n))
        stream.renumbered += 1
        if stream.renumbered % RENUMBERED_MAX or stream.paused:
            self._sending.progress(stream)
        else:
            self._sending.pause(stream)

    def _out_of_order(self, stream: Stream, expected: int) -> None:
        """An earlier number must come first. If nobody here knows it any more, it is given up."""
        if expected < 1:
            raise Misbehaved("a number that must come first, and is none")
        if expected < stream.floor:
            ident = new_id(self._hub)
            lost = address(self._hub, stream.to, stream.lane, expected, ident, ident, b"", 0)
            self._streams.void(stream, lost, "lost")
        if stream.failures:
            self._sending.pause(stream)
        else:
            stream.failures = 1
            stream.pause(self._hub.now + self._hub.limits.soon_ms)

    def _stale(self, stream: Stream, row: Outgoing, said: StaleDevices) -> None:
        """Seal anew for whom there is now: at once the first time, by the schedule if that did not help."""
        self._lists.forget(row.to)
        self._lists.forget(self._hub.identity.account)
        if row.only and row.only in (*said.extra, *said.rekeyed):
            self._streams.end(stream, row, "device_removed")
        if stream.failures:
            self._sending.pause(stream)
        else:
            stream.failures = 1
            self._sending.begin(stream)


def _word(said: Refusal | Said) -> str:
    """The name of an answer as a reason: `id_reused`."""
    return _CAPITAL.sub(r"_\1", type(said).__name__).lower()
