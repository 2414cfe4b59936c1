"""What the server answers about a number, and what each answer means.

Knows:   which answers are final, which ask for another attempt, and which mean that there will never be one.
Touches: the rows that are answered, the ticks of what was accepted, the lists that turn out to be out of date.
Never:   drops a number that the server has not answered for good, or lets an answer of an earlier round delay this one.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.errors import Misbehaved
from nightmail.client.machine.context import Context
from nightmail.client.store.rows import MessageNumber, Outgoing
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.model.answers import Accepted, GroupAccepted, Said, Settled
from nightmail.model.refusals import (
    IdReused,
    NotMember,
    NumberVoided,
    OutOfOrder,
    RateLimited,
    Refusal,
    StaleDevices,
    StaleGroup,
    UnknownRecipient,
)

from .control_copies import ControlCopies
from .envelopes import address, new_id
from .sending import Sending
from .stream import OutgoingStream
from .streams import Streams
from .ticks import Ticks

RENUMBERED_MAX = 256
"""How many numbers in a row may turn out to be used before the stream waits for its schedule."""
NOT_MEMBER_MS = 2 * 3_600_000
"""So long a message waits for a group that this device believes to be in. An account's new devices are told to its
groups within the hour. Who was removed and never got the notice, because it was away for a month, learns it so."""
UNEXPECTED = "unexpected_answer"
"""The reason of a failure if the server answered a send with something that answers no send."""


class Answers:
    def __init__(
        self, context: Context, lists: DeviceLists, streams: Streams, sending: Sending, control_copies: ControlCopies,
        ticks: Ticks,
    ) -> None:  # fmt: skip
        self._context, self._lists, self._streams, self._sending = context, lists, streams, sending
        self._control_copies, self._ticks = control_copies, ticks

    def take(self, stream: OutgoingStream, n: int, round_: int, said: Said, *, is_void: bool) -> None:
        if (row := stream.rows.get(n)) is None:
            return  # an answer to an earlier attempt was final
        if row.void and not is_void and isinstance(said, Refusal):
            return  # about what was given up since; the void itself is answered, too
        match said:
            case Accepted() | GroupAccepted():
                self._accepted(stream, row, said)
            case NumberVoided() if row.void:
                pass  # about another copy of the void, which is answered, too
            case Settled() | IdReused() if not row.void:
                self._renumber(stream, row)
            case Settled() | NumberVoided() | IdReused():
                self._streams.drop(stream, row)
                if not row.void:
                    self._streams.fail(row, _reason(said))
                self._sending.progress(stream)
            case StaleDevices() if round_ != stream.round:
                # The next round is under way already. But if every round ends before this answer comes, it must count.
                self._lists.outdate(row.to, said.version)
            case StaleGroup():
                self._context.signals.group_is_stale(row.to, said)
                if round_ == stream.round:
                    self._again(stream)
            case NotMember() if self._is_to_join(row):
                self._sending.pause(stream)
            case Refusal() if round_ != stream.round and said.retry:
                pass  # the next round asks again
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
                # Not even the void is taken. The numbers behind it will ask for it again.
                self._streams.drop(stream, row)
                self._sending.pause(stream)
            case _:
                self._streams.fail(row, _reason(said))
                self._sending.void(stream, row, _reason(said))

    def _is_to_join(self, row: Outgoing) -> bool:
        """Whether the group's shard may only not have heard yet of this device, or of its account."""
        is_new = self._context.now < row.composed_at + NOT_MEMBER_MS
        return is_new and not row.void and self._context.signals.is_member(row.to)

    def _accepted(self, stream: OutgoingStream, row: Outgoing, said: Accepted | GroupAccepted) -> None:
        if said.id != row.id or said.tag not in (b"", row.tag):
            raise Misbehaved("an answer to something else")
        self._streams.drop(stream, row)
        stream.renumbered = 0
        self._control_copies.accepted(row)
        if said.tag:
            self._ticks.sent(row, said)
        elif row.void == "given_up":
            self._streams.fail(row, row.void)
        self._sending.progress(stream)

    def _renumber(self, stream: OutgoingStream, row: Outgoing) -> None:
        """The number was used, but not by this row: this profile is an older copy of itself. Take the next number.

        The message keeps its id: a device that already has it shows it once.
        """
        store, to, lane = self._context.store, row.to, row.lane
        self._streams.drop(stream, row)
        self._context.signals.number_was_used(to)
        me, n = self._context.identity.device, store.last_number(to, lane) + 1
        store.put_numbered(
            MessageNumber(me, to, lane, row.n, "")
        )  # receipts for it are about something that this copy does not know
        store.put_last_number(to, lane, n)
        store.put_numbered(MessageNumber(me, to, lane, n, row.original))
        self._streams.put(stream, replace(row, n=n))
        stream.renumbered += 1
        if stream.renumbered % RENUMBERED_MAX or stream.paused:
            self._sending.progress(stream)
        else:
            self._sending.pause(stream)

    def _out_of_order(self, stream: OutgoingStream, expected: int) -> None:
        """An earlier number must come first. If this device no longer has it, it is given up."""
        if expected < 1:
            raise Misbehaved("a number that must come first, and is none")
        if expected < stream.floor:
            ident = new_id(self._context)
            lost = address(self._context, stream.to, stream.lane, expected, ident, ident, b"", 0)
            self._streams.void(stream, lost, "lost")
        if stream.failures:
            self._sending.pause(stream)
        else:
            stream.failures = 1
            stream.pause(self._context.now + self._context.limits.soon_ms)

    def _stale(self, stream: OutgoingStream, row: Outgoing, said: StaleDevices) -> None:
        """Seal again by the new list."""
        self._lists.forget(row.to)
        self._lists.forget(self._context.identity.account)
        if row.only and row.only in (*said.extra, *said.rekeyed):
            self._streams.end(stream, row, "device_removed")
        self._again(stream)

    def _again(self, stream: OutgoingStream) -> None:
        """Begin again: at once the first time, by the schedule if that did not help."""
        if stream.failures:
            self._sending.pause(stream)
        else:
            stream.failures = 1
            self._sending.begin(stream)


def _reason(said: Said) -> str:
    """Why a message failed, as one word for programs."""
    return said.word if isinstance(said, Refusal) else UNEXPECTED
