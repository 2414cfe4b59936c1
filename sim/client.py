"""A simulated device: a durable outbox, inbox and cursors, and a person with bad habits.

The client's own rule: what an entry brings, and how far we are, is durable in one transaction
before it is acknowledged. A crash drops everything that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nightmail.model.answers import Done, Said
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, AnyBody, ChangesAcked, Read, Span
from nightmail.model.refusals import UnknownDevice
from nightmail.model.rows import ChangeKey, Entry, Gap
from nightmail.model.spans import numbers, pairs, spans_of
from nightmail.model.words import Lane, Reason, State

from .history import History, Message, Shown
from .outbox import Outbox, seal
from .session import Backend, Session
from .wire import Link
from .world import World

if TYPE_CHECKING:
    from .people import Person


class Client:
    def __init__(self, world: World, history: History, person: Person, device: int, registration: int) -> None:
        self.world, self.history, self.person = world, history, person
        self.device, self.registration = device, registration
        self.name = f"{person.handle}.{device & 0xFFF}"
        self.seen = history.of(device)
        self.outbox = Outbox(self)
        # Durable.
        self.cursor = [0, 0, 0]
        """How far the normal lane, the high lane and the receipts are stored."""
        self.unopened: tuple[set[int], set[int]] = (set(), set())
        """Per lane, what could not be opened, until the server is known to know."""
        self.newest: dict[int, int] = {}
        """Peer account → the newest stamp displayed in that conversation."""
        self.latest: dict[int, str] = {}
        self.unread: set[tuple[int, Lane, int]] = set()
        self.reading: dict[int, set[tuple[int, Lane, int]]] = {}
        """Peer → what was read and not yet confirmed by the server."""
        self.ever_reading: set[tuple[int, Lane, int]] = set()
        # Volatile.
        self.links: list[Link] = []
        self.sessions: dict[Link, Session] = {}
        self.wants_online = True
        self.removed = False
        self.life = 0
        self._staged: list[Callable[[], None]] = []
        self._staged_to = [0, 0, 0]
        self._staged_unreadable: list[tuple[Lane, int]] = []
        self._commit_soon = False
        self._fresh: dict[Link, list[int]] = {}
        """Link → how far each lane got on it: nothing may be repeated inside one connection."""

    # --- connecting -----------------------------------------------------------------------------

    def connect(self, backend: Backend, *, keep_old: bool = False) -> None:
        if self.removed:
            return
        if not keep_old:
            for link in self.links:
                link.cut()
        else:
            self.world.hit("two connections of one device")
        link = Link(self.world, self.person.link_delay())
        self.links.append(link)
        self._fresh[link] = list(self.cursor)
        link.on_cut.append(lambda: self._on_cut(link))
        cursors = list(self.cursor)

        def arrive() -> None:
            self.sessions[link] = Session(self.world, backend, link, self, cursors)

        link.to_server(arrive)
        self._ack_all()
        self.outbox.resend_all()
        self._resend_reads()

    @property
    def settled(self) -> bool:
        """Nothing is half done: no entry staged, no reading unconfirmed."""
        return self.link is not None and not self._staged and not any(self.reading.values())

    @property
    def link(self) -> Link | None:
        """The newest connection that is not known to be cut."""
        return self.links[-1] if self.links else None

    def _on_cut(self, link: Link) -> None:
        if link in self.links:
            self.links.remove(link)
            self.sessions.pop(link, None)
            self._fresh.pop(link, None)

    def say(self, body: AnyBody, answer: Callable[[Said], None] | None, link: Link | None = None) -> bool:
        """Send a record over the newest connection; whether there is one."""
        link = link or self.link
        if link is None:
            return False
        life = self.life

        def answered(said: Said) -> None:
            if answer and life == self.life:
                answer(said)

        link.to_server(lambda: self._arrive(link, body, answered if answer else None))
        return True

    def _arrive(self, link: Link, body: AnyBody, answer: Callable[[Said], None] | None) -> None:
        if session := self.sessions.get(link):
            session.take(body, answer)

    def look_up(self, account: int, answer: Callable[[int, dict[int, int]], None]) -> None:
        link, life = self.link, self.life
        if link is not None:

            def arrive() -> None:
                if session := self.sessions.get(link):
                    session.look_up(account, lambda v, d: answer(v, d) if life == self.life else None)

            link.to_server(arrive)

    def crash(self) -> None:
        """The device dies. What was staged and not committed is gone."""
        self.world.tell(self.name, "crashes" + (" before its commit" if self._staged else ""))
        if self._staged:
            self.world.hit("client crashed before its commit")
        self.life += 1
        self._staged.clear()
        self._staged_to = list(self.cursor)
        self._staged_unreadable.clear()
        self._commit_soon = False
        for link in self.links:
            link.cut()
        self.links.clear()

    # --- receiving ------------------------------------------------------------------------------

    def on_items(self, link: Link, lane: Lane, items: Sequence[tuple[int, Entry] | Gap]) -> None:
        for item in items:
            low, high = (item.low, item.high) if isinstance(item, Gap) else (item[0], item[0])
            self._check_fresh(link, lane, low, high)
            expected = max(self._staged_to[lane], self.cursor[lane]) + 1
            if high < expected:
                self.world.hit("redelivered and dropped")
                continue
            if low > expected:
                raise self.history.broke("gap-free", f"{self.name} got {low} in {lane.name}, expected {expected}")
            self._staged_to[lane] = high
            if isinstance(item, Gap):
                self.world.hit("gap served")
                self._staged.append(lambda gap=item: self._note_gap(gap))
            else:
                self._stage_entry(lane, item[0], item[1])
        self._stage_commit()

    def _check_fresh(self, link: Link, lane: Lane, low: int, high: int) -> None:
        """Inside one connection nothing comes twice; a repeat needs a new connection to explain it."""
        fresh = self._fresh.get(link)
        if fresh is None:
            return
        if low <= fresh[lane]:
            raise self.history.broke("unexplained redelivery", f"{self.name} got {lane.name} {low} twice on one link")
        fresh[lane] = high

    def _stage_entry(self, lane: Lane, seq: int, entry: Entry) -> None:
        if entry.ciphertext != seal(entry.of or entry.id, self.device, self.registration):
            raise self.history.broke("no ghost", f"{self.name} got {entry.id}, which was sealed for somebody else")
        own = account_of(entry.by) == self.person.account
        if not own and self.person.finds_unreadable(entry):
            self.world.hit("undecryptable")
            self._staged_unreadable.append((lane, seq))
            self._staged.append(lambda: self.seen.unreadable.add((entry.by, entry.to, lane, entry.n)))
        else:
            self._staged.append(lambda: self._show(lane, seq, entry, own))

    def _show(self, lane: Lane, seq: int, entry: Entry, own: bool) -> None:
        key = (entry.by, entry.to, lane, entry.n)
        if key in self.seen.stored:
            raise self.history.broke("nothing twice", f"{self.name} was given {entry.id} under two numbers")
        self.seen.stored.add(key)
        original = entry.of or entry.id
        message = self.history.messages.get(entry.id)
        if message is None or (message.by, message.n, message.lane) != (entry.by, entry.n, lane):
            raise self.history.broke("no ghost", f"{self.name} was given {entry.id}, which nobody sent so")
        peer = entry.to if own else account_of(entry.by)
        if not own:
            self.unread.add((entry.by, lane, entry.n))
        if original in self.seen.shown:
            self.world.hit("re-seal of something shown already")
            return
        self.seen.shown[original] = Shown(original, entry.by, entry.at, seq, lane)
        if entry.of is None and entry.at > self.newest.get(peer, 0):
            self.newest[peer], self.latest[peer] = entry.at, original

    def _note_gap(self, gap: Gap) -> None:
        if gap.reason == Reason.EXPIRED:
            self.seen.expired_gaps += gap.high - gap.low + 1

    def on_changes(self, link: Link, changes: Sequence[tuple[ChangeKey, int, Reason, list[int]]]) -> None:
        for key, seq, reason, spans in changes:
            if seq <= max(self._staged_to[2], self.cursor[2]):
                continue
            self._staged_to[2] = seq
            self._staged.append(lambda k=key, r=reason, s=spans: self._note_change(k, r, s))
        self._stage_commit()

    def _note_change(self, key: ChangeKey, reason: Reason, spans: list[int]) -> None:
        by, to, lane, device, state, _ = key
        for n in numbers(spans):
            what = (by, to, Lane(lane), n)
            match State(state):
                case State.DELIVERED:
                    self.seen.delivered_at.setdefault(what, set()).add(device)
                    if device in self.seen.failed_at.get(what, {}):
                        raise self.history.broke("receipts never go backward", f"{self.name}: {what} on {device:x}")
                case State.READ:
                    self.seen.read_at.setdefault(what, set()).add(device)
                case State.FAILED:
                    if device in self.seen.delivered_at.get(what, ()):
                        raise self.history.broke("receipts never go backward", f"{self.name}: {what} on {device:x}")
                    self.seen.failed_at.setdefault(what, {})[device] = reason
                    if reason == Reason.EXPIRED:
                        self._check_age(self.history.by_number[what])
                    self.world.hit(f"failed: {reason.name.lower()}")
                    self.outbox.on_failed(by, to, Lane(lane), n, device, reason)
                case State.SENT:
                    raise self.history.broke("receipts", "nobody sends a receipt for having sent")

    def _check_age(self, message: Message) -> None:
        """Nothing expires before its time, by whatever clock the server has."""
        limits = (message.life_ms, self.person.town.limits.ttl_ms)
        least = min((limit for limit in limits if limit), default=None)
        age = self.world.now - message.sealed_at + self.world.clock_slack_ms
        if least is None or age < least:
            raise self.history.broke("expiry in time", f"{message.id} expired {age} ms after it was sealed: {limits}")

    # --- committing -----------------------------------------------------------------------------

    def _stage_commit(self) -> None:
        if self._staged and not self._commit_soon:
            self._commit_soon = True
            life = self.life
            self.world.later(self.world.between(0, 12), lambda: self._commit() if life == self.life else None)

    def _commit(self) -> None:
        """One transaction; then, and only then, the acknowledgement."""
        self._commit_soon = False
        before = list(self.cursor)
        staged, self._staged = self._staged, []
        for change in staged:
            change()
        self.cursor = [max(a, b) for a, b in zip(self.cursor, self._staged_to, strict=True)]
        for lane, seq in self._staged_unreadable:
            self.unopened[lane].add(seq)
        self._staged_unreadable.clear()
        if self.person.forgets_to_ack():
            self.world.hit("ack lost")
            return
        for lane in Lane:
            if self.cursor[lane] > before[lane]:
                self._ack(lane, self.cursor[lane])
        if self.cursor[2] > before[2]:
            self.say(ChangesAcked(self.cursor[2]), self._on_ack_answer)

    def ack_again(self) -> None:
        """A repeated or late ack changes nothing."""
        for lane in Lane:
            if self.cursor[lane]:
                self._ack(lane, self.world.between(1, self.cursor[lane]))

    def _ack_all(self) -> None:
        """On connecting: the last ack may have been lost."""
        for lane in Lane:
            if self.cursor[lane]:
                self._ack(lane, self.cursor[lane])
        if self.cursor[2]:
            self.say(ChangesAcked(self.cursor[2]), self._on_ack_answer)

    def _ack(self, lane: Lane, upto: int) -> None:
        """Every ack names all that could not be opened, until one is known to have arrived."""
        unopened = frozenset(seq for seq in self.unopened[lane] if seq <= upto)

        def answered(said: Said) -> None:
            if isinstance(said, Done):
                self.unopened[lane].difference_update(unopened)
            else:
                self._on_ack_answer(said)

        self.say(Acked(lane, upto, tuple(sorted(unopened))), answered)

    def _on_ack_answer(self, said: Said) -> None:
        if isinstance(said, UnknownDevice) and self.removed:
            return
        if not getattr(said, "retry", False):
            raise self.history.broke("acks", f"{self.name} was told {said!r}")

    # --- reading --------------------------------------------------------------------------------

    def read(self, peer: int) -> None:
        """A person opens a conversation: everything shown in it counts as read."""
        now_read = {mark for mark in self.unread if account_of(mark[0]) == peer}
        if not now_read:
            return
        self.unread -= now_read
        self.ever_reading |= now_read
        self.reading.setdefault(peer, set()).update(now_read)
        if self.person.hides_reading(peer):
            self.seen.read_hidden |= now_read
        self._send_read(peer)

    def _resend_reads(self) -> None:
        for peer in self.reading:
            self._send_read(peer)

    def _send_read(self, peer: int) -> None:
        marks = frozenset(self.reading[peer])
        spans: list[Span] = []
        for by, lane in sorted({(by, lane) for by, lane, _ in marks}):
            mine = spans_of(sorted(mark[2] for mark in marks if mark[:2] == (by, lane)))
            spans += [Span(by, lane, low, high) for low, high in pairs(mine)]

        def answered(said: Said) -> None:
            if isinstance(said, Done):
                self.seen.read |= marks
                self.reading[peer] -= marks
            elif getattr(said, "retry", False):
                self.world.later(500, lambda: self._send_read(peer) if self.reading[peer] else None)

        if spans:
            self.say(Read(peer, tuple(spans)), answered)
