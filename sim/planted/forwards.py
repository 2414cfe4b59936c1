"""Bugs between shards: each thing is told once, in its order, before a checkpoint says that it was."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.engine.forwarder import Forwarder
from nightmail.model.records import Forwarded

from .tools import LOOP, Bug, edit_method, in_step, method


def _with_a_jump(_step: Step) -> Step:
    def wrong(state: ShardState, _by: int, _via: int, forwarded: Forwarded) -> None:
        if forwarded.k > state.shard.heard.get(forwarded.source, 0):
            state.shard.heard[forwarded.source] = forwarded.k
            state.derived.append(forwarded.body)

    return wrong


def _again(step: Step) -> Step:
    def wrong(state: ShardState, by: int, via: int, forwarded: Forwarded) -> None:
        if forwarded.k <= state.shard.heard.get(forwarded.source, 0):
            state.derived.append(forwarded.body)
        else:
            step(state, by, via, forwarded)

    return wrong


BUGS = (
    Bug("the pointer moves before forwards are durable",
        lambda: method(Forwarder, "settled", lambda _forwarder, _upto: True), ("cluster",), LOOP, seconds=3),
    Bug("a forward is accepted with a jump", in_step(Forwarded, _with_a_jump), ("cluster",)),
    Bug("a repeated forward is taken again", in_step(Forwarded, _again), ("cluster",)),
    Bug("a forward that failed is not repeated",
        edit_method(Forwarder, "_send", "if not durable:", "if False:"), ("cluster",), LOOP),
)  # fmt: skip
