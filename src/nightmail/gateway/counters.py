"""What the gateway counts: plain integers, read when the metrics are scraped."""

from __future__ import annotations


class Counters:
    __slots__ = (
        "bytes_in", "bytes_out", "claims_limited", "closed", "connected", "displaced", "drained", "frames_in",
        "frames_out", "links_limited", "malformed", "not_admitted", "rate_limited", "repeated",
        "requests_limited", "strangers_dropped", "submitted", "suspected", "unauthorized",
    )  # fmt: skip

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)
