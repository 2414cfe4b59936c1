"""What the devices of a story with groups have seen: the evidence, and what it contradicts at once.

Knows:   what was answered, shown, acknowledged and heard, by the word of the device that saw it.
Never:   asks a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from nightmail.model.answers import GroupAccepted
from nightmail.model.group_chain import decode_change
from nightmail.model.group_notices import NoticeKind, decode_notice
from nightmail.model.ids import account_of
from nightmail.model.roster import Addition, Departure, Removal
from nightmail.model.rows import Entry, GroupEntry, PendingReceipt
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.words import MessageState, Reason
from sim.world.world import Broken


class Stream(NamedTuple):
    """Where a number counts."""

    by: int
    to: int
    lane: int


class Numbered(NamedTuple):
    """One message, as everybody must see it."""

    by: int
    lane: int
    n: int
    id: str
    at: int


SCHEDULED = 2
"""In place of a lane: the count of messages that were scheduled."""
Place: TypeAlias = tuple[int, int]
"""(Lane of the mailbox, or group whose log it is; number there)."""


def stream_of(place: Place, entry: Entry) -> Stream:
    """In which stream its number counts. A group's log has messages of both lanes."""
    lane = entry.lane if isinstance(entry, GroupEntry) else place[0]
    return Stream(entry.by, entry.to, count_of(lane, entry.n))


def count_of(lane: int, n: int) -> int:
    """The lane, or the third count: messages that were scheduled."""
    return SCHEDULED if n > SCHEDULED_FROM else lane


@dataclass
class Seen:
    """What one device has seen."""

    entries: dict[Place, Entry] = field(default_factory=dict["Place", Entry])
    """Where → what was handed out."""
    unreadable: set[Place] = field(default_factory=set["Place"])
    acked: dict[int, int] = field(default_factory=dict[int, int])
    """Lane or group → what the server has confirmed."""
    read: dict[int, int] = field(default_factory=dict[int, int])
    """Group → everything up to here was said to be read."""
    news: dict[tuple[int, MessageState], set[int]] = field(default_factory=dict[tuple[int, MessageState], set[int]])
    """(Group, state) → numbers that it was told to look at again."""
    delivered: set[tuple[Stream, int, int]] = field(default_factory=set[tuple[Stream, int, int]])
    """(Stream, number, device)."""
    failed: dict[tuple[Stream, int], dict[int, Reason]] = field(
        default_factory=dict[tuple[Stream, int], dict[int, Reason]]
    )
    """(Stream, number) → device → why. Of an account that failed as a whole, its device 0."""

    def in_group(self, group: int) -> dict[int, Entry]:
        """`group_seq` → entry, of what people wrote there; of a re-seal, the first."""
        found: dict[int, Entry] = {}
        for entry in self.entries.values():
            if entry.to == group and entry.by and entry.group_seq:
                found.setdefault(entry.group_seq, entry)
        return found


class GroupHistory:
    def __init__(self) -> None:
        self.messages: dict[int, dict[int, Numbered]] = {}
        """Group → `group_seq` → message: accepted, by the word of its author or of a device that shows it."""
        self.answers: dict[tuple[Stream, int], GroupAccepted] = {}
        self.accepted_at: dict[tuple[int, int], int] = {}
        """(Group, `group_seq`) → when its author heard that it is accepted."""
        self.seen: dict[int, Seen] = {}
        """Device → what it has seen."""
        self.memberships: dict[tuple[int, int], dict[int, int]] = {}
        """(Group, account) → first number → last one (0: it has not ended), by notices that its devices saw."""
        self._joins: dict[tuple[int, int], set[int]] = {}
        self._ends: dict[tuple[int, int], set[int]] = {}
        """(Group, account) → first and last numbers, by the same notices. They may come in any order."""
        self.removed: set[tuple[int, int]] = set()
        """(Group, account) that was removed, or left, by a notice that anybody saw."""
        self.ended: dict[tuple[int, int], set[int]] = {}
        """(Group, account) → numbers under which it ceased to be a member, whatever it was: anybody saw them."""
        self.gone_at: dict[int, int] = {}
        """Device → when its person gave it up."""

    def of(self, device: int) -> Seen:
        return self.seen.setdefault(device, Seen())

    # --- what happens -------------------------------------------------------------------------

    def is_accepted(self, stream: Stream, n: int) -> bool:
        """Whether somebody knows that it is."""
        if answer := self.answers.get((stream, n)):
            return bool(answer.tag)
        found = self.messages.get(stream.to, {}).values()
        return any((message.by, message.lane, message.n) == (stream.by, stream.lane, n) for message in found)

    def accepted(self, stream: Stream, n: int, answer: GroupAccepted, now: int, *, is_message: bool) -> None:
        first = self.answers.setdefault((stream, n), answer)
        if first != answer:
            raise Broken("every retry is answered alike", f"{stream} {n} was answered {first}, then {answer}")
        if is_message and answer.tag:
            message = Numbered(stream.by, stream.lane, n, answer.id, answer.at)
            self._note_message(stream.to, answer.group_seq, message)
            self.accepted_at.setdefault((stream.to, answer.group_seq), now)

    def shown(self, device: int, place: Place, entry: Entry) -> bool:
        """Whether it is new to the device. What is handed out again is the same."""
        seen = self.of(device)
        if (before := seen.entries.get(place)) is not None:
            if before != entry:
                raise Broken("what is handed out again is the same", f"{device:x} {place}")
            return False
        if entry.epoch and entry.by:
            self._check_new(device, place, entry)
        seen.entries[place] = entry
        if entry.epoch and not entry.by:
            self._note_notice(account_of(device), entry)
        return True

    def _check_new(self, device: int, place: Place, entry: Entry) -> None:
        stream = stream_of(place, entry)
        if entry.by == device:
            raise Broken("nobody is sent what they wrote", f"{device:x} is shown {stream} {entry.n}")
        newest = 0
        for other, before in self.of(device).entries.items():
            if before.to == entry.to and other[0] == place[0] and before.of is None:
                newest = max(newest, before.group_seq)
            if stream_of(other, before) != stream:
                continue
            if before.n == entry.n:
                raise Broken("nothing twice", f"{device:x} is shown {stream} {entry.n} twice")
            if before.n > entry.n and other[0] == place[0]:
                raise Broken("sender's order", f"{device:x} is shown {stream} {entry.n} after {before.n}")
        if entry.of is None and entry.group_seq:
            if newest >= entry.group_seq:
                raise Broken("the group's order", f"{device:x} is shown {entry.group_seq} after {newest}")
            self._note_message(entry.to, entry.group_seq, Numbered(entry.by, stream.lane, entry.n, entry.id, entry.at))

    def _note_message(self, group: int, seq: int, message: Numbered) -> None:
        first = self.messages.setdefault(group, {}).setdefault(seq, message)
        if first != message:
            raise Broken("one number, one message", f"{group:x} {seq} is {first} and {message}")

    def _note_notice(self, account: int, entry: Entry) -> None:
        notice, where = decode_notice(entry.ciphertext), (entry.to, account)
        joins, ends = self._joins.setdefault(where, set()), self._ends.setdefault(where, set())
        self._note_ended(entry)
        if notice.kind is NoticeKind.JOINED and notice.account == account:
            joins.add(notice.since)
        elif notice.kind is NoticeKind.CHANGED:
            chained = decode_change(notice.blob)
            left = isinstance(chained.change, Departure) and chained.actor == account
            removed = isinstance(chained.change, Removal) and account in chained.change.accounts
            if left or removed:
                ends.add(entry.group_seq)
        spans = self.memberships[where] = dict.fromkeys(sorted(joins), 0)
        for end in sorted(ends, reverse=True):
            spans[max((since for since in joins if since <= end), default=0)] = end

    def _note_ended(self, entry: Entry) -> None:
        notice, group = decode_notice(entry.ciphertext), entry.to
        if notice.kind in (NoticeKind.SUSPENDED, NoticeKind.CLOSED):
            self.ended.setdefault((group, notice.account), set()).add(entry.group_seq)
        elif notice.kind is NoticeKind.CHANGED:
            chained = decode_change(notice.blob)
            match chained.change:
                case Departure():
                    gone = {chained.actor}
                case Removal(accounts):
                    gone = set(accounts)
                case _:
                    gone = set[int]()
            self.removed.update((group, account) for account in gone)
            if isinstance(chained.change, Addition):
                gone |= {account for account, _ in chained.change.members}
            for account in gone:
                self.ended.setdefault((group, account), set()).add(entry.group_seq)

    def heard(self, device: int, receipt: PendingReceipt) -> None:
        by, to, lane, peer, _, _ = receipt.key
        seen, numbers = self.of(device), _numbers(receipt.numbers)
        if not by:
            seen.news.setdefault((to, receipt.state), set()).update(numbers)
            return
        for n in numbers:
            stream = Stream(by, to, count_of(lane, n))
            if receipt.state is MessageState.DELIVERED:
                seen.delivered.add((stream, n, peer))
            elif receipt.state is MessageState.FAILED:
                seen.failed.setdefault((stream, n), {})[peer] = receipt.reason


def _numbers(spans: list[int]) -> list[int]:
    return [n for low, high in zip(spans[::2], spans[1::2], strict=True) for n in range(low, high + 1)]
