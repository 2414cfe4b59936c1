"""Takes a sample of the node's figures every second, for `history.py`.

Knows:   which figures an operator watches, and how they stood a second and a minute ago.
Touches: the figures of heart, gateway and process, to read them.
Never:   does anything per message.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from .heart import clock, pace
from .history import Column, FigureHistory, Merge
from .metrics import PAGE_BYTES
from .quantiles import Recent, quantile

if TYPE_CHECKING:
    from .front import NodeFront

COLUMNS = (
    Column("messages_per_s", Merge.MEAN),
    Column("delivered_per_s", Merge.MEAN),
    Column("failed_per_s", Merge.MEAN),
    Column("latency_p50_ms", Merge.MEAN),
    Column("latency_p99_ms", Merge.HIGHEST),
    Column("commit_p99_ms", Merge.HIGHEST),
    Column("lag_p99_ms", Merge.HIGHEST),
    Column("connections", Merge.MEAN),
    Column("devices_online", Merge.MEAN),
    Column("mailbox_depth", Merge.HIGHEST),
    Column("dead_letters", Merge.HIGHEST),
    Column("unsaved_rows", Merge.HIGHEST),
    Column("cpu_percent", Merge.MEAN),
    Column("memory_bytes", Merge.HIGHEST),
    Column("bytes_in_per_s", Merge.MEAN),
    Column("bytes_out_per_s", Merge.MEAN),
)
MEDIAN, HIGH = 0.5, 0.99


class Sampling:
    def __init__(self, node: NodeFront) -> None:
        self._node = node
        self.history = FigureHistory(COLUMNS)
        self._at_ms = pace()
        self._counts = self._counted()
        self._second, self._minute = (self._watched() for _ in range(2))

    def _watched(self) -> tuple[Recent, Recent, Recent]:
        figures = self._node.figures
        return Recent(self._node.message_counts.latency), Recent(figures.commits), Recent(figures.lag)

    def _counted(self) -> tuple[float, ...]:
        """What only ever grows, in the order of its columns."""
        messages, traffic = self._node.message_counts, self._node.gateway.counters
        failed = sum(messages.failed.values())
        return messages.accepted, messages.delivered, failed, time.process_time(), traffic.bytes_in, traffic.bytes_out

    def take(self) -> None:
        """To be called about once a second."""
        now_ms, before = pace(), self._counts
        if now_ms <= self._at_ms:
            return
        self._counts = self._counted()
        seconds = (now_ms - self._at_ms) / 1000
        self._at_ms = now_ms
        messages, delivered, failed, cpu, read, written = (
            (now - then) / seconds for now, then in zip(self._counts, before, strict=True)
        )
        node, totals = self._node, self._node.totals()
        resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_BYTES
        values = (
            messages, delivered, failed, *_times(self._second).values(), node.gateway.connections, node.gateway.devices,
            node.message_counts.depth, totals.dead, totals.unsaved, 100 * cpu, resident, read, written,
        )  # fmt: skip
        self.history.add(clock(), now_ms, values, lambda: _times(self._minute))


def _times(watched: tuple[Recent, Recent, Recent]) -> dict[str, float]:
    """The columns of times, in milliseconds, of what was counted since the last call."""
    latency, commits, lag = watched
    found = latency.take()
    return {
        "latency_p50_ms": quantile(latency.bounds, found, MEDIAN),
        "latency_p99_ms": quantile(latency.bounds, found, HIGH),
        "commit_p99_ms": quantile(commits.bounds, commits.take(), HIGH),
        "lag_p99_ms": quantile(lag.bounds, lag.take(), HIGH),
    }
