# pyright: reportPrivateUsage=false
"""Bugs at the doors: who is let in, what is handed out, how far, how often, and to whom an answer goes."""

from __future__ import annotations

from nightmail.gateway import greeting
from nightmail.gateway.gateway import Gateway
from nightmail.gateway.pump import Pump
from nightmail.gateway.session import Session

from .tools import Bug, Focus, edit, edit_method

DOORS = ("tests/gateway",)
BOTH = ("node", "cluster")

BUGS = (
    Bug("the pump ignores credit",
        edit_method(Pump, "_credit",
                    "credit = limits.credit_entries - (handed[0] - acked[0]) - (handed[1] - acked[1])",
                    "credit = limits.credit_entries"), BOTH, DOORS),
    Bug("queue empty is said before everything is handed out",
        edit_method(Pump, "pull",
                    "if self.owes == OWED_DRAINED and not self._loading:\n        self.owes, self._since = 0, now",
                    "if self.owes & OWED_DRAINED:\n        self.owes, self._since = self.owes & ~OWED_DRAINED, now"),
        ("node",), DOORS),
    Bug("a repeat offers the newest entry",
        edit_method(Pump, "repeat", "self._desk.offer(self._device, lane, after, 1,",
                    "self._desk.offer(self._device, lane, self._handed[lane] - 1, 1,"), BOTH, DOORS, seconds=12),
    Bug("a repeat offers everything unacknowledged",
        edit_method(Pump, "repeat", "self._desk.offer(self._device, lane, after, 1,",
                    "self._desk.offer(self._device, lane, after, 100,"), BOTH, DOORS, seconds=12),
    Bug("a number is passed over when it is handed out",
        edit_method(Pump, "_hand_out", "item[0] + len(item[1]) - 1 if", "item[0] + len(item[1]) if"), BOTH, DOORS),
    Bug("what was handed out is handed out again",
        edit_method(Pump, "_hand_out", "item[0] + len(item[1]) - 1 if", "max(item[0] + len(item[1]) - 2, 0) if"),
        BOTH, DOORS),
    Bug("what waits behind a batch is forgotten", edit_method(Pump, "_pull", "if more:", "if False:"), BOTH, DOORS),
    Bug("an ack gives no credit back",
        edit_method(Pump, "acked", "self._acked[lane] = upto", "pass"), BOTH, DOORS),
    Bug("receipts begin behind the cursor",
        edit_method(Pump, "_pull_receipts", "after, limit, inside = self._handed[RECEIPTS],",
                    "after, limit, inside = self._handed[RECEIPTS] + 1,"), BOTH, DOORS),
    Bug("a displaced session is taken for the newest",
        edit_method(Gateway, "seat", "self._live[session.device] = session",
                    "self._live[session.device] = older or session"), BOTH, DOORS, seconds=12),
    Bug("an answer goes to another question",
        edit_method(Session, "answered", "Answered(ref, said)", "Answered(ref + 1, said)"), BOTH, DOORS),
    Bug("any token will do",
        edit(greeting.recognize, "if device is None or not right:", "if device is None:"), BOTH, DOORS,
        focus=Focus({"lie": 20})),
    Bug("the form is not checked",
        edit_method(Session, "_take", "elif complaint := body.form(device, form):", "elif complaint := None:"), BOTH,
        DOORS, seconds=20),
    Bug("a seat is never renewed", edit_method(Gateway, "renew_seat", "if session.seat:", "if False:"), BOTH, DOORS),
)  # fmt: skip
