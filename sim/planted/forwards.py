"""Bugs between shards: each thing is told once, in its order, and a checkpoint has what is not there yet."""

# pyright: basic, reportPrivateUsage=false
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.forwarder import Forwarder, _Chain
from nightmail.engine.saver import Saver
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


SAVING = (*LOOP, "tests/engine/test_saver.py")
WIDE = ("tests/engine/cluster", "tests/conformance")

BUGS = (
    Bug("forwards are not in the checkpoint",
        lambda: method(Forwarder, "take_unsaved", lambda _forwarder: []), ("cluster",), SAVING),
    Bug("the pointer moves before forwards are saved",
        edit_method(WideRows, "_writes", "yield partial(self._store.write_forward, self._shard, to, k, record)",
                    "self._store.write_forward(self._shard, to, k, record, lambda _: None)"), ("owners",), WIDE),
    Bug("a checkpoint waits until its forwards are durable elsewhere",
        edit_method(Saver, "tick", "self._saving is None or", "self._saving is None or self._forwards or"),
        ("cluster",), SAVING, seconds=8),
    Bug("saved forwards are not sent after a takeover",
        edit_method(Forwarder, "begin", "_Chain(self._limits, count)", "_Chain(self._limits)"), ("cluster",), SAVING),
    Bug("forwards are sent newest first after a takeover",
        edit_method(_Chain, "next_batch", "self.ready or (self.unsaved if self.read == self.saved else ())",
                    "self.unsaved or self.ready"), ("cluster",), SAVING),
    Bug("a forward told while saved ones are read back overtakes them",
        edit_method(_Chain, "next_batch", "self.unsaved if self.read == self.saved else ()", "self.unsaved"),
        ("cluster",), SAVING),
    Bug("saved forwards are removed before they are durable elsewhere",
        lambda: method(_Chain, "removable", property(lambda chain: chain.saved)), ("cluster",), SAVING),
    Bug("forwards that a page did not hold are not read",
        edit_method(_Chain, "note_read", "page[-1][0] if len(page) == self._limits.page else upto", "upto"),
        ("cluster",), SAVING),
    Bug("a forward is accepted with a jump", in_step(Forwarded, _with_a_jump), ("cluster",)),
    Bug("a repeated forward is taken again", in_step(Forwarded, _again), ("cluster",)),
    Bug("a forward that failed is not repeated",
        edit_method(Forwarder, "_send", "if not durable:", "if False:"), ("cluster",), LOOP),
)  # fmt: skip
