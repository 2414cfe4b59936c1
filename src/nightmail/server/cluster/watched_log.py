"""The log of a cluster, with the duration of each append measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from nightmail.engine.cluster.kafka.log import KafkaLog
from nightmail.server.observe import Figures

UNKNOWN = "the log does not say what became of it"


class WatchedSharedLog(KafkaLog):
    figures: Figures

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        super().append(shard, at, records, self.figures.commit(len(records), done, lambda: UNKNOWN, time.monotonic_ns))
