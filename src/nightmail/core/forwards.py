"""What another shard says: taken exactly once and in its order, however often it is said.

Knows:   how many things each other shard has told this one.
Touches: the shard's own row.
"""

from __future__ import annotations

from nightmail.model.records import Forwarded

from .rules import Steps, needs_nothing
from .shard import raise_fold
from .state import ShardState


def step_forwarded(state: ShardState, _by: int, _via: int, forwarded: Forwarded) -> None:
    heard = state.shard.heard.get(forwarded.source, 0)
    if forwarded.k <= heard:
        return
    if forwarded.k > heard + 1:
        state.shard.out_of_chain += 1
        return
    if forwarded.body.since > state.shard.fold:
        # The other shard was raised first. It was raised because every node supports that version, this one's, too.
        raise_fold(state, forwarded.body.since)
    state.shard.heard[forwarded.source] = forwarded.k
    state.derived.append(forwarded.body)


STEPS: Steps = {1: {Forwarded: (needs_nothing, step_forwarded)}}
OPTIMISTIC = {Forwarded}
