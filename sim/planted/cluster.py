"""Bugs in the cluster's runtime: what is lost between nodes is made up for, and every owner says the same."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.engine.cluster.followed_log import FollowedLog
from nightmail.engine.cluster.fresh_reads import FreshReads
from nightmail.engine.cluster.prompts import Prompts
from nightmail.engine.folding import Folding
from nightmail.engine.questions import Questions

from .tools import Bug, Focus, edit_method, method

CLUSTER = ("tests/engine/cluster", "tests/engine/test_questions.py")

NO_RECONNECTING = Focus(
    {"write": 10, "high_lane": 0.5, "read": 0, "cut": 0, "crash": 0, "offline": 0, "hang": 0, "second_link": 0},
    ("links", "takeovers"),
)
"""A device that comes back looks into its mailbox by itself, and one that is written to often is told of it often."""

BUGS = (
    Bug("a question that was lost is not asked again",
        edit_method(Questions, "tick", "now - asked >= self._again_ms", "False"), ("cluster",), CLUSTER),
    Bug("news that were lost are not made up for",
        lambda: method(Prompts, "tick", lambda _prompts: None), ("cluster",), CLUSTER, focus=NO_RECONNECTING),
    Bug("an owner that fell behind reads on from where it was",
        edit_method(FollowedLog, "replay", "self._follow(after)", "pass"), ("cluster",), CLUSTER),
    Bug("a checkpoint ends inside the span of a batch",
        edit_method(Folding, "run", "self.state.offset = batch.last", "pass"), ("cluster",),
        (*CLUSTER, "tests/engine/test_folding.py")),
    Bug("an owner skips a batch of a single record",
        edit_method(FollowedLog, "_count_upto", "batches, offset", "batches, offset + 1"), ("cluster",), CLUSTER),
    Bug("account rows are shown without asking for the log's end",
        lambda: method(FreshReads, "account", lambda reads, *asked: reads._mailboxes.account(*asked)),
        ("cluster",), CLUSTER),
    Bug("an account row is shown before the log's end is folded",
        lambda: method(FreshReads, "_has_folded", lambda reads, _end: reads._loop.ready), ("cluster",), CLUSTER),
    Bug("a request for the log's end serves questions that came after it",
        edit_method(FreshReads, "_ended", "for question in served)",
                    "for question in (*served, *self._new))\n        self._new = []"), ("cluster",), CLUSTER),
)  # fmt: skip
