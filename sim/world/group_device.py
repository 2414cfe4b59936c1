"""A device in a world with groups: it pulls, shows, acknowledges, writes, and asks again until it is answered.

Its state survives everything: what is on trial here is the server. What it says may be lost, doubled or answered late;
what it was handed it may be handed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from nightmail.engine.ports import Mailboxes, Offered
from nightmail.model.answers import Accepted, Done, GroupAccepted, GroupHead, Said, Settled
from nightmail.model.group_chain import NO_HEAD, head_of
from nightmail.model.group_notices import NoticeKind, decode_notice
from nightmail.model.group_questions import GroupAnswer, LogAsked, LogGap, LogShown
from nightmail.model.ids import account_of
from nightmail.model.records import (
    Acked,
    AnyBody,
    Envelope,
    GroupAcked,
    GroupChanged,
    GroupMade,
    GroupRead,
    GroupSealed,
    GroupSent,
    GroupVoided,
    ReceiptsAcked,
    Sent,
    Voided,
)
from nightmail.model.refusals import (
    IdReused,
    MailboxFull,
    NotGroupAdmin,
    NotMember,
    NumberVoided,
    StaleDevices,
    StaleGroup,
    UnknownGroup,
    UnknownRecipient,
)
from nightmail.model.rows import Account, Entry, Gap, PendingReceipt
from nightmail.model.words import Kind, Lane
from sim.judges.group_history import Stream, stream_of

from .world import Broken

if TYPE_CHECKING:
    from .group_people import GroupPerson

RETRY_MS = 300
WINDOW = 3
"""Messages of one stream that are on their way at once."""
BATCH = 20
UNREADABLE = 0.03


@dataclass
class Outgoing:
    """One number of a stream, until it is answered for good."""

    stream: Stream
    n: int
    id: str
    envelopes: tuple[Envelope, ...] = ()
    """For single devices."""
    of: str | None = None
    of_seq: int = 0
    gives_up: bool = False
    asked_at: int = -RETRY_MS
    done: bool = False

    @property
    def tag(self) -> bytes:
        return self.id.encode()[-16:].rjust(16, b".")


class GroupDevice:
    def __init__(self, person: GroupPerson, number: int, registration: int) -> None:
        self.person, self.town, self.number, self.registration = person, person.town, number, registration
        self.world = person.town.world
        self.removed = False
        self.was_listed_first = False
        self.listed_at = self.world.now
        """It was on no list before."""
        self.on_list_since = 1 << 62
        """It was on a list at the latest then."""
        self._online = True
        self._after = dict.fromkeys(Lane, 0)
        self._receipts = self._receipts_confirmed = 0
        self._unreadable: dict[int, set[int]] = {lane: set() for lane in Lane}
        """Not yet confirmed."""
        self._last_n: dict[Stream, int] = {}
        self._outbox: dict[Stream, deque[Outgoing]] = {}
        self._changes: deque[GroupChanged | GroupMade] = deque()
        self._tries = 0
        self._lists: dict[int, Account] = {}
        self.groups: dict[int, tuple[int, bytes]] = {}
        """Group → epoch and head, as far as they are known here."""
        self._begun = 0
        self._fetched: dict[int, int] = {}
        """Group → how far its log was fetched."""
        self._has_all: dict[int, bool] = {}
        self.after_log: list[tuple[Stream, Entry, int]] = []
        """What came in the high lane after something of its group's log was fetched, and the newest number of that."""
        self._newest_of_log: dict[int, int] = {}
        """Group → the newest number that was fetched from its log."""

    @property
    def is_busy(self) -> bool:
        return any(self._outbox.values()) or bool(self._changes)

    def live(self) -> None:
        if self.removed:
            return
        if self._online or self.town.healing:
            self.town.backend.look(self._pull)
            for group in self.groups if self.town.has_logs else ():
                if self.town.healing or self.world.maybe(0.3):
                    self._fetch(group)
            self._say()
        self.world.later(self.world.between(5, 120), self.live)

    def nap(self) -> None:
        self._online = False
        self.world.later(self.world.between(100, 4_000), partial(setattr, self, "_online", True))

    def _ask(self, body: AnyBody, answered: object = None) -> None:
        def take(said: Said) -> None:
            if not self.removed and callable(answered):
                answered(said)

        self.town.backend.ask(self.number, body, take)
        if not self.town.healing and self.world.maybe(0.05):
            self.world.hit("asked twice")
            self.town.backend.ask(self.number, body, take)

    # --- what comes ---------------------------------------------------------------------------

    def _pull(self, desk: Mailboxes) -> None:
        seen = self.town.history.of(self.number)
        for lane in Lane:
            after = self._after[lane]
            if not self.town.healing and self.world.maybe(0.02) and after > seen.acked.get(lane, 0):
                self.world.hit("handed out again")
                after = self._after[lane] = seen.acked.get(lane, 0)
            desk.offer(self.number, lane, after, BATCH, 1 << 20, partial(self._take, lane, after))
            if after > seen.acked.get(lane, 0):
                self._acknowledge(lane, after)
        desk.receipts(self.number, self._receipts, 100, self._hear)
        if self._receipts > self._receipts_confirmed:
            self._acknowledge_receipts(self._receipts)

    def _take(self, lane: Lane, after: int, offered: Sequence[Offered], _more: bool) -> None:
        if self.removed or after != self._after[lane]:
            return
        seq = after
        for item in offered:
            if isinstance(item, Gap):
                seq = item.high
                continue
            first, entries = item
            for seq, entry in enumerate(entries, first):
                self._show(lane, seq, entry)
        self._after[lane] = seq

    def _show(self, place: int, seq: int, entry: Entry) -> None:
        if not self.town.history.shown(self.number, (place, seq), entry):
            return
        if entry.by and not entry.to & 1:
            self._check_order(place, entry)
        if entry.epoch and not entry.by:
            self._notice(entry)
        elif entry.by and account_of(entry.by) != self.person.account and self.world.maybe(UNREADABLE):
            self.world.hit("unreadable in a group" if entry.epoch else "unreadable")
            self._unreadable.setdefault(place, set()).add(seq)
            self.town.history.of(self.number).unreadable.add((place, seq))

    def _check_order(self, place: int, entry: Entry) -> None:
        """What a log brings comes after what was sealed for this device before, in the high lane: its keys."""
        if place == entry.to:
            self._newest_of_log[entry.to] = entry.group_seq
        elif place == Lane.HIGH:
            self.world.hit("key in a group")
            if newest := self._newest_of_log.get(entry.to, 0):
                self.after_log.append((stream_of((place, 0), entry), entry, newest))

    def _notice(self, entry: Entry) -> None:
        notice = decode_notice(entry.ciphertext)
        self.world.hit(f"notice {notice.kind.name.lower()}")
        epoch, head = self.groups.get(entry.to, (0, NO_HEAD))
        if notice.kind is NoticeKind.CHANGED:
            head = head_of(notice.blob)
        self.groups[entry.to] = max(epoch, entry.epoch), head

    def _acknowledge(self, lane: Lane, upto: int) -> None:
        unreadable = tuple(sorted(seq for seq in self._unreadable[lane] if seq <= upto))

        def confirmed(said: Said) -> None:
            if said == Done():
                acked = self.town.history.of(self.number).acked
                acked[lane] = max(acked.get(lane, 0), upto)
                self._unreadable[lane].difference_update(unreadable)

        self._ask(Acked(lane, upto, unreadable), confirmed)

    # --- the logs of large groups ---------------------------------------------------------------

    def _fetch(self, group: int) -> None:
        after = self._fetched.get(group, 0)
        asked = LogAsked(group, self.number, after, BATCH, 1 << 20)
        self.town.backend.look(lambda desk: self._ask_log(desk, asked))
        if after > self.town.history.of(self.number).acked.get(group, 0):
            self._acknowledge_log(group, after)

    def _ask_log(self, desk: Mailboxes, asked: LogAsked) -> None:
        """As a gateway does: what is shown waits until the device's shard has what the group had told it before."""

        def shown(answer: GroupAnswer) -> None:
            if isinstance(answer, LogShown) and answer.items:
                desk.high_heads((self.number,), answer.told, lambda heads: self._take_log(asked, answer, heads))
            else:
                self._has_all[asked.group] = asked.after == self._fetched.get(asked.group, 0)

        desk.about_group(asked, shown)

    def _take_log(self, asked: LogAsked, shown: LogShown, heads: Mapping[int, int]) -> None:
        group, after = asked.group, asked.after
        if self.removed or after != self._fetched.get(group, 0) or heads[self.number] > self._after[Lane.HIGH]:
            return
        self._has_all[group] = False
        for part in shown.items:
            first = part.low if isinstance(part, LogGap) else part.first
            if first != self._fetched.get(group, 0) + 1:
                raise Broken("a log has no holes", f"{self.number:x} is handed {first} of {group:x} after {after}")
            if isinstance(part, LogGap):
                self._fetched[group] = part.high
                continue
            for seq, entry in enumerate(part.entries, first):
                self.world.hit("fetched from a log")
                self._show(group, seq, entry)
                self._fetched[group] = seq

    def _acknowledge_log(self, group: int, upto: int) -> None:
        unreadable = tuple(sorted(seq for seq in self._unreadable.get(group, ()) if seq <= upto))

        def confirmed(said: Said) -> None:
            if said == Done():
                acked = self.town.history.of(self.number).acked
                acked[group] = max(acked.get(group, 0), upto)
                self._unreadable.get(group, set()).difference_update(unreadable)

        self._ask(GroupAcked(group, upto, unreadable), confirmed)

    def has_fetched(self, group: int) -> bool:
        """Whether there is nothing left in the group's log that it has not fetched and acknowledged."""
        acked = self.town.history.of(self.number).acked.get(group, 0)
        return self._has_all.get(group, False) and acked >= self._fetched.get(group, 0)

    def _hear(self, receipts: Sequence[PendingReceipt]) -> None:
        if self.removed:
            return
        for receipt in receipts:
            if receipt.seq > self._receipts:
                self.town.history.heard(self.number, receipt)
                self._receipts = receipt.seq

    def _acknowledge_receipts(self, upto: int) -> None:
        def confirmed(said: Said) -> None:
            if said == Done():
                self._receipts_confirmed = max(self._receipts_confirmed, upto)

        self._ask(ReceiptsAcked(upto), confirmed)

    def read(self, group: int) -> None:
        seen = self.town.history.of(self.number)
        written = seen.in_group(group)
        if not written:
            return
        upto, authors = max(written), {account_of(entry.by) for entry in written.values()}
        seen.read[group] = upto
        self._ask(GroupRead(group, upto, tuple(sorted(authors))))

    # --- what goes ----------------------------------------------------------------------------

    def write(self, to: int, lane: Lane, **sealed: object) -> None:
        """To a group, or to an account; to single devices of a group if envelopes are given."""
        stream = Stream(self.number, to, lane)
        n = self._last_n[stream] = self._last_n.get(stream, 0) + 1
        self._begun += 1
        ident = f"{self.number:x}:{self.world.now}:{self._begun}:x{lane}"
        self._outbox.setdefault(stream, deque()).append(Outgoing(stream, n, ident, **sealed))  # type: ignore[arg-type]

    def change(self, body: GroupChanged | GroupMade) -> None:
        self._changes.append(body)
        self._tries = 0

    def _say(self) -> None:
        for stream, waiting in self._outbox.items():
            for outgoing in list(waiting)[:WINDOW]:
                if self.world.now - outgoing.asked_at >= RETRY_MS and not outgoing.done:
                    outgoing.asked_at = self.world.now
                    self._send(stream, outgoing, waiting[0].n)
        if self._changes:
            self._tries += 1
            body = self._changes[0]
            self._ask(body, partial(self._changed, body))
            if self._tries > 20 and not isinstance(body, GroupMade):
                self._changes.popleft()

    def _send(self, stream: Stream, outgoing: Outgoing, floor: int) -> None:
        if stream.to & 1:
            self._send_to_account(stream, outgoing, floor)
            return
        group, lane, n, o = stream.to, Lane(stream.lane), outgoing.n, outgoing
        epoch, head = self.groups.get(group, (0, NO_HEAD))
        body: AnyBody
        if o.gives_up:
            body = GroupVoided(group, lane, n, floor, o.id)
        elif o.envelopes:
            body = GroupSealed(
                group, lane, n, floor, 0, o.id, o.tag, Kind.CONTROL, epoch, o.of, o.of_seq, 0, o.envelopes
            )
        else:
            body = GroupSent(group, lane, n, floor, 0, o.id, o.tag, Kind.TEXT, epoch, head, 0, o.id.encode())
        self._ask(body, partial(self._answered, stream, outgoing, self._is_accepted(stream, outgoing)))

    def _send_to_account(self, stream: Stream, outgoing: Outgoing, floor: int) -> None:
        account = self._lists.get(stream.to)
        if account is None:
            self.town.backend.look(lambda desk: desk.account(stream.to, partial(self._know, stream.to)))
            return
        lane, o = Lane(stream.lane), outgoing
        others = {device: registration for device, registration in account.listed.items() if device != self.number}
        envelopes = tuple(Envelope(device, registration, o.id.encode()) for device, registration in others.items())
        body: AnyBody
        if o.gives_up:
            body = Voided(stream.to, lane, o.n, floor, o.id)
        else:
            body = Sent(
                stream.to, lane, o.n, floor, 0, o.id, o.tag, Kind.TEXT, None, 0, account.list_version, envelopes, ()
            )
        self._ask(body, partial(self._answered, stream, outgoing, self._is_accepted(stream, outgoing)))

    def _know(self, number: int, account: Account | None) -> None:
        if account is not None:
            self._lists[number] = Account(
                account.handle, listed=dict(account.listed), list_version=account.list_version
            )

    def _answered(self, stream: Stream, outgoing: Outgoing, was_accepted: bool, said: Said) -> None:
        if was_accepted and isinstance(said, StaleGroup | NotMember | NotGroupAdmin | UnknownGroup):
            raise Broken("every retry is answered alike", f"{stream} {outgoing.n} was accepted, and is {said.word}")
        match said:
            case GroupAccepted() | Accepted():
                if isinstance(said, GroupAccepted):
                    is_message = not outgoing.envelopes
                    self.town.history.accepted(stream, outgoing.n, said, self.world.now, is_message=is_message)
                self._finish(stream, outgoing)
            case Settled() | NumberVoided():
                self._finish(stream, outgoing)
            case StaleGroup():
                self._learn(stream.to, said)
                outgoing.asked_at = -RETRY_MS
            case StaleDevices():
                self._lists.pop(stream.to, None)
            case NotMember() | UnknownGroup() | NotGroupAdmin() | UnknownRecipient():
                self.world.hit(f"refused in a group: {said.word}")
                outgoing.gives_up = True
                outgoing.asked_at = -RETRY_MS
            case MailboxFull() if self.town.healing:
                outgoing.gives_up = True  # Nobody may be left to make room.
            case IdReused():
                raise Broken("every retry is answered alike", f"{stream} {outgoing.n} is said to be another message")
            case _:
                pass

    def _is_accepted(self, stream: Stream, outgoing: Outgoing) -> bool:
        return self.town.history.is_accepted(stream, outgoing.n)

    def _learn(self, group: int, stale: StaleGroup) -> None:
        self.world.hit("stale group")
        epoch, _ = self.groups.get(group, (0, NO_HEAD))
        if stale.epoch >= epoch:
            self.groups[group] = stale.epoch, stale.head

    def _finish(self, stream: Stream, outgoing: Outgoing) -> None:
        outgoing.done = True
        waiting = self._outbox[stream]
        while waiting and waiting[0].done:
            waiting.popleft()

    def _changed(self, body: GroupChanged | GroupMade, said: Said) -> None:
        if not self._changes or self._changes[0] is not body or said.__class__.__name__ in RETRIED:
            return
        self._changes.popleft()
        self._tries = 0
        if isinstance(said, GroupHead):
            self.world.hit("group changed")
            epoch, _ = self.groups.get(body.group, (0, NO_HEAD))
            self.groups[body.group] = max(epoch, said.epoch), said.head
        elif isinstance(said, StaleGroup):
            self.world.hit("two changes on one head")
            self._learn(body.group, said)


RETRIED = ("Unavailable", "Overloaded", "DiskFull", "NotYet")
