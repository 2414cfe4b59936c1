"""What the shards of a node add up to: one on a node alone, those that it owns in a cluster.

Knows:   how the figures of several shards become one.
Touches: their state, to read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from nightmail.core.state import ShardState
from nightmail.engine.loop import Loop
from nightmail.engine.ports import Rows
from nightmail.model.ledger import CopyLedger


class ShardTotals(Struct, frozen=True):
    ledger: CopyLedger
    """As it stands: whatever happened before this node had those shards is in it."""
    unsaved: int
    unsaved_bytes: int
    unsaved_records: int
    rows_in_memory: int
    dead: int
    low: int
    exhausted: int


def add_up(shards: Iterable[tuple[Loop, Rows]]) -> ShardTotals:
    shards = list(shards)
    loops = [loop for loop, _ in shards]
    states = [loop.state for loop in loops]
    heads = [state.shard for state in states]
    return ShardTotals(
        _ledgers([state.ledger for state in states]),
        sum(loop.unsaved for loop in loops),
        sum(loop.unsaved_bytes for loop in loops),
        sum(max(0, loop.state.offset - rows.pointer) for loop, rows in shards),
        sum(sum(map(len, state.tables())) for state in states),
        sum(head.dead for head in heads), sum(head.low for head in heads), sum(head.exhausted for head in heads),
    )  # fmt: skip


def _ledgers(ledgers: list[CopyLedger]) -> CopyLedger:
    if len(ledgers) == 1:
        return ledgers[0]
    failed = Counter[int]()
    for ledger in ledgers:
        failed.update(ledger.failed)
    sums = {
        name: sum(getattr(ledger, name) for ledger in ledgers)
        for name in CopyLedger.__struct_fields__
        if name != "failed"
    }
    return CopyLedger(**sums, failed=dict(failed))


class LedgerGrowth:
    """What ledgers grew by while their shards were here: a counter must not fall because a shard has left."""

    def __init__(self) -> None:
        self.total = CopyLedger()
        self._seen: dict[int, dict[str | int, int]] = {}
        """Shard → the counts of its ledger, by name, or by the reason of a failure."""

    def look(self, state: ShardState) -> None:
        """What is seen for the first time was counted by an owner before."""
        ledger, total = state.ledger, self.total
        now: dict[str | int, int] = {name: getattr(ledger, name) for name in ("delivered", "withheld", "repeated")}
        now |= ledger.failed
        before = self._seen.setdefault(state.index, now)
        for name, count in now.items():
            # While a state is built again its counts are lower for a moment.
            if (more := count - before.get(name, 0)) <= 0:
                continue
            before[name] = count
            if isinstance(name, int):
                total.fail(name, more)
            else:
                setattr(total, name, getattr(total, name) + more)

    def forget(self, shard: int) -> None:
        self._seen.pop(shard, None)
