# pyright: reportPrivateUsage=false
"""Bugs in what is believed of the clock, and in setting the time back."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import due, expiry, numbering, shard
from nightmail.engine.clock import BatchClock

from .tools import FOLD, LOOP, Bug, Focus, edit, edit_method

WRONG = Focus({"write": 60, "offline": 20}, ("wrong clock", "stops"))
CALM = Focus({"write": 60, "offline": 30, "timer": 0.6}, ("wrong clock",))

BUGS = (
    Bug("a wrong clock is believed at a start",
        edit_method(BatchClock, "__call__", "(max(stored, self._folder_ms) or wall) - pace", "wall - pace"),
        ("node",), LOOP, seconds=20, focus=WRONG),
    Bug("a doubt never ends",
        edit_method(BatchClock, "to_believe", "self._doubted is None or", "self._doubted is not None or"),
        ("node",), LOOP, seconds=20, focus=CALM),
    Bug("what is planned by a wrong clock stays when the time is set back",
        edit(shard.step_clock_set_back, "shard.set_back_ms += shard.now - back.to", "shard.set_back_ms += 0"),
        ("node",), FOLD, seconds=25, focus=CALM),
    Bug("stamps go back with the time",
        edit(numbering.take_number, "at if at > last else last + 1", "at"),
        ("node", "cluster"), FOLD, seconds=20, focus=CALM),
    Bug("an answer to what a wrong clock has stamped goes back",
        edit(numbering.take_number, "max(at, shard.newest_time)", "at"),
        ("node",), FOLD, seconds=20, focus=CALM),
    Bug("a timer of before a wrong clock ends early when the time was set back",
        edit(due.is_too_early, "filed + life_ms > state.now and", "False and"),
        ("node",), FOLD, seconds=25, focus=CALM),
    Bug("an entry of before a wrong clock ends early when the time was set back",
        edit(expiry._too_old, "+ limits.ttl_ms > state.now:", "+ limits.ttl_ms > state.elapsed:"),
        ("node",), FOLD, seconds=25, focus=CALM),
)  # fmt: skip
