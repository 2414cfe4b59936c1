# pyright: reportPrivateUsage=false
"""Bugs in taking in messages: numbers, stamps, answers, quotas, lists."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from nightmail.core import mailbox, ring, send
from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.model.answers import Said
from nightmail.model.effects import Answer
from nightmail.model.records import Copied, Receipted, Sent, Voided
from nightmail.model.refusals import IdReused, MailboxFull
from nightmail.model.rows import Kept, Numbers
from nightmail.model.words import Lane, Reason

from .tools import Bug, Focus, all_of, edit, in_needs, in_step, swap, untold, without


def _same_answer_for_any_tag() -> object:
    """A retry is known by its number and id alone."""
    right = ring.answer_again

    def wrong(numbers: Numbers, sent: Sent | Voided) -> Said:
        said = right(numbers, sent)
        if isinstance(sent, Sent) and isinstance(said, IdReused):
            return right(numbers, Voided(sent.to, sent.lane, sent.n, sent.floor, sent.id))
        return said

    return swap(right, wrong)


def _half_the_ring(step: Step) -> Step:
    """Fewer answers are kept than clients may wait for."""

    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        step(state, by, via, sent)
        if (stream := state.streams[by, sent.to]) is not None:
            ring.forget(stream.lanes[sent.lane], 0, state.shard.limits.ring_acks // 2)

    return wrong


def _restamped(step: Step) -> Step:
    """The clock's time, although an earlier message may already have it."""

    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        stream = state.streams[by, sent.to]
        if stream is None:
            step(state, by, via, sent)
            return
        at, stream.at = stream.at, 0
        try:
            step(state, by, via, sent)
        finally:
            stream.at = stream.at or at

    return wrong


def _unseeing(step: Step) -> Step:
    """What the sender had seen does not matter to the stamp."""
    return lambda state, by, via, sent: step(state, by, via, replace(sent, seen=0))


def _full_for_all(step: Step) -> Step:
    """One full device is reason enough to refuse."""

    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        stream, account = state.streams[by, sent.to], state.accounts[sent.to]
        is_next = sent.n == (stream.lanes[sent.lane].last if stream else 0) + 1
        boxes = [state.mailboxes[e.device] for e in sent.envelopes if account and e.device in account.listed]
        full = state.shard.limits.mailbox_entries
        if is_next and any(box and box.waiting >= full for box in boxes):
            state.effects.append(Answer(via, MailboxFull(full)))
        else:
            step(state, by, via, sent)

    return wrong


def _old_list_will_do(step: Step) -> Step:
    """Sealed for some of the listed devices is good enough, if it was all of them a while ago."""

    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        account = state.accounts[sent.to]
        given = {envelope.device: envelope.registration for envelope in sent.envelopes}
        if account is None or sent.of or not given.items() <= account.listed.items():
            step(state, by, via, sent)
            return
        listed, version = account.listed, account.list_version
        account.listed, account.list_version = given, min(version, sent.list_version)
        try:
            step(state, by, via, sent)
        finally:  # A step that meets a row which is not in memory is taken again.
            account.listed, account.list_version = listed, version

    return wrong


def _one_lane(step: Step) -> Step:
    """Both lanes of a stream count together."""
    return lambda state, by, via, sent: step(state, by, via, replace(cast("Sent", sent), lane=Lane.NORMAL))


def _with_a_hole(step: Step) -> Step:
    """A number may be left out."""

    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        stream = state.streams[by, sent.to]
        if stream is None or sent.n <= (numbers := stream.lanes[sent.lane]).last + 1:
            step(state, by, via, sent)
            return
        before = numbers.last, numbers.low, numbers.ring
        numbers.last, numbers.low, numbers.ring = sent.n - 1, sent.n, bytearray()
        try:
            step(state, by, via, sent)
        finally:
            if numbers.last < sent.n:
                numbers.last, numbers.low, numbers.ring = before

    return wrong


def _never_blocked(step: Step) -> Step:
    def wrong(state: ShardState, by: int, via: int, sent: Sent) -> None:
        account = state.accounts[sent.to]
        blocked = account.blocked if account else {}
        if account:
            account.blocked = {}
        try:
            step(state, by, via, sent)
        finally:
            if account:
                account.blocked = blocked

    return wrong


def _is_full(said: Copied | Receipted) -> bool:
    return isinstance(said, Receipted) and said.reason == Reason.MAILBOX_FULL


BUGS = (
    Bug("a retry with another tag gets the first answer", _same_answer_for_any_tag, ("node", "cluster"),  # pyright: ignore[reportArgumentType]
        focus=Focus({"lie": 20})),
    Bug("an answer that was let go leaves its place behind",
        edit(ring.forget, "del numbers.ring[: (kept - low) * SLOT_BYTES]", ""), ("node", "cluster")),
    Bug("the ring is too short", in_step(Sent, _half_the_ring), ("node", "cluster"), seconds=10,
        focus=Focus({"cut": 15, "write": 60}, ("pressure", "slow"))),
    Bug("a stamp runs backward", in_step(Sent, _restamped), ("node", "cluster")),
    Bug("a stamp ignores what its sender had seen", in_step(Sent, _unseeing), ("cluster", "node")),
    Bug("a full device blocks all devices", in_step(Sent, _full_for_all), ("node", "cluster")),
    Bug("a device full by bytes is not full",
        all_of((edit(send.check, "and box.bytes < limits.mailbox_bytes", ""),
                edit(mailbox.is_full, "or mailbox.bytes >= limits.mailbox_bytes", ""))), ("node", "cluster")),
    Bug("a full device is skipped in silence", untold(Sent, _is_full), ("node", "cluster")),
    Bug("a stale device list is accepted", in_step(Sent, _old_list_will_do), ("node", "cluster")),
    Bug("two lanes share one number", all_of((in_step(Sent, _one_lane), in_step(Voided, _one_lane))), ("node",)),
    Bug("a block is ignored", in_step(Sent, _never_blocked), ("node", "cluster")),
    Bug("needs of Sent miss the stream", in_needs(Sent, without(Kept.STREAM)), ("node",)),
    Bug("needs of Sent miss a mailbox", in_needs(Sent, without(Kept.MAILBOX)), ("node",)),
    Bug("needs of Sent miss the second that is due", in_needs(Sent, without(Kept.DUE)), ("node",)),
    Bug("needs of Sent miss the slot that its second device opens",
        edit(send.needs_sent, "len(sent.envelopes)", "1"), ("node", "cluster")),
    Bug("a copy for one's own devices is forgotten", untold(Sent, lambda said: isinstance(said, Copied)), ("node",)),
    Bug("a clock is looked at only after the message is filed",
        edit(send.check, "sent.life_ms or not box.due", "not box"), ("node", "cluster")),
    Bug("a message beyond the next number is accepted", in_step(Sent, _with_a_hole), ("node", "cluster")),
)  # fmt: skip
