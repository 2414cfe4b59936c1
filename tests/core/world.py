"""The fold with no engine around it: records go in, answers and effects come out.

Knows:   one strict state per shard, what each has saved, and what shards say to each other.
Never:   lets a record be taken before its needs are met, or with more than two loads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from nightmail.core import step
from nightmail.core.due import is_due
from nightmail.core.gaps import gap_at
from nightmail.core.letters.burying import bury, needs_bury
from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.receipts import needs_receipts, receipts_after
from nightmail.core.state import NEWEST_FOLD, PUSH_FOLD, SHARD, ShardState, encode_row
from nightmail.engine.folding import ROUNDS_MAX
from nightmail.model.answers import Accepted, Done, Joined, Said
from nightmail.model.effects import Answer, Effect, Forward
from nightmail.model.ids import SERVER, account_id, account_of, shard_of
from nightmail.model.ledger import CopyLedger
from nightmail.model.limits import FoldLimits
from nightmail.model.notes import Note
from nightmail.model.records import (
    AnyBody,
    Envelope,
    FoldRaised,
    Forwarded,
    LimitsSet,
    Linked,
    Listed,
    Published,
    Record,
    Registered,
    Sent,
    Ticked,
    decode_record,
    encode_record,
)
from nightmail.model.rows import (
    Account,
    Due,
    DueItem,
    Entry,
    EntryRange,
    Gap,
    Kept,
    Keys,
    Mailbox,
    Need,
    PendingReceipt,
    PendingReceipts,
    RowKey,
    Shard,
    Stream,
    queue_id,
)
from nightmail.model.words import Kind, Lane, Platform
from sim.judges.strict import StrictState

START = 1_700_000_000_000
"""When every world begins: a whole second."""


decode_due = msgspec.msgpack.Decoder(Due).decode


class Memory(Enum):
    """What a shard keeps in memory. It must not matter."""

    KEEPS = "everything; nothing is ever saved"
    SAVES = "everything; saved after each record"
    FORGETS = "nothing; saved after each record, and every row is loaded again when it is needed"


WORLDS = {
    "one shard": (1, Memory.KEEPS),
    "256 shards": (256, Memory.KEEPS),
    "one shard, nothing in memory": (1, Memory.FORGETS),
    "256 shards, saved": (256, Memory.SAVES),
}
"""Every promise is kept in each of these."""


@dataclass
class Person:
    handle: str
    account: int
    devices: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, index: int) -> int:
        """The device that was the `index`-th to join."""
        return self.devices[index]


class Node:
    """One shard: its state, and what it has saved."""

    def __init__(self, index: int, shards: int, memory: Memory, newest_fold: int = NEWEST_FOLD) -> None:
        self.index, self.shards, self.memory, self.newest_fold = index, shards, memory, newest_fold
        self.state: ShardState = StrictState(index, shards, newest_fold)
        self.offset = 0
        self.rows: dict[RowKey, bytes] = {}
        self.entries: dict[int, dict[int, bytes]] = {}
        self.notes: list[Note] = []

    def fold(self, at: int, data: bytes) -> tuple[list[Effect], list[Forward]]:
        state = self.state
        state.shard.now = max(state.shard.now, at)
        self.offset += 1
        record = decode_record(data)
        by, via, body = record.by, record.via, record.body
        while True:
            needs, take = step.FOLDS[state.shard.fold][type(body)]
            self.load(lambda state, needs=needs, by=by, body=body: needs(state, by, body))
            state.offset = self.offset
            take(state, by, via, body)
            if not state.derived:
                break
            by, via, body = SERVER, 0, state.derived.popleft()
        return self._finish()

    def bury(self, at: int, data: bytes, error: str, record: Record | None = None) -> list[Effect]:
        """Bytes that are no record; or a record that the fold could not take."""
        self.state.shard.now = max(self.state.shard.now, at)
        self.offset += 1
        by, via, body = (record.by, record.via, record.body) if record else (SERVER, 0, None)
        self.load(lambda state: needs_bury(state, self.offset, error, by, body))
        self.state.offset = self.offset
        bury(self.state, self.offset, data, error, by, via, body)
        return self._finish()[0]

    def _finish(self) -> tuple[list[Effect], list[Forward]]:
        state = self.state
        effects, state.effects = state.effects, []
        forwards, state.forwards = state.forwards, []
        self.notes += state.notes
        state.notes.clear()
        if self.memory is not Memory.KEEPS:
            self.save()
        if self.memory is Memory.FORGETS:
            self.forget()
        return effects, forwards

    # --- rows ---------------------------------------------------------------------------------

    def load(self, wanted: Callable[[ShardState], Sequence[Need]]) -> None:
        for _ in range(ROUNDS_MAX + 1):
            if not (missing := wanted(self.state)):
                return
            for need in missing:
                if isinstance(need, EntryRange):
                    stored = self.entries.get(need.queue, {})
                    found = [(seq, data) for seq, data in sorted(stored.items()) if need.low <= seq <= need.high]
                    self.state.install_entries(need.queue, found)
                else:
                    self.state.install(need, self.rows.get(need))
        raise AssertionError("needs that never end")

    def save(self) -> None:
        state = self.state
        boxes: list[int] = []
        for key, _, row in state.changed_rows():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = encode_row(row)
            if key.kind is Kept.MAILBOX:
                boxes.append(key.a)
        for queue, first in state.filed.items():
            for seq, entry in state.entries.get(queue, {}).items():
                if seq >= first:
                    self.entries.setdefault(queue, {})[seq] = encode_row(entry)
                    state.stored[queue] = max(seq, state.stored.get(queue, 0))
        for queue, upto in state.cleared.items():
            self.entries[queue] = {seq: data for seq, data in self.entries.get(queue, {}).items() if seq > upto}
        for queue, seq in state.dropped:
            del self.entries[queue][seq]
        state.forget_changes()
        for device in boxes:
            self._check_stored(device)

    def _check_stored(self, device: int) -> None:
        """The store holds exactly what waits: nothing is lost, and no ciphertext outlives its entry."""
        mailbox = self.state.mailboxes[device]
        for lane in Lane:
            waiting: list[int] = []
            if mailbox is not None:
                queue = mailbox.lanes[lane]
                waiting = [seq for seq in range(queue.acked + 1, queue.head + 1) if gap_at(queue.gaps, seq) is None]
            assert sorted(self.entries.get(queue_id(device, lane), {})) == waiting

    def forget(self) -> None:
        self.state = StrictState(self.index, self.shards, self.newest_fold)
        self.state.offset = self.offset
        self.state.install(SHARD, self.rows[SHARD])

    def row(self, kind: Kept, a: int, b: int = 0) -> Any:
        """A row as it is now, loaded if it is not in memory. A copy: what is compared later must not change."""
        pairs = self.state.by_pair.get(kind)
        key: Any = a if pairs is None else (a, b)
        table: Any = self.state.by_number[kind] if pairs is None else pairs
        if key not in table:
            self.state.install(RowKey(kind, a, b), self.rows.get(RowKey(kind, a, b)))
        return deepcopy(table[key])

    def everything(self) -> tuple[dict[RowKey, bytes], dict[tuple[int, int], bytes]]:
        """Every row and entry, as bytes."""
        if self.memory is Memory.KEEPS:
            rows = {key: encode_row(row) for key, _, row in self.state.changed_rows() if row is not None}
            found = {
                (q, seq): encode_row(entry) for q, all_ in self.state.entries.items() for seq, entry in all_.items()
            }
            return rows, found
        return self.rows, {(q, seq): data for q, all_ in self.entries.items() for seq, data in all_.items()}


class World:
    def __init__(self, shards: int = 1, memory: Memory = Memory.KEEPS, fold: int = NEWEST_FOLD) -> None:
        self.shards, self.memory, self.fold_version = shards, memory, fold
        self.now = START
        self.nodes: dict[int, Node] = {}
        self.effects: list[Effect] = []
        """What the last record asked for, other than its answer."""
        self.forwards: deque[tuple[int, Forward]] = deque()
        """(from, what): said to another shard, not yet heard there."""
        self.carries = True
        """Whether forwards are carried at once."""
        self._via = 0
        self._limits = FoldLimits()

    # --- records ------------------------------------------------------------------------------

    def do(self, by: int, body: AnyBody) -> Said | None:
        """Fold what a device says, carry what shards say to each other, and return the answer, if any."""
        self._via += 1
        self.effects = []
        answers = self.fold(self.home(by, body), Record(by, self._via, body))
        while self.carries and self.forwards:
            source, forward = self.forwards.popleft()
            self.hear(source, forward)
        assert len(answers) <= 1, answers
        return answers[0].said if answers else None

    def fold(self, node: Node, record: Record) -> list[Answer]:
        effects, forwards = node.fold(self.now, encode_record(record))
        self.forwards += ((node.index, forward) for forward in forwards)
        answers = [effect for effect in effects if isinstance(effect, Answer)]
        assert all(answer.via == record.via for answer in answers)
        self.effects += (effect for effect in effects if not isinstance(effect, Answer))
        return answers

    def hear(self, source: int, forward: Forward) -> None:
        there = self.node(forward.shard)
        assert self.fold(there, Record(SERVER, 0, Forwarded(source, forward.k, forward.body))) == []

    def home(self, by: int, body: AnyBody) -> Node:
        """The shard that decides about a record."""
        return self.of(body.home(by))

    def node(self, index: int) -> Node:
        if index not in self.nodes:
            node = self.nodes[index] = Node(index, self.shards, self.memory, self.fold_version)
            node.fold(self.now, encode_record(Record(SERVER, 0, FoldRaised(self.fold_version))))
            node.fold(self.now, encode_record(Record(SERVER, 0, LimitsSet(self._limits))))
        return self.nodes[index]

    def of(self, account: int) -> Node:
        return self.node(shard_of(account, self.shards))

    def limit(self, **limits: int) -> None:
        """From here on, everywhere."""
        self._limits = FoldLimits(**limits)
        for node in self.nodes.values():
            node.fold(self.now, encode_record(Record(SERVER, 0, LimitsSet(self._limits))))

    def wait(self, ms: int) -> int:
        """Let time pass, and everything become due that does. How many ticks that took."""
        self.now += ms
        ticks = 0
        self.effects = []
        for node in list(self.nodes.values()):
            while is_due(node.state, self.now):
                ticks += 1
                self.fold(node, Record(SERVER, 0, Ticked()))
        while self.carries and self.forwards:
            self.hear(*self.forwards.popleft())
        return ticks

    # --- what became of everything --------------------------------------------------------------

    def ledger(self) -> CopyLedger:
        """Of all shards together."""
        total = CopyLedger()
        for node in self.nodes.values():
            ledger = node.state.ledger
            for name in ("owed", "delivered", "withheld", "waiting", "buried", "carried", "repeated"):
                setattr(total, name, getattr(total, name) + getattr(ledger, name))
            for reason, count in ledger.failed.items():
                total.fail(reason, count)
        return total

    def check_ledgers(self) -> None:
        """Whatever a test did: every copy that was taken on is accounted for, and as many wait as are stored."""
        if self.fold_version < PUSH_FOLD:
            return
        for node in self.nodes.values():
            ledger = node.state.ledger
            assert ledger.lost == ledger.carried, ledger
            assert ledger.waiting == len(node.everything()[1]), ledger
        if not self.forwards:
            assert self.ledger().carried == 0, self.ledger()

    # --- people -------------------------------------------------------------------------------

    def join(self, handle: str, devices: int = 1) -> Person:
        """A person with so many listed devices."""
        person = Person(handle, account_id(handle))
        joined = self.do(SERVER, Registered(person.account, handle, 101, b"token 1", "phone", Platform.CLI))
        assert isinstance(joined, Joined)
        person.devices[1] = joined.device
        while len(person.devices) < devices:
            self.link(person)
        return person

    def link(self, person: Person, *, listed: bool = True) -> int:
        """One more device. Its registration is a hundred more than its number."""
        index = len(person.devices) + 1
        token = f"token {index}".encode()
        joined = self.do(person[1], Linked(person.account, 100 + index, token, "another", Platform.CLI))
        assert isinstance(joined, Joined)
        person.devices[index] = joined.device
        if listed:
            names = (*self.account(person).listed, joined.device)
            assert self.list_devices(person[1], person, names) == Done()
        return joined.device

    def list_devices(self, by: int, person: Person, devices: tuple[int, ...]) -> Said | None:
        version = self.account(person).list_version + 1
        return self.do(by, Listed(person.account, version, devices, f"signed {version}".encode()))

    def sent(
        self,
        by: int,
        to: Person,
        n: int = 1,
        *,
        lane: Lane = Lane.NORMAL,
        text: str = "hello",
        floor: int = 1,
        seen: int = 0,
        name: str | None = None,
        tag: bytes | None = None,
        kind: Kind = Kind.TEXT,
        of: str | None = None,
        life_ms: int = 0,
        list_version: int | None = None,
        envelopes: tuple[Envelope, ...] | None = None,
        own_envelopes: tuple[Envelope, ...] | None = None,
    ) -> Sent:
        """A message as an honest client with fresh lists would write it, except where told otherwise."""
        account = self.account(to)
        if envelopes is None:
            envelopes = seal(account.listed, by, text)
        if own_envelopes is None:
            own = self.of(account_of(by)).row(Kept.ACCOUNT, account_of(by))
            own_envelopes = () if account_of(by) == to.account else seal(own.listed, by, text)
        return Sent(
            to=to.account,
            lane=lane,
            n=n,
            floor=floor,
            seen=seen,
            id=name or name_of(by, n, lane),
            tag=text.encode().ljust(16, b".")[:16] if tag is None else tag,
            kind=kind,
            of=of,
            life_ms=life_ms,
            list_version=account.list_version if list_version is None else list_version,
            envelopes=envelopes,
            own_envelopes=own_envelopes,
        )

    def send(self, by: int, to: Person, n: int = 1, **rest: Any) -> Said | None:
        return self.do(by, self.sent(by, to, n, **rest))

    # --- looking ------------------------------------------------------------------------------

    def account(self, person: Person) -> Account:
        return self.of(person.account).row(Kept.ACCOUNT, person.account)

    def stream(self, by: int, to: Person) -> Stream | None:
        return self.of(to.account).row(Kept.STREAM, by, to.account)

    def mailbox(self, device: int) -> Mailbox | None:
        return self.of(account_of(device)).row(Kept.MAILBOX, device)

    def changes(self, device: int) -> PendingReceipts | None:
        return self.of(account_of(device)).row(Kept.RECEIPTS, device)

    def keys(self, device: int) -> Keys | None:
        return self.of(account_of(device)).row(Kept.KEYS, device)

    def due(self, person: Person) -> dict[int, list[DueItem]]:
        """What is scheduled on the shard that a person lives on, by second."""
        rows, _ = self.of(person.account).everything()
        return {key.a: decode_due(data).items for key, data in sorted(rows.items()) if key.kind is Kept.DUE}

    def shard(self, person: Person) -> Shard:
        return self.of(person.account).state.shard

    def offer(
        self, device: int, lane: Lane = Lane.NORMAL, after: int = 0, limit: int = 1000
    ) -> list[tuple[int, Entry] | Gap]:
        """What the device would be handed."""
        node = self.of(account_of(device))
        node.load(lambda state: needs_offer(state, device, lane, after, limit))
        return offer(node.state, device, lane, after, limit)

    def texts(self, device: int, lane: Lane = Lane.NORMAL) -> list[str]:
        """The same, as a person would read it."""
        return [
            f"gap {item.low}-{item.high} {item.reason.name.lower()}" if isinstance(item, Gap) else opened(item[1])
            for item in self.offer(device, lane)
        ]

    def receipts(self, device: int, after: int = 0, limit: int = 1000) -> list[PendingReceipt]:
        node = self.of(account_of(device))
        node.load(lambda state: needs_receipts(state, device))
        return deepcopy(receipts_after(node.state, device, after, limit))

    def notes(self, person: Person) -> list[Note]:
        """The delivery log of the shard that a person lives on."""
        return self.of(person.account).notes

    def everything(self) -> dict[int, object]:
        return {index: node.everything() for index, node in self.nodes.items()}


def name_of(by: int, n: int, lane: Lane = Lane.NORMAL) -> str:
    return f"{by:x}:{START}:{n:05d}:{lane.name.lower()}"


def seal(listed: dict[int, int], by: int, text: str) -> tuple[Envelope, ...]:
    """One envelope for each device but our own."""
    return tuple(Envelope(device, reg, f"{device}|{text}".encode()) for device, reg in listed.items() if device != by)


def sealed(device: int, text: str = "hello", registration: int | None = None) -> Envelope:
    known = 100 + (device & 0xFFF) if registration is None else registration
    return Envelope(device, known, f"{device}|{text}".encode())


def opened(entry: Entry) -> str:
    return entry.ciphertext.decode().partition("|")[2]


def published(
    device: int, ids: Sequence[int], kem_ids: Sequence[int], *, identity: str = "identity", renewed: int = 1
) -> Published:  # fmt: skip
    """Keys of a device, cut short: the fold looks at their ids only."""
    return Published(
        100 + (device & 0xFFF),
        identity.encode(),
        renewed.to_bytes(4, "big") + b"signed",
        b"\1" + renewed.to_bytes(4, "big") + b"last resort",
        tuple(key.to_bytes(4, "big") + b"x25519" for key in ids),
        tuple(b"\0" + key.to_bytes(4, "big") + b"kem" for key in kem_ids),
    )


def tag(text: str) -> bytes:
    return text.encode().ljust(16, b".")


def stamp(said: object) -> int:
    assert isinstance(said, Accepted)
    return said.at
