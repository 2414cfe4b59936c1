"""What the node tells its operator over HTTP: at a glance, over time, its storage, its schedules.

Knows:   which figure stands for what.
Touches: the figures of heart, gateway and process, to read them.
Never:   costs anything between two questions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from nightmail.api.operator.schemas import ClockBrief, HistoryShown, OverviewShown, SpanName, StorageShown, TotalsShown
from nightmail.api.times import rfc3339
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.schedule_surveys import ScheduleCounts, SurveyPage

from .folder_metrics import files_of
from .heart import clock
from .history import SampleSpan, thinned

if TYPE_CHECKING:
    from .front import NodeFront
    from .node import Node

MINUTES: dict[SpanName, int] = {"6h": 360, "24h": 1_440, "7d": 10_080}
POINTS = 720
"""A longer answer would be finer than any chart that shows it."""


class FiguresView:
    """What any node tells, alone or in a cluster: its own figures."""

    def __init__(self, node: NodeFront) -> None:
        self._front, self._version = node, version("nightmail")
        self._answered: dict[SpanName, HistoryShown] = {}
        """The newest answer for each span, which is right until the next minute ends."""

    def overview(self, after: int) -> OverviewShown:
        node = self._front
        at, started_at, not_ready = clock(), int(node.started_at * 1000), node.not_ready()
        counts, refusals = node.message_counts, node.gateway.counters
        totals = TotalsShown(
            counts.accepted, counts.delivered, sum(counts.failed.values()),
            refusals.not_admitted + refusals.rate_limited + refusals.requests_limited,
        )  # fmt: skip
        return OverviewShown(
            node.name, self._version, at, rfc3339(at), started_at, rfc3339(started_at), not not_ready, not_ready,
            totals, node.totals().dead, self._shown(node.sampling.history.seconds.after(after)),
        )  # fmt: skip

    def history(self, span: SpanName) -> HistoryShown:
        history = self._front.sampling.history
        if span not in MINUTES:
            return self._shown(history.seconds.after(0))
        minutes, last = MINUTES[span], history.minutes.last
        known = self._answered.get(span)
        if known is None or known.last != last:
            samples = history.minutes.after(max(0, last - minutes))
            known = self._answered[span] = self._shown(
                thinned(history.columns, samples, -(-minutes // POINTS))
            )  # fmt: skip
        return known

    def _shown(self, samples: SampleSpan) -> HistoryShown:
        columns = self._front.sampling.history.columns
        named = {
            column.name: list[float | None](values) for column, values in zip(columns, samples.columns, strict=True)
        }
        return HistoryShown(samples.last, samples.times, named)


class NodeView(FiguresView):
    """Of a node alone."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._node = node

    def storage(self) -> StorageShown:
        heart, figures = self._node.heart, self._node.figures
        loop, log, disk = heart.loop, heart.log, shutil.disk_usage(heart.folder)
        segments, seen = files_of(heart.folder, "log-"), loop.clock_seen
        return StorageShown(
            folder=str(heart.folder.absolute()), disk_free_bytes=disk.free, disk_total_bytes=disk.total,
            tight=log.tight, why_tight=log.why_tight if log.tight else "",
            log_bytes=sum(segments), log_segments=len(segments), rows_bytes=sum(files_of(heart.folder, "rows.db")),
            rows_in_memory=sum(map(len, loop.state.tables())), offset=loop.state.offset, pointer=heart.rows.pointer,
            unsaved_rows=loop.unsaved, unsaved_bytes=loop.unsaved_bytes,
            checkpoints=figures.checkpoints, checkpoint_at=figures.checkpoint_at, checkpoint_ms=figures.checkpoint_ms,
            commits_failed=figures.failed_commits, troubles=figures.troubles, records_poisoned=figures.poisoned,
            fold=loop.state.shard.fold, checked_at=heart.checked_at, checked_ms=heart.checked_ms,
            clock=ClockBrief(seen.state.value, seen.wall_ms - seen.time_ms),
        )  # fmt: skip

    def count_schedules(self, then: Callable[[ScheduleCounts | None], None]) -> None:
        self._node.heart.survey.count(then)

    def survey_schedules(
        self, state: ScheduleState | None, after: tuple[int, int], then: Callable[[SurveyPage | None], None]
    ) -> None:
        self._node.heart.survey.page(state, after, then)
