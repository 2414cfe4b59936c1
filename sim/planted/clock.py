# pyright: reportPrivateUsage=false
"""Bugs in what is believed of the clock, and in setting the time back."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import due, expiry, numbering, shard
from nightmail.engine.clock import BatchClock

from .tools import FOLD, LOOP, Bug, Focus, edit, edit_method

REBOOTS = Focus({"write": 60, "offline": 30, "timer": 0.6}, ("wrong clock", "stops", "kills"))
CALM = Focus({"write": 60, "offline": 30, "timer": 0.6}, ("wrong clock",))
AWAY = Focus({"write": 60, "offline": 4, "timer": 0}, ("wrong clock",), offline_ms=20_000)
"""Worlds in which entries wait for longer than a clock is wrong."""

CLOCKS = ("clocks",)

BUGS = (
    Bug("a wrong clock is believed at a start",
        edit_method(BatchClock, "_judge", "(max(stored, self._folder_ms) or wall) - pace", "wall - pace"),
        ("node",), LOOP, seconds=25, focus=REBOOTS),
    Bug("a doubt never ends",
        edit_method(BatchClock, "to_believe", "self._doubted is None or", "self._doubted is not None or"),
        ("node",), LOOP, seconds=20, focus=CALM),
    Bug("a start does not know that the clock was doubted before",
        edit(shard.step_clock_believed, "low = min(believed.doubted_from, shard.doubted_from or believed.doubted_from)",
             "low, shard.doubted_elapsed = believed.doubted_from, 0"),
        CLOCKS, FOLD),
    Bug("what is planned by a wrong clock stays when the time is set back",
        edit(shard.step_clock_set_back, "shard.set_back_ms += shard.now - back.to", "shard.set_back_ms += 0"),
        ("node",), FOLD, seconds=45, focus=AWAY),
    Bug("stamps go back with the time",
        edit(numbering.take_number, "at = last + 1", "pass"),
        ("node", "cluster"), FOLD, seconds=20, focus=CALM),
    Bug("an answer to what a wrong clock has stamped goes back",
        edit(numbering.take_number, "max(at, shard.newest_time)", "at"),
        ("node",), FOLD, seconds=20, focus=CALM),
    Bug("a timer of before a wrong clock ends early when the time was set back",
        edit(due.too_early_until, "if _leapt_ms(state, planned) else", "if False else"),
        CLOCKS, FOLD),
    Bug("a timer that is set while stamps are ahead ends early by a second wrong clock",
        edit(due.too_early_until, "if planned:", "if False:"),
        CLOCKS, FOLD),
    Bug("a set-back makes older what was planned during a doubt",
        edit(shard._note_set_back, "if shard.fold < UNDOING_FOLD:", "if True:"), CLOCKS, FOLD),
    Bug("a set-back forgets what was filed during a doubt",
        edit(shard.step_clock_set_back, "if shard.fold < UNDOING_FOLD:", "if True:"), CLOCKS, FOLD),
    Bug("an entry of before a wrong clock ends early when the time was set back",
        edit(expiry._too_old, "+ limits.ttl_ms > state.now:", "+ limits.ttl_ms > state.elapsed:"),
        CLOCKS, FOLD),
)  # fmt: skip
