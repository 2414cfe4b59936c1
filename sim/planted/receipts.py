# pyright: reportPrivateUsage=false
"""Bugs in receipts: intervals, order, what is told to whom."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.core import receipts
from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.model.records import Read, Receipted, ReceiptsAcked
from nightmail.model.rows import Kept
from nightmail.model.words import MessageState

from .tools import Bug, Focus, edit, in_needs, in_step, without


def _one_interval(step: Step) -> Step:
    """From the lowest to the highest number: also what lies between, blocked, voided or unreadable."""

    def wrong(state: ShardState, by: int, via: int, receipt: Receipted) -> None:
        step(state, by, via, receipt)
        account = state.accounts[receipt.by >> 12]
        for device in account.devices if account else ():
            receipts = state.receipts[device]
            for pending in receipts.items.values() if receipts else ():
                if pending.state != MessageState.FAILED and len(pending.numbers) > 2:
                    pending.numbers[:] = [pending.numbers[0], pending.numbers[-1]]

    return wrong


def _forgets_moved_ones(step: Step) -> Step:
    """An acknowledged receipt is dropped, although it has grown since it was handed out."""

    def wrong(state: ShardState, by: int, via: int, acked: ReceiptsAcked) -> None:
        receipts = state.receipts[by]
        if receipts is None or acked.upto > receipts.head:
            step(state, by, via, acked)
            return
        step(state, by, via, ReceiptsAcked(receipts.head))

    return wrong


def _read_hull(step: Step) -> Step:
    """Everything up to the last number read counts as read."""

    def wrong(state: ShardState, by: int, via: int, read: Read) -> None:
        step(state, by, via, replace(read, spans=tuple(replace(span, low=1) for span in read.spans)))

    return wrong


BOTH = ("node", "cluster")

BUGS = (
    Bug("a receipt interval over a blocked number", in_step(Receipted, _one_interval), ("node", "cluster")),
    Bug("an ack of receipts drops those that grew", in_step(ReceiptsAcked, _forgets_moved_ones), ("node", "cluster")),
    Bug("a read receipt over unread numbers", in_step(Read, _read_hull), ("node", "cluster")),
    Bug("failures beyond the bound are forgotten", edit(receipts._note_failures, "if shared:", "if False:"), BOTH),
    Bug("failures of two reasons share an interval",
        edit(receipts._note_failures, "-r.reason), r, tuple", "-Reason.EXPIRED), r, tuple"), BOTH),
    Bug("a shared interval of failures covers those between",
        edit(receipts._note_failures, "r, tuple(shared))", "r, ((shared[0][0], shared[-1][1]),))"), BOTH,
        focus=Focus({"unreadable": 0.3})),
    Bug("needs of Receipted miss the receipts", in_needs(Receipted, without(Kept.RECEIPTS)), ("node",)),
)  # fmt: skip
