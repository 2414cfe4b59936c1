"""While one shard's log is down, the checkpoints of all shards go on: none waits for another log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.faults.partition import Partition
from sim.world.world import Broken, World


class CheckpointsGoOn:
    def __init__(
        self, world: World, partitions: Sequence[Partition], pointer: Callable[[int], int], within_ms: int
    ) -> None:
        self._world, self._partitions, self._pointer = world, partitions, pointer
        self._within_ms = within_ms
        """What stands in a log is saved after this time."""

    def watch(self, down: Partition) -> None:
        """Judge all shards for as long as this log is down."""
        stood = [partition.last for partition in self._partitions]

        def judge() -> None:
            if not down.is_down:
                return
            self._world.hit("judged whether checkpoints go on")
            for shard, last in enumerate(stood):
                if self._pointer(shard) < last:
                    why = (
                        f"shard {shard} is saved up to {self._pointer(shard)}, and had {last} {self._within_ms} ms ago"
                    )
                    raise Broken("checkpoints go on", why)
            self.watch(down)

        self._world.later(self._within_ms, judge)
