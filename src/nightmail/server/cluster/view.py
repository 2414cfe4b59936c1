"""What a node of a cluster tells its operator over HTTP, and its metrics.

Knows:   the figures of this node alone: those of the cluster are the sums over its nodes.
Touches: those figures, to read them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from nightmail.api.operator.alert_routes import AlertsShown
from nightmail.api.operator.schemas import ClockBrief, HistoryShown, OverviewShown, SpanName, StorageShown, TotalsShown
from nightmail.api.times import rfc3339
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyPage
from nightmail.server.heart import clock

if TYPE_CHECKING:
    from .node import ClusterNode

NOTHING = HistoryShown(0, [], {})


class ClusterNodeView(Collector):
    """No history is kept, and no survey of schedules is made: ask each account."""

    def __init__(self, node: ClusterNode) -> None:
        self._node = node
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def overview(self, after: int) -> OverviewShown:
        node = self._node
        at, started_at, not_ready = clock(), int(node.started_at * 1000), node.not_ready()
        counters = node.gateway.counters
        loops = [owner.loop for owner in node.shards.owners.values() if owner.loop]
        ledgers = [loop.state.ledger for loop in loops]
        totals = TotalsShown(
            sum(ledger.owed for ledger in ledgers), sum(ledger.delivered for ledger in ledgers),
            sum(sum(ledger.failed.values()) for ledger in ledgers),
            counters.not_admitted + counters.rate_limited + counters.requests_limited,
        )  # fmt: skip
        return OverviewShown(
            node.name, version("nightmail"), at, rfc3339(at), started_at, rfc3339(started_at), not not_ready,
            not_ready, totals, sum(loop.state.shard.dead for loop in loops), NOTHING,
        )  # fmt: skip

    def history(self, span: SpanName) -> HistoryShown:
        return NOTHING

    def storage(self) -> StorageShown:
        node, figures = self._node, self._node.figures
        owners = [owner for owner in node.shards.owners.values() if owner.loop and owner.rows]
        loops = [owner.loop for owner in owners if owner.loop]
        disk, seen = shutil.disk_usage(node.folder), node.clock_seen()
        return StorageShown(
            folder=str(node.folder.absolute()), disk_free_bytes=disk.free, disk_total_bytes=disk.total,
            tight=False, why_tight="", log_bytes=0, log_segments=0, rows_bytes=0,
            rows_in_memory=sum(sum(map(len, loop.state.tables())) for loop in loops),
            offset=max((loop.state.offset for loop in loops), default=0),
            pointer=max((owner.rows.pointer for owner in owners if owner.rows), default=0),
            unsaved_rows=sum(loop.unsaved for loop in loops), unsaved_bytes=sum(loop.unsaved_bytes for loop in loops),
            checkpoints=figures.checkpoints, checkpoint_at=figures.checkpoint_at, checkpoint_ms=figures.checkpoint_ms,
            commits_failed=figures.failed_commits, troubles=figures.troubles, records_poisoned=figures.poisoned,
            fold=min((loop.state.shard.fold for loop in loops), default=0), checked_at=0, checked_ms=0,
            clock=ClockBrief(seen.state.value, seen.wall_ms - seen.time_ms),
        )  # fmt: skip

    def count_schedules(self, then: Callable[[ScheduleCounts | None], None]) -> None:
        then(None)

    def survey_schedules(
        self, state: ScheduleState | None, after: tuple[int, int], then: Callable[[SurveyPage | None], None]
    ) -> None:
        then(None)

    def alerts(self) -> AlertsShown:
        """None are judged here: Prometheus sees all nodes."""
        return AlertsShown(0, rfc3339(0), [])

    # --- metrics --------------------------------------------------------------------------------

    def scrape(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        node, figures = self._node, self._node.figures
        owners = node.shards.owners.values()
        gauges = {
            "ready": ("1 if messages are taken.", not node.not_ready()),
            "connections": ("Connections that are open.", node.gateway.connections),
            "cluster_nodes": ("Nodes that are known, this one included.", 1 + len(node.nodes.others)),
            "cluster_shards_owned": ("Shards that this node owns.", len(owners)),
            "cluster_shards_serving": (
                "Shards that this node serves.",
                sum(own.mailboxes is not None for own in owners),
            ),
            "cluster_shards_orphaned": ("Shards without an owner that this node knows.", node.orphaned),
            "cluster_unsaved_rows": (
                "Rows and lines of this node's shards that only the log has.",
                sum(own.loop.unsaved for own in owners if own.loop),
            ),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"nightmail_{name}", text, float(value))
        counters = {
            "checkpoints": ("Checkpoints made durable.", figures.checkpoints),
            "storage_troubles": ("Times that storage kept failing.", figures.troubles),
            "records_poisoned": ("Records set aside since the start.", figures.poisoned),
            "cluster_packets_lost": ("Packets to other nodes that found a queue full.", node.links.lost),
            "cluster_packets_refused": ("Packets of other nodes that were not understood.", node.exchange.refused),
        }
        for name, (text, value) in counters.items():
            yield CounterMetricFamily(f"nightmail_{name}", text, float(value))
