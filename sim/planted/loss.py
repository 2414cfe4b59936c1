# pyright: reportPrivateUsage=false
"""Bugs by which a copy ends, or never begins, and nobody answers for it. The ledger sees each of them."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import blocking, copies, expiry, late_filing, send
from nightmail.core.groups import sending
from nightmail.core.letters import endings
from nightmail.core.receipts import Verdicts

from .tools import Bug, Focus, Plant, edit, edit_method

LEDGER = ("tests/core/test_ledger.py",)
NODE = ("node", "cluster")
GROUPS = ("groups node", "groups cluster")
SCHEDULES = ("schedules node", "schedules cluster")


def _bug(name: str, plant: Plant, suites: tuple[str, ...] = NODE, focus: Focus | None = None) -> Bug:
    return Bug(name, plant, suites, LEDGER, seconds=12 if suites is GROUPS else 6, focus=focus)


BUGS = (
    _bug("what expires is dropped without a receipt", edit(
        expiry._fail, "verdicts.fail(entry, reason)", "pass",
    )),
    _bug("failures are collected and told to nobody", edit_method(
        Verdicts, "tell",
        "state.tell(by >> DEVICE_BITS, receipt)\n        state.ledger.fail(reason, count_in(spans))", "pass",
    )),
    _bug("a full device is passed over in silence", edit(
        send.step_sent,
        "            state.tell(account_of(by), full)\n            state.ledger.fail(Reason.MAILBOX_FULL)\n", "",
    )),
    _bug("own copies are sealed for nothing", edit(
        send.step_sent, "state.tell(account_of(by), copied)", "pass",
    )),
    _bug("an own copy for a full device is forgotten", edit(
        copies.step_copied,
        "            _note_uncopied(state, copied, account, device, Reason.MAILBOX_FULL)\n", "",
    )),
    _bug("what waits from a blocked account ends unseen", edit(
        blocking.step_swept, "        state.notes.append(Withheld(state.now, device, lane, tuple(seqs)))\n"
        "        state.ledger.withheld += len(seqs)\n", "",
    ), focus=Focus({"block": 30})),
    _bug("a discarded message fails for nobody", edit(
        endings.step_discarded, "_give_up(state, discarded.offset, letter)", "pass",
    ), SCHEDULES),
    _bug("a replayed message is settled and not filed", edit(
        endings.step_replayed, "file_late(state, by, sent, letter.stamp, state.accounts[sent.to])", "pass",
    ), SCHEDULES),
    _bug("a scheduled message is not filed for a full device, in silence", edit(
        late_filing.file_late, "_tell_failed(state, by, sent, envelope.device, reason)", "pass",
    ), SCHEDULES),
    _bug("a key for a device that has left is left out in silence", edit(
        sending.pass_on, "            state.tell(account_of(by), left_out)\n            state.ledger.owed += 1\n"
        "            state.ledger.fail(Reason.DEVICE_REMOVED)\n", "            state.ledger.owed += 1\n",
    ), GROUPS),
)  # fmt: skip
