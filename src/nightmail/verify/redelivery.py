"""Checks every entry that a device receives: was it delivered before, and was there a reason to deliver it again?

A server may deliver an entry again after a connection ended, because the acknowledgement may be lost with it. On a
living connection it may repeat the oldest unacknowledged entry, as a probe. It may not repeat an entry that it
provably knows to be stored on the device: the Hello of this connection covers it, or an acknowledgement covers it and
the server has answered something that the device sent after that acknowledgement.

Knows:   the frames of one device, in the order in which they passed the proxy.
Never:   delays or changes a frame.
"""

from __future__ import annotations

from nightmail.model.answers import Accepted
from nightmail.model.records import Acked, GroupSent, Sent
from nightmail.model.words import Lane
from nightmail.wire.frames import BadFrame, decode_from_device, decode_from_server
from nightmail.wire.items import Answered, Ask, Entries, Hello, Ping, Pong

NOTES = 20
"""How many violations are described."""


class RedeliveryCheck:
    """The frames between one device and the server, over all connections of the device."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.delivered = [0, 0]
        """The highest number that was delivered, per lane."""
        self.redelivered = 0
        self.unexplained = 0
        self.sends = 0
        """Messages that reached the server, including repeated ones."""
        self.notes: list[str] = []

    def connection(self) -> ConnectionCheck:
        """For a new connection."""
        return ConnectionCheck(self)

    def accepted(self) -> None:
        """Called when the server answers *sent*, before the device gets the answer. For subclasses."""

    def report(self, what: str) -> None:
        self.unexplained += 1
        if len(self.notes) < NOTES:
            self.notes.append(f"{self.name}: {what}")


class ConnectionCheck:
    """One connection."""

    def __init__(self, check: RedeliveryCheck) -> None:
        self._check = check
        self._acked = [0, 0]
        """Acknowledgements that reached the server, per lane."""
        self._known = [0, 0]
        """Acknowledgements that the server has provably processed, per lane."""
        self._delivered = [0, 0]
        self._asked: dict[tuple[str, int], tuple[int, int]] = {}
        """An unanswered request → what had been acknowledged before it."""

    def up(self, payload: bytes) -> bool:
        """A frame from the device that reached the server. True if it holds messages and only records."""
        try:
            items = decode_from_device(payload)
        except BadFrame:
            return False
        sends = 0
        for item in items:
            match item:
                case Hello():
                    self._acked = [item.normal, item.high]
                    self._known = self._acked.copy()
                    self._delivered = self._acked.copy()
                case Ask(ref=ref, body=Acked(lane=lane, upto=upto)):
                    self._acked[lane] = max(self._acked[lane], upto)
                    self._ask("ask", ref)
                case Ask(ref=ref, body=body):
                    sends += isinstance(body, Sent | GroupSent)
                    self._ask("ask", ref)
                case Ping():
                    self._ask("ping", item.nonce)
                case _:
                    pass
        self._check.sends += sends
        return bool(sends) and all(isinstance(item, Ask) for item in items)

    def down(self, payload: bytes) -> None:
        """A frame from the server."""
        try:
            items = decode_from_server(payload)
        except BadFrame:
            self._check.report("the server sent a frame that cannot be decoded")
            return
        for item in items:
            match item:
                case Answered():
                    self._answered("ask", item.ref)
                    if isinstance(item.said, Accepted):
                        self._check.accepted()
                case Pong():
                    self._answered("ping", item.nonce)
                case Entries():
                    self._entries(item.lane, item.first, len(item.entries))
                case _:
                    pass

    def _ask(self, kind: str, number: int) -> None:
        if number:
            self._asked[kind, number] = (self._acked[0], self._acked[1])

    def _answered(self, kind: str, number: int) -> None:
        for lane, upto in enumerate(self._asked.pop((kind, number), ())):
            self._known[lane] = max(self._known[lane], upto)

    def _entries(self, lane: Lane, first: int, count: int) -> None:
        check, last = self._check, first + count - 1
        check.redelivered += max(0, min(last, check.delivered[lane]) - first + 1)
        check.delivered[lane] = max(check.delivered[lane], last)
        if first <= self._known[lane]:
            check.report(f"{lane.name} {first} was delivered again; it was acknowledged up to {self._known[lane]}")
        elif first <= self._delivered[lane] and (count > 1 or first > self._acked[lane] + 1):
            check.report(
                f"{lane.name} {first} to {last} were delivered again on one connection: only the oldest may be"
            )
        self._delivered[lane] = max(self._delivered[lane], last)
