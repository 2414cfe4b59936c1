"""What a node of a cluster tells its operator over HTTP, and the metrics that only such a node has.

Knows:   the figures of this node alone: those of the cluster are the sums over its nodes.
Touches: those figures, to read them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from nightmail.api.operator.schemas import ClockBrief, StorageShown
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyPage
from nightmail.server.metric_families import counter, gauge
from nightmail.server.operator_view import FiguresView

if TYPE_CHECKING:
    from .node import ClusterNode


class ClusterNodeView(FiguresView):
    """No survey of schedules is made: ask each account."""

    def __init__(self, node: ClusterNode) -> None:
        super().__init__(node)
        self._node = node

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


def cluster_metrics(node: ClusterNode) -> Iterator[Metric]:
    owners = node.shards.owners.values()
    serving = sum(owner.mailboxes is not None for owner in owners)
    yield gauge("cluster_nodes", "Nodes that are known, this one included.", 1 + len(node.nodes.others))
    yield gauge("cluster_shards_owned", "Shards that this node owns.", len(owners))
    yield gauge("cluster_shards_serving", "Shards that this node serves.", serving)
    yield gauge("cluster_shards_orphaned", "Shards without an owner that this node knows.", node.orphaned)
    yield gauge("cluster_redis_away", "1 if Redis does not answer.", node.registry.is_away)
    yield counter("cluster_redis_failures", "Pipelines that Redis did not answer.", node.registry.failures)
    yield counter("cluster_packets_lost", "Packets to other nodes that found a queue full.", node.links.lost)
    yield counter(
        "cluster_packets_refused", "Packets of other nodes that were not understood.", node.exchange.refused
    )  # fmt: skip
    yield gauge(
        "cluster_entries_balance", "Copies owed and not accounted for in this node's shards; 0 in all nodes together.",
        node.totals().ledger.lost,
    )  # fmt: skip
