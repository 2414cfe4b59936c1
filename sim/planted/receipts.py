# pyright: reportPrivateUsage=false
"""Bugs in receipts: intervals, order, what is told to whom."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.core import receipts
from nightmail.core.rules import Step
from nightmail.core.state import State
from nightmail.model.records import ChangesAcked, Read, Receipted
from nightmail.model.rows import Kept
from nightmail.model.words import State as Became

from .tools import Bug, Focus, edit, in_needs, in_step, without


def _one_interval(step: Step) -> Step:
    """From the lowest to the highest number: also what lies between, blocked, voided or unreadable."""

    def wrong(state: State, by: int, via: int, receipt: Receipted) -> None:
        step(state, by, via, receipt)
        account = state.accounts[receipt.by >> 12]
        for device in account.devices if account else ():
            changes = state.changes[device]
            for change in changes.items.values() if changes else ():
                if change.state != Became.FAILED and len(change.numbers) > 2:
                    change.numbers[:] = [change.numbers[0], change.numbers[-1]]

    return wrong


def _forgets_moved_ones(step: Step) -> Step:
    """An acknowledged receipt is dropped, although it has grown since it was handed out."""

    def wrong(state: State, by: int, via: int, acked: ChangesAcked) -> None:
        changes = state.changes[by]
        if changes is None or acked.upto > changes.head:
            step(state, by, via, acked)
            return
        step(state, by, via, ChangesAcked(changes.head))

    return wrong


def _read_hull(step: Step) -> Step:
    """Everything up to the last number read counts as read."""

    def wrong(state: State, by: int, via: int, read: Read) -> None:
        step(state, by, via, replace(read, spans=tuple(replace(span, low=1) for span in read.spans)))

    return wrong


BOTH = ("node", "cluster")

BUGS = (
    Bug("a receipt interval over a blocked number", in_step(Receipted, _one_interval), ("node", "cluster")),
    Bug("an ack of receipts drops those that grew", in_step(ChangesAcked, _forgets_moved_ones), ("node", "cluster")),
    Bug("a read receipt over unread numbers", in_step(Read, _read_hull), ("node", "cluster")),
    Bug("failures beyond the bound are forgotten", edit(receipts._note_failures, "if shared:", "if False:"), BOTH),
    Bug("failures of two reasons share an interval",
        edit(receipts._note_failures, "-r.reason), r, tuple", "-Reason.EXPIRED), r, tuple"), BOTH),
    Bug("a shared interval of failures covers those between",
        edit(receipts._note_failures, "r, tuple(shared))", "r, ((shared[0][0], shared[-1][1]),))"), BOTH,
        focus=Focus({"unreadable": 0.3})),
    Bug("needs of Receipted miss the receipts", in_needs(Receipted, without(Kept.CHANGES)), ("node",)),
)  # fmt: skip
