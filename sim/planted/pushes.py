# pyright: reportPrivateUsage=false
"""Bugs in waking devices: when, whom, by which token, and what becomes of a push."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import devices, mailbox, waking
from nightmail.core.pushes import looking, outcomes, reading, tokens
from nightmail.engine.cluster.registry import ClusterRegistry
from nightmail.engine.memory import MemoryRegistry, Wakes
from nightmail.outlets.push.waker import PushWaker

from .tools import Bug, Plant, all_of, edit, edit_method

FOLD_OF_PUSHES = ("tests/core/pushes", "tests/outlets/push/test_waker.py")
NODE, CLUSTER = ("pushes node", "pushes cluster"), ("pushes cluster",)


def _bug(name: str, plant: Plant, suites: tuple[str, ...] = NODE) -> Bug:
    return Bug(name, plant, suites, FOLD_OF_PUSHES, seconds=12)


BUGS = (
    _bug("only the first mail of a device wakes it", edit(
        mailbox.file, "if mailbox.push and not mailbox.waking:", "if mailbox.push and not mailbox.woke_at:",
    )),
    _bug("a receipt wakes", all_of((
        edit(reading.needs_wake, "if mailbox.marked:", "if True:"),
        edit(reading.is_undrained, "(mailbox.marked and marks(state, device) > 0)", "marks(state, device) > 0"),
        edit(reading.is_mark, "return not key[0] and not key[1] & 1", "return True"),
    ))),
    _bug("a repeat survives the drain", all_of((
        edit(reading.push_seen, "or not is_undrained(state, device, mailbox)", ""),
        edit(looking.step_looked, "if not is_undrained(state, device, mailbox):", "if False:"),
        edit(looking._next_look, "if not is_undrained(state, device, mailbox):", "if False:"),
    ))),
    _bug("connections are not said again after the registry was lost", all_of((
        edit_method(ClusterRegistry, "_signed", "self._unsaid = epoch, dict(self._here)", "_ = epoch, None"),
        edit_method(PushWaker, "_grace_until", "0 if lost_at is None else lost_at + self._limits.grace_ms", "0"),
    )), CLUSTER),
    _bug("a control message wakes", edit(
        mailbox.file, "if state.counts_waking and entry.kind is not CONTROL:", "if state.counts_waking:",
    )),
    _bug("what is drained is pushed all the same", edit(
        reading.push_seen, "or not is_undrained(state, device, mailbox)", "",
    )),
    _bug("a second wake is taken for the first", edit(
        waking.begin, "mailbox.woke_at = elapsed if elapsed > mailbox.woke_at else mailbox.woke_at + 1",
        "mailbox.woke_at = mailbox.woke_at or elapsed",
    )),
    _bug("a push is not repeated", edit(
        outcomes._repeat_at, "if ms and first_at + ms > elapsed", "if False",
    )),
    _bug("a push is repeated for ever", edit(
        outcomes._repeat_at, "default=0", "default=elapsed + 1_500",
    )),
    _bug("repeats count from the last push", edit(
        outcomes._next_at, "state.elapsed if is_first else target.first_at", "state.elapsed",
    )),
    _bug("a push that failed is repeated at once", edit(
        outcomes._next_at, "return state.elapsed + max(delay,", "return state.elapsed + max(0,",
    )),
    _bug("a token is not replaced", edit(
        tokens.step_set, "(target is None or (target.platform, target.token) != (new.platform, new.token))",
        "target is None",
    )),
    _bug("a 410 for an old token removes a newer one", all_of((
        edit(outcomes.needs_pushed, "target.since", "(pushed.set_at if pushed.outcome is GONE else target.since)"),
        edit(outcomes.step_pushed, "target.since", "(pushed.set_at if pushed.outcome is GONE else target.since)"),
    ))),
    _bug("the token of a revoked device stays", edit(
        devices._unlink, "if state.knows_pushes and", "if False and",
    )),
    _bug("a device that came in the grace time is pushed to", edit_method(
        MemoryRegistry, "claim_wake", "HELD if self.seat_of(device, now) else ", "",
    ), ("pushes node",)),
    _bug("there is no grace time after a start", edit_method(
        PushWaker, "__init__", "self.begin_grace()", "pass",
    )),
    _bug("a device is pushed to twice in a second", edit_method(
        Wakes, "wait_ms", "return at[device] + self._moment_ms - now if device in at else 0", "return 0",
    )),
)  # fmt: skip
