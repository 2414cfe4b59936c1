# pyright: reportPrivateUsage=false
"""Bugs of disappearing messages: from when a life is counted, how long it is, and what its end leaves."""

from __future__ import annotations

from nightmail.client.inbox.inbox import Inbox
from nightmail.client.outbox import envelopes
from nightmail.client.store.memory import MemoryStore
from nightmail.client.timers import lives
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.timers.life_clock import LifeClock

from .tools import Bug, Focus, edit, edit_method

TIMERS = ("tests/client/timers", "tests/conformance/test_store.py")
BUSY = Focus({"timer": 0.8, "read": 12, "crash": 4, "clock_back": 0.5}, ())
"""Most messages have a timer, are read, and meet restarts."""
RESEALING = Focus({"timer": 0.9, "unreadable": 0.3, "offline": 4}, ())

BUGS = (
    Bug("a life is counted from filing",
        edit_method(Inbox, "_file", "counted(context, message) if own or read_elsewhere else message",
                    "counted(context, message)"), ("node",), TIMERS, seconds=15, focus=BUSY),
    Bug("a life is counted from writing",
        edit(lives.counted, "context.life_clock.time() + message.life_ms",
             "int(message.id.split(':')[1]) + message.life_ms"), ("node",), TIMERS, seconds=15, focus=BUSY),
    Bug("a re-seal carries the whole life",
        edit(envelopes.content_of, "left_ms(context, message)", "message.life_ms"),
        ("node",), TIMERS, seconds=20, focus=RESEALING),
    Bug("no timer is taken for the shortest",
        edit(lives.agreed, "min(outside_ms or inside_ms, inside_ms or outside_ms)", "min(outside_ms, inside_ms)"),
        ("forged entries",), TIMERS, seconds=20),
    Bug("the longer of two lives counts",
        edit(lives.agreed, "min(outside_ms or inside_ms, inside_ms or outside_ms)", "max(outside_ms, inside_ms)"),
        ("forged entries",), TIMERS, seconds=20),
    Bug("a deadline is forgotten with a restart",
        edit_method(Deadlines, "__init__", "self._context = context",
                    "self._context = context; "
                    "[context.store.put_message(replace(m, deadline=0)) for m in context.store.ended(1 << 62)]"),
        ("node",), TIMERS, seconds=15, focus=BUSY),
    Bug("a message that disappeared is still found",
        edit_method(MemoryStore, "drop_message", 'self._put("words", message_id, _NOTHING)', "pass"),
        ("sealed",), TIMERS, seconds=20, raises=(KeyError,)),
    Bug("a clock that was set back lengthens lives",
        edit_method(LifeClock, "time", "max(now, self._from + now - self._started_at)", "now"),
        ("node",), TIMERS, seconds=15, focus=BUSY),
    Bug("an author forgets what nobody is known to have",
        edit_method(Deadlines, "_end", "message.by == me.device and message.state not in (Tick.DELIVERED, Tick.READ)",
                    "False"), ("node",), TIMERS, seconds=15, focus=BUSY),
)  # fmt: skip
