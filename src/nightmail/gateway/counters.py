"""What the gateway counts: plain integers, read when the metrics are scraped; and who was refused, for the log."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from nightmail.wire.networks import network

NETWORKS = 256
"""Networks that are told apart for each kind of refusal, until the next look."""


class Refusals(NamedTuple):
    """Of one kind, since the last look."""

    total: int
    busiest: str
    """The network that was refused most often; empty if none is known."""
    its_count: int


class RefusalCounts:
    """Who was refused: networks, never a device, a token or a content."""

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[str, Counter[str]] = {}

    def refuse(self, kind: str, address: str = "", count: int = 1) -> None:
        """Count a refusal of this kind, and where it came from."""
        setattr(self, kind, getattr(self, kind) + count)
        networks = self._by_kind.setdefault(kind, Counter())
        where = network(address)
        networks[where if where in networks or len(networks) < NETWORKS else ""] += count

    def take_refusals(self) -> dict[str, Refusals]:
        """Kind → refusals since the last call."""
        taken, self._by_kind = self._by_kind, {}
        found: dict[str, Refusals] = {}
        for kind, networks in taken.items():
            busiest = max(networks, key=lambda each: (bool(each), networks[each]))
            found[kind] = Refusals(networks.total(), busiest, networks[busiest])
        return found


class Counters(RefusalCounts):
    __slots__ = (
        "bytes_in", "bytes_out", "claims_limited", "closed", "connected", "displaced", "drained", "frames_in",
        "frames_out", "group_entries_pushed", "group_heads_told", "groups_asked", "groups_limited", "links_limited",
        "malformed", "not_admitted", "presence_limited", "presence_told",
        "rate_limited", "repeated", "requests_limited", "strangers_dropped", "submitted", "suspected", "too_fast",
        "typing_limited", "typing_passed", "unauthorized",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        for name in self.__slots__:
            setattr(self, name, 0)
