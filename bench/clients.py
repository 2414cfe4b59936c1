"""Simulated clients: they send, take what they are offered, acknowledge, and check every promise on the way.

Knows:   what each device sent, was answered, was shown and was told; that is its whole memory.
Touches: the loop only through records and through what a session may read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from time import time_ns

from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.receipts import needs_receipts, receipts_after
from nightmail.core.state import ShardState
from nightmail.model.answers import Accepted
from nightmail.model.effects import Answer, Effect, Grew, ReceiptsGrew
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, Envelope, ReceiptsAcked, Record, Sent
from nightmail.model.rows import Entry, Gap, Need, PendingReceipt
from nightmail.model.words import Kind, Lane

from .measured_node import Broken, Rig

BODY_BYTES = 500
GROUP = 32
"""Entries that a client acknowledges together, at most."""

NORMAL, TEXT = Lane.NORMAL, Kind.TEXT


class Talk:
    """One device's messages to another one."""

    __slots__ = ("active", "answered", "asked", "by", "delivered", "goal", "n", "peer", "seen", "shown", "to", "via")

    def __init__(self, via: int, by: int, peer: int) -> None:
        self.via, self.by, self.peer, self.to = via, by, peer, account_of(peer)
        self.n = self.answered = self.shown = self.delivered = self.seen = self.goal = 0
        self.active = False
        self.asked: list[str] = []
        """Ids that wait for their answer, oldest first."""


class Mail:
    """What a session and its client know of one device."""

    __slots__ = ("acked", "changes", "cursor", "device", "entries", "online", "receipts")

    def __init__(self, device: int) -> None:
        self.device = device
        self.cursor = 0
        self.acked = 0
        self.online = True
        self.entries: Sequence[tuple[int, Entry] | Gap] = ()
        self.changes: Sequence[PendingReceipt] = ()
        self.receipts = 0

    def wants_entries(self, state: ShardState) -> Sequence[Need]:
        return needs_offer(state, self.device, NORMAL, self.cursor, GROUP)

    def take_entries(self, state: ShardState) -> None:
        self.entries = offer(state, self.device, NORMAL, self.cursor, GROUP)

    def wants_changes(self, state: ShardState) -> Sequence[Need]:
        return needs_receipts(state, self.device)

    def take_changes(self, state: ShardState) -> None:
        self.changes = receipts_after(state, self.device, self.receipts, GROUP)


class Clients:
    """All of them, one turn at a time.

    Each active talk keeps `window` messages in flight, counted until the receipt is there
    (`until="receipt"`) or until the answer is (`until="answer"`). A talk that has reached its goal
    makes room: `next_talk` may begin another one.
    """

    def __init__(self, rig: Rig, seed: int = 1) -> None:
        chance = Random(seed)
        self._rig = rig
        self._bodies = [chance.randbytes(BODY_BYTES) for _ in range(64)]
        self._tags = [chance.randbytes(16) for _ in range(64)]
        self._salts = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=4)) for _ in range(64)]
        self.mails: dict[int, Mail] = {}
        self._talks: dict[tuple[int, int], Talk] = {}
        self._by_via: list[Talk] = []
        self._grown: dict[int, Mail] = {}
        self._changed: dict[int, Mail] = {}
        self._ready: dict[int, Talk] = {}
        self._outbox: list[Record] = []
        self.window = 8
        self.single = False
        self.until_answer = False
        self.next_talk: Callable[[], None] = lambda: None
        self.sent = self.answered = self.shown = self.delivered = 0
        self.sequence = 0

    # --- who talks to whom --------------------------------------------------------------------

    def talk(self, by: int, peer: int) -> Talk:
        talk = self._talks.get((by, account_of(peer)))
        if talk is None:
            talk = Talk(len(self._by_via) + 1, by, peer)
            self._by_via.append(talk)
            self._talks[by, talk.to] = talk
            for device in (by, peer):
                if device not in self.mails:
                    self.mails[device] = Mail(device)
        return talk

    def begin(self, talk: Talk, messages: int) -> None:
        """Send this many more, in flight as the window allows."""
        talk.active = True
        talk.goal = talk.n + messages
        self._ready[talk.via] = talk

    def come_online(self, device: int) -> None:
        mail = self.mails[device]
        mail.online = True
        self._grown[device] = mail

    # --- turns --------------------------------------------------------------------------------

    def is_done(self, upto: int | None = None) -> bool:
        """Everything sent (or the first `upto`) was delivered, or only answered; and nothing is left to say."""
        busy = self._ready or self._grown or self._changed or self._outbox
        confirmed = self.answered if self.until_answer else self.delivered
        return not busy and confirmed >= (self.sent if upto is None else upto)

    def turn(self) -> None:
        rig, meter = self._rig, self._rig.meter
        records, self._outbox = self._outbox, []
        effects = rig.turn(records, wait=not (self._grown or self._changed or self._ready))
        before = meter.switch("client")
        self._hear(effects)
        grown, self._grown = self._grown, {}
        changed, self._changed = self._changed, {}
        if grown or changed:
            meter.switch("offer")
            read = rig.loop.read
            for mail in grown.values():
                read(mail.wants_entries, mail.take_entries)
            for mail in changed.values():
                read(mail.wants_changes, mail.take_changes)
            meter.switch("client")
            for mail in grown.values():
                self._take_entries(mail)
            for mail in changed.values():
                self._take_changes(mail)
        ready, self._ready = self._ready, {}
        for talk in ready.values():
            self._go_on(talk)
        meter.switch(before)

    def run(self, progress: Callable[[], None] | None = None, upto: int | None = None) -> None:
        """Until everything is done."""
        stuck = 0
        while not self.is_done(upto):
            before = (self.answered, self.shown, self.delivered)
            self.turn()
            stuck = stuck + 1 if before == (self.answered, self.shown, self.delivered) else 0
            if stuck > 3_000:  # a minute of turns that each waited for the engine
                raise Broken(f"{self.sent} sent, {self.answered} answered, {self.delivered} delivered; nothing moves")
            if progress:
                progress()

    # --- hearing ------------------------------------------------------------------------------

    def _hear(self, effects: Iterable[Effect]) -> None:
        mails = self.mails
        for effect in effects:
            if isinstance(effect, Grew):
                mail = mails[effect.device]
                if mail.online:
                    self._grown[mail.device] = mail
            elif isinstance(effect, ReceiptsGrew):
                mail = mails[effect.device]
                if mail.online:
                    self._changed[mail.device] = mail
            elif isinstance(effect, Answer):
                self._hear_answer(effect)

    def _hear_answer(self, answer: Answer) -> None:
        said = answer.said
        if not isinstance(said, Accepted):
            raise Broken(f"{answer.via} was told {said!r}")
        talk = self._by_via[answer.via - 1]
        if not talk.asked or talk.asked.pop(0) != said.id:
            raise Broken(f"{said.id} was answered out of turn")
        talk.answered += 1
        talk.seen = said.at
        self.answered += 1
        if self.until_answer:
            self._ready[talk.via] = talk

    def _take_entries(self, mail: Mail) -> None:
        items, mail.entries = mail.entries, ()
        for item in items:
            if isinstance(item, Gap):
                raise Broken(f"{mail.device} was told of a gap: {item}")
            seq, entry = item
            talk = self._talks[entry.by, entry.to]
            if seq != mail.cursor + 1 or entry.n != talk.shown + 1:
                raise Broken(f"{mail.device} was offered {seq} after {mail.cursor}, {entry.n} after {talk.shown}")
            mail.cursor = seq
            talk.shown = entry.n
            if self.single:
                self._outbox.append(Record(mail.device, 0, Acked(NORMAL, seq)))
        self.shown += len(items)
        if items and not self.single:
            self._outbox.append(Record(mail.device, 0, Acked(NORMAL, mail.cursor)))
        if len(items) == GROUP:
            self._grown[mail.device] = mail

    def _take_changes(self, mail: Mail) -> None:
        changes, mail.changes = mail.changes, ()
        for change in changes:
            talk = self._talks[change.key[0], change.key[1]]
            spans = change.numbers
            if spans[0] > talk.delivered + 1 or len(spans) != 2:
                raise Broken(f"{mail.device} was told that {spans} arrived after {talk.delivered}")
            if spans[1] > talk.delivered:
                self.delivered += spans[1] - talk.delivered
                talk.delivered = spans[1]
                if not self.until_answer:
                    self._ready[talk.via] = talk
            mail.receipts = change.seq
            if self.single:
                self._outbox.append(Record(mail.device, 0, ReceiptsAcked(change.seq)))
        if changes and not self.single:
            self._outbox.append(Record(mail.device, 0, ReceiptsAcked(mail.receipts)))
        if len(changes) == GROUP:
            self._changed[mail.device] = mail

    # --- sending ------------------------------------------------------------------------------

    def _go_on(self, talk: Talk) -> None:
        confirmed = talk.answered if self.until_answer else talk.delivered
        while talk.n < talk.goal and talk.n - confirmed < self.window:
            self._send(talk)
        if talk.active and confirmed == talk.goal:
            talk.active = False
            self.next_talk()

    def _send(self, talk: Talk) -> None:
        talk.n = n = talk.n + 1
        self.sequence = sequence = self.sequence + 1
        pick = sequence & 63
        identity = f"{talk.by:x}:{time_ns() // 1_000_000}:{sequence:05d}:{self._salts[pick]}"
        talk.asked.append(identity)
        self.sent += 1
        envelopes = (Envelope(talk.peer, 1, self._bodies[pick]),)
        tag = self._tags[pick]
        sent = Sent(
            talk.to, NORMAL, n, talk.answered + 1, talk.seen, identity, tag, TEXT, None, 0, 1, envelopes, ()
        )  # fmt: skip
        self._outbox.append(Record(talk.by, talk.via, sent))
