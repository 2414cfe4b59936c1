"""Figures of several shards as one."""

from __future__ import annotations

from nightmail.core.state import ShardState
from nightmail.model.ledger import CopyLedger
from nightmail.server.shard_totals import LedgerGrowth


def state(shard: int, ledger: CopyLedger) -> ShardState:
    made = ShardState(shard, 4)
    made.ledger = ledger
    return made


def test_what_an_owner_before_has_counted_is_not_counted_again_and_growth_stays_when_the_shard_leaves() -> None:
    growth, ledger = LedgerGrowth(), CopyLedger(delivered=1_000, failed={2: 5}, repeated=3)
    shard = state(1, ledger)
    growth.look(shard)
    assert growth.total == CopyLedger()
    ledger.delivered, ledger.withheld, ledger.failed[3] = 1_004, 2, 1
    growth.look(shard)
    growth.forget(1)
    assert growth.total == CopyLedger(delivered=4, withheld=2, failed={3: 1})
    growth.look(shard)
    assert growth.total == CopyLedger(delivered=4, withheld=2, failed={3: 1})


def test_a_state_that_is_built_again_counts_nothing_twice() -> None:
    growth = LedgerGrowth()
    growth.look(state(1, CopyLedger(delivered=10)))
    growth.look(state(1, CopyLedger(delivered=12)))
    growth.look(state(1, CopyLedger(delivered=3)))
    growth.look(state(1, CopyLedger(delivered=13)))
    assert growth.total == CopyLedger(delivered=3)
