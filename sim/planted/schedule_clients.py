# pyright: reportPrivateUsage=false
"""Bugs of clients that schedule messages: what is asked again, sealed again, cancelled and shown."""

from __future__ import annotations

from nightmail.client.inbox.receipts import IncomingReceipts
from nightmail.client.own_devices.schedule_sync import ScheduleSync
from nightmail.client.schedules.outcomes import ScheduleOutcomes
from nightmail.client.schedules.scheduling import Scheduling
from nightmail.e2ee import peers

from .tools import Bug, edit, edit_method

WORLDS, TESTS = ("schedule clients",), ("tests of schedule clients",)
UNIT = ("tests/e2ee/test_peers.py",)

BUGS = (
    Bug("a message for later begins a session", edit(peers._open_first, "block.made == ONCE", "False"), WORLDS, UNIT),
    Bug("a retry seals a message for later again",
        edit_method(Scheduling, "_schedule", "if row.content is None:", "if True:"), WORLDS, UNIT),
    Bug("what may have been scheduled is cancelled without asking",
        edit_method(Scheduling, "cancel", "elif not row.asked_at and not row.serial:", "elif not row.serial:"),
        WORLDS, UNIT),
    Bug("a late copy of a cancelled request is forgotten",
        edit_method(Scheduling, "_cancelled", "self._schedule(row, self._context.now + HELD_MS)",
                    "self._outcomes.end(row, ScheduleState.CANCELLED)"), TESTS, UNIT),
    Bug("news that come before the answer are missed",
        edit_method(Scheduling, "_scheduled",
                    "has_news = row.id in self._repeated or contains(self._heard, said.serial)", "has_news = False"),
        WORLDS, UNIT),
    Bug("a stale message is sealed again by the same list",
        edit_method(Scheduling, "_found", "self._sealing.outdate(row)", "pass"), TESTS, UNIT),
    Bug("a cancelled message stays in the profile",
        edit_method(ScheduleOutcomes, "end", "body=row.body if is_kept else b\"\"", "body=row.body"), TESTS, UNIT),
    Bug("a delivered message is shown although it came as a copy",
        edit_method(ScheduleOutcomes, "_delivered", "if known is None and not", "if not"), TESTS, UNIT),
    Bug("receipts that come before the number are lost",
        edit_method(IncomingReceipts, "take", "self._early_receipts.keep(receipt)", "pass"), TESTS, UNIT),
    Bug("the own devices do not hear of what is scheduled",
        edit_method(ScheduleSync, "tell", "self._send([row], 0)", "pass"), TESTS, UNIT),
)  # fmt: skip
