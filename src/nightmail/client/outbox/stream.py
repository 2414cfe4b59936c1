"""One conversation and lane as the sender sees it: numbers in order, and where to go on.

The server takes only the next number. So when one is delayed, everything behind it is, too, and the whole stream begins
again from its lowest number (go-back-n). A *round* is one such pass: what an answer of an earlier round says about
waiting no longer counts.
"""

from __future__ import annotations

from nightmail.client.store.rows import Outgoing
from nightmail.model.words import Lane


class OutgoingStream:
    __slots__ = ("due", "failures", "lane", "noticed", "paused", "renumbered", "round", "rows", "sent", "to", "waits")

    def __init__(self, to: int, lane: Lane) -> None:
        self.to, self.lane = to, lane
        self.rows: dict[int, Outgoing] = {}
        """Number → what waits under it; ascending."""
        self.sent = 0
        """The highest number that was sent in this round."""
        self.round = 0
        self.failures = 0
        """Attempts in a row without any progress."""
        self.paused = False
        """Waiting for `due` before the next round."""
        self.due: int | None = None
        """Paused: when to begin again. Otherwise: when to stop waiting for an answer."""
        self.noticed = False
        """The app was told that this stream waits."""
        self.renumbered = 0
        """How many numbers in a row were used already."""
        self.waits = False
        """Paused for a list, for keys or for the person, and not for the network."""

    @property
    def floor(self) -> int:
        return next(iter(self.rows))

    @property
    def only_voids(self) -> bool:
        return all(row.void for row in self.rows.values())

    def put(self, row: Outgoing) -> None:
        """Add a row, or change one. Rows stay sorted, also when one is added below the floor (rare)."""
        is_low = bool(self.rows) and row.n not in self.rows and row.n < next(reversed(self.rows))
        self.rows[row.n] = row
        if is_low:
            self.rows = dict(sorted(self.rows.items()))

    def pause(self, until: int | None) -> None:
        self.round += 1
        self.sent, self.paused, self.due = 0, True, until

    def begin(self) -> None:
        """A new round, from the lowest number."""
        self.round += 1
        self.sent, self.paused, self.due, self.waits = 0, False, None, False
