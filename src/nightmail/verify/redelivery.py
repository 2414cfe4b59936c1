"""What went over one device's wires, judged entry by entry: was it handed out again, and was there a reason?

A server may repeat an entry: after a connection ended, because the acknowledgement may be lost with it; and
on a living connection the oldest unacknowledged one, as a probe. It may not repeat what it provably knows to be
safe on the device: what the Hello of this very connection said, or an acknowledgement that was followed by an
answer to something said later.

Knows:   the frames of one device, in the order in which they passed.
Never:   holds up or changes a frame.
"""

from __future__ import annotations

from nightmail.model.answers import Accepted
from nightmail.model.records import Acked, Sent
from nightmail.model.words import Lane
from nightmail.wire.frames import BadFrame, decode_from_device, decode_from_server
from nightmail.wire.items import Answered, Ask, Entries, Hello, Ping, Pong

NOTES = 20
"""Examples that are kept."""


class RedeliveryCheck:
    """Everything that passed between one device and the server, over all its connections."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.handed = [0, 0]
        """The highest number of each lane that was ever handed out."""
        self.redelivered = 0
        self.unexplained = 0
        self.sends = 0
        """Messages that reached the server, repeated ones included."""
        self.notes: list[str] = []

    def connection(self) -> ConnectionCheck:
        """A new connection."""
        return ConnectionCheck(self)

    def accepted(self) -> None:
        """The server has just said *sent*. The device has not even heard it yet."""

    def blame(self, what: str) -> None:
        self.unexplained += 1
        if len(self.notes) < NOTES:
            self.notes.append(f"{self.name}: {what}")


class ConnectionCheck:
    """One connection."""

    def __init__(self, check: RedeliveryCheck) -> None:
        self._check = check
        self._said = [0, 0]
        """How far the device has acknowledged, as far as it got through."""
        self._known = [0, 0]
        """How far the server provably knows."""
        self._handed = [0, 0]
        self._asked: dict[tuple[str, int], tuple[int, int]] = {}
        """A question under way → what had been acknowledged before it was asked."""

    def up(self, payload: bytes) -> bool:
        """The device said this, and it got through. Whether it carries messages and nothing but records."""
        try:
            items = decode_from_device(payload)
        except BadFrame:
            return False
        sends = 0
        for item in items:
            match item:
                case Hello():
                    self._said = [item.normal, item.high]
                    self._known = self._said.copy()
                    self._handed = self._said.copy()
                case Ask(ref=ref, body=Acked(lane=lane, upto=upto)):
                    self._said[lane] = max(self._said[lane], upto)
                    self._ask("ask", ref)
                case Ask(ref=ref, body=body):
                    sends += isinstance(body, Sent)
                    self._ask("ask", ref)
                case Ping():
                    self._ask("ping", item.nonce)
                case _:
                    pass
        self._check.sends += sends
        return bool(sends) and all(isinstance(item, Ask) for item in items)

    def down(self, payload: bytes) -> None:
        """The server said this."""
        try:
            items = decode_from_server(payload)
        except BadFrame:
            self._check.blame("the server said something that cannot be read")
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
            self._asked[kind, number] = (self._said[0], self._said[1])

    def _answered(self, kind: str, number: int) -> None:
        for lane, upto in enumerate(self._asked.pop((kind, number), ())):
            self._known[lane] = max(self._known[lane], upto)

    def _entries(self, lane: Lane, first: int, count: int) -> None:
        check, last = self._check, first + count - 1
        check.redelivered += max(0, min(last, check.handed[lane]) - first + 1)
        check.handed[lane] = max(check.handed[lane], last)
        if first <= self._known[lane]:
            check.blame(f"{lane.name} {first} came again; the server knew of {self._known[lane]}")
        elif first <= self._handed[lane] and (count > 1 or first > self._said[lane] + 1):
            check.blame(f"{lane.name} {first} to {last} came again on one connection: only the oldest may")
        self._handed[lane] = max(self._handed[lane], last)
