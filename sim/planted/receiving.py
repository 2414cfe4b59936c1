# pyright: reportPrivateUsage=false
"""Bugs in mailboxes: numbers, gaps, acknowledgements, expiry."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.core import expiry, mailbox
from nightmail.core.gaps import drop_gaps
from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.model.records import Acked, Copied, Expired, Receipted, Watched
from nightmail.model.rows import Entry, Gap, Kept, queue_id
from nightmail.model.words import Lane, MessageState, Reason

from .tools import Bug, Focus, all_of, edit, in_needs, in_step, swap, untold, without, without_entries


def _gaps_are_passed_over() -> object:
    """A device is not told which numbers will never come."""
    right = mailbox.offer

    def wrong(state: ShardState, device: int, lane: Lane, after: int, limit: int) -> list[tuple[int, Entry] | Gap]:
        return [item for item in right(state, device, lane, after, limit) if not isinstance(item, Gap)]

    return swap(right, wrong)


def _any_ack(step: Step) -> Step:
    """An acknowledgement is believed, whatever it says."""

    def wrong(state: ShardState, by: int, via: int, acked: Acked) -> None:
        box = state.mailboxes[by]
        queue = box.lanes[acked.lane] if box else None
        if box is None or queue is None or acked.upto <= queue.head:
            step(state, by, via, acked)
            return
        step(state, by, via, replace(acked, upto=queue.head))
        queue.acked = queue.head = acked.upto
        drop_gaps(queue.gaps, acked.upto)
        state.mailboxes.put(by, box, state.offset)

    return wrong


def _ack_moves_back(step: Step) -> Step:
    """A late acknowledgement takes back a later one."""

    def wrong(state: ShardState, by: int, via: int, acked: Acked) -> None:
        step(state, by, via, acked)
        box = state.mailboxes[by]
        if box and acked.upto < (queue := box.lanes[acked.lane]).acked and not queue.gaps:
            queue.acked, queue.waiting = acked.upto, queue.head - acked.upto
            state.mailboxes.put(by, box, state.offset)

    return wrong


def _everything_was_readable(step: Step) -> Step:
    """The interval runs over numbers that could not be opened."""
    return lambda state, by, via, acked: step(state, by, via, replace(acked, unreadable=()))


def _copies_count(step: Step) -> Step:
    """Storing a copy of one's own message counts as a delivery."""

    def wrong(state: ShardState, by: int, via: int, acked: Acked) -> None:
        entries = state.entries.get(queue_id(by, acked.lane), {})
        account = by >> 12
        own = [e for seq, e in sorted(entries.items()) if seq <= acked.upto and e.by >> 12 == account]
        step(state, by, via, acked)
        if box := state.mailboxes[by]:
            for entry in own if acked.upto <= box.lanes[acked.lane].head else ():
                numbers = ((entry.n, entry.n),)
                told = (entry.by, account, acked.lane, by, MessageState.DELIVERED, Reason.NONE, state.now, numbers)
                state.tell(account, Receipted(*told))

    return wrong


def _whatever_its_age(step: Step) -> Step:
    """When the oldest entry is too old, so are those behind it."""

    def wrong(state: ShardState, by: int, via: int, expired: Expired) -> None:
        limits = state.shard.limits
        if limits.ttl_ms:
            state.shard.limits = replace(limits, ttl_ms=1)
        step(state, by, via, expired)
        state.shard.limits = limits

    return wrong


def _is_receipt(said: Copied | Receipted) -> bool:
    return isinstance(said, Receipted)


BUGS = (
    Bug("a gap is not announced", _gaps_are_passed_over, ("node", "cluster")),  # pyright: ignore[reportArgumentType]
    Bug("an ack above the head is accepted", in_step(Acked, _any_ack), ("node", "cluster")),
    Bug("a late ack moves back", in_step(Acked, _ack_moves_back), ("cluster", "node"),
        focus=Focus({"cut": 4, "second_link": 5, "write": 60}, ("log", "links", "takeovers"))),
    Bug("a receipt over an unreadable number", in_step(Acked, _everything_was_readable), ("node", "cluster")),
    Bug("a delivered receipt for one's own copies", in_step(Acked, _copies_count), ("node", "cluster")),
    Bug("an ack forgets its receipts", untold(Acked, _is_receipt), ("node",)),
    Bug("bytes are not given back by an ack",
        edit(mailbox._take, "mailbox.let_go(len(entry.ciphertext), entry.kind is not CONTROL)", "pass"),
        ("node", "cluster")),
    Bug("bytes are not given back by an expiry",
        edit(expiry.make_gaps, "mailbox.let_go(len(entry.ciphertext), entry.wakes)", "pass"), ("node", "cluster")),
    Bug("expiry forgets the receipt", untold(Expired, _is_receipt), ("node", "cluster")),
    Bug("expiry drops a younger entry", in_step(Expired, _whatever_its_age), ("node", "cluster")),
    Bug("needs of Acked miss the entries", in_needs(Acked, without_entries), ("node", "cluster")),
    Bug("needs of Expired miss the entries",
        all_of((in_needs(Expired, without_entries), in_needs(Watched, without_entries))), ("node", "cluster")),
    Bug("needs of Watched miss the due rows", in_needs(Watched, without(Kept.DUE)), ("node", "cluster")),
)  # fmt: skip
