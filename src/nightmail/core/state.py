"""The rows of one shard that are in memory, and what the fold has to say about them.

Knows:   which rows changed, and at which offset; what was filed and what was cleared.
Touches: nothing but itself. Rows come in by `install` and go out by `changed_rows`.

Whether a row is here or only in the store must never decide anything: a row that `needs` named
is here, or known to be absent (None); any other is a KeyError.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from nightmail.model.blob_rows import AccountBlobs, AudiencePage, Blob
from nightmail.model.effects import Effect, Forward
from nightmail.model.group_rows import AccountGroups, AtHead, ChainBlob, Group, GroupMember, GroupRoster
from nightmail.model.ids import shard_of
from nightmail.model.ledger import CopyLedger
from nightmail.model.letter_rows import DeadLetter, LetterClasses, LetterPage
from nightmail.model.notes import Note
from nightmail.model.push_rows import PushTarget
from nightmail.model.records import AnyBody, Told
from nightmail.model.rows import (
    Account,
    Due,
    DueHour,
    Entry,
    GroupEntry,
    HandleClaim,
    Kept,
    Keys,
    KnownAccounts,
    Mailbox,
    MailboxShares,
    Need,
    PendingReceipts,
    Row,
    RowKey,
    Shard,
    Stream,
    queue_id,
)
from nightmail.model.schedule_rows import AccountSchedules, Schedule, ScheduleName, SchedulePage

from .gaps import gap_at

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")

Entries: TypeAlias = dict[int, Entry]
"""Sequence number → entry, of one queue."""

NEWEST_FOLD = 8
"""The newest fold version that this program supports, and raises its shards to."""

COMING_FOLD = 9
"""A version that this program folds, but does not support yet: until then its records and rows may still change."""

GROUPS_FOLD = 4
"""Since this one there are groups."""

SCHEDULES_FOLD = 5
"""Since this one there are messages for later, and dead letters can be replayed."""

PUSH_FOLD = 6
"""Since this one sleeping devices are woken."""

NOTHING: tuple[Need, ...] = ()
"""Nothing is missing."""

SHARD = RowKey(Kept.SHARD, 0)

KEYS_WEIGHT = 360
"""A row of keys counts as so many others: it may have 180 KiB, where most have less than half of one."""

decode_shard = msgspec.msgpack.Decoder(Shard).decode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_group_entry = msgspec.msgpack.Decoder(GroupEntry).decode
GROUP_ENTRY = 0x90 | len(GroupEntry.__struct_fields__)
"""How the bytes of an entry begin that came through a group: the length of its array."""

encode_row = msgspec.msgpack.Encoder().encode
"""A dict keeps the order in which it grew, so that order follows from the log, too, and survives
a load. A set would not: rows have none."""


def row_name(key: RowKey) -> str:
    """A row, in a sentence for the operator."""
    return " ".join(("the row", key.kind.name, str(key.a), *([str(key.b)] if key.b else ())))


class BadRow(ValueError):
    """Bytes that are no row of the kind they were stored as."""

    def __init__(self, what: RowKey | str) -> None:
        if isinstance(what, RowKey):
            what = row_name(what)
        super().__init__(f"{what} is stored, but cannot be read")


def decode_entry(data: bytes) -> Entry:
    return _decode_group_entry(data) if data[:1] == b"%c" % GROUP_ENTRY else _decode_entry(data)


class Table(MutableMapping[K, R | None]):
    """Rows of one kind. None stands for a row that is known not to exist."""

    __slots__ = ("changed", "decode", "rows")

    def __init__(self, row: type[R]) -> None:
        self.decode = msgspec.msgpack.Decoder(row).decode
        self.rows: dict[K, R | None] = {}
        """The table itself, as a plain dict: the steps of every message look here, which is twice as fast."""
        self.changed: dict[K, int] = {}
        """Key → offset of the last record that changed the row. Only grows, until all is forgotten at once."""

    def put(self, key: K, row: R | None, offset: int) -> None:
        """A row that is new, or changed, or no more."""
        self.rows[key] = row
        self.changed[key] = offset

    def add(self, key: K, row: R, offset: int) -> None:
        """A row whose key was never used before, so that nobody need look whether there is one."""
        self.rows[key] = row
        self.changed[key] = offset

    def there(self, key: K) -> R:
        """The row under `key`, which must exist: asking for another is our mistake."""
        row = self.rows[key]
        assert row is not None, key
        return row

    def sought(self, key: K) -> R | None:
        """The row under `key` if it is in memory. Only for who then asks another row whether there is one."""
        return self.rows.get(key)

    def __getitem__(self, key: K) -> R | None:
        return self.rows[key]

    def __setitem__(self, key: K, row: R | None) -> None:
        self.rows[key] = row

    def __delitem__(self, key: K) -> None:
        del self.rows[key]

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[K]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class ShardState:
    """One shard after folding everything up to `offset`."""

    def __init__(self, index: int = 0, shards: int = 1, newest_fold: int = NEWEST_FOLD) -> None:
        self.index = index
        self.shards = shards
        self.newest_fold = newest_fold
        self.shard = Shard()
        self.offset = 0
        self.counts_waking = False
        """Mailboxes count the entries that may wake their device: since fold 2."""
        self.counts_shares = False
        """No account fills a mailbox alone: since fold 2."""
        self.checks_ids = False
        """An id is refused under a second number if its content is another: since fold 2."""
        self.knows_groups = False
        """There are groups, which are told of their members' devices: since fold 4."""

        self.knows_schedules = False
        """Messages can be scheduled, and dead letters replayed: since fold 5."""
        self.ledger = CopyLedger()
        """The shard's own since fold 6; before, what is counted is forgotten."""

        self.knows_pushes = False
        """Devices have push tokens, and are woken: since fold 6."""

        self.accounts: Table[int, Account] = Table(Account)
        self.handles: Table[int, HandleClaim] = Table(HandleClaim)
        self.keys: Table[int, Keys] = Table(Keys)
        self.streams: Table[tuple[int, int], Stream] = Table(Stream)
        self.mailboxes: Table[int, Mailbox] = Table(Mailbox)
        self.shares: Table[int, MailboxShares] = Table(MailboxShares)
        self.known: Table[int, KnownAccounts] = Table(KnownAccounts)
        self.receipts: Table[int, PendingReceipts] = Table(PendingReceipts)
        self.due_hours: Table[int, DueHour] = Table(DueHour)
        self.due: Table[int, Due] = Table(Due)
        self.dead_letters: Table[int, DeadLetter] = Table(DeadLetter)
        self.letter_classes: Table[int, LetterClasses] = Table(LetterClasses)
        self.letter_pages: Table[int, LetterPage] = Table(LetterPage)
        self.groups: Table[int, Group] = Table(Group)
        self.rosters: Table[int, GroupRoster] = Table(GroupRoster)
        self.members: Table[tuple[int, int], GroupMember] = Table(GroupMember)
        self.chain: Table[tuple[int, int], ChainBlob] = Table(ChainBlob)
        self.account_groups: Table[int, AccountGroups] = Table(AccountGroups)
        self.at_head: Table[int, AtHead] = Table(AtHead)
        self.account_schedules: Table[int, AccountSchedules] = Table(AccountSchedules)
        self.schedules: Table[tuple[int, int], Schedule] = Table(Schedule)
        self.schedule_pages: Table[tuple[int, int], SchedulePage] = Table(SchedulePage)
        self.schedule_names: Table[tuple[int, int], ScheduleName] = Table(ScheduleName)
        self.pushes: Table[int, PushTarget] = Table(PushTarget)
        self.blobs: Table[tuple[int, int], Blob] = Table(Blob)
        self.audiences: Table[tuple[int, int], AudiencePage] = Table(AudiencePage)
        self.account_blobs: Table[int, AccountBlobs] = Table(AccountBlobs)
        self.by_pair: dict[Kept, Table[tuple[int, int], Any]] = {
            Kept.STREAM: self.streams,
            Kept.MEMBER: self.members,
            Kept.CHAIN: self.chain,
            Kept.SCHEDULE: self.schedules,
            Kept.SCHEDULE_PAGE: self.schedule_pages,
            Kept.SCHEDULE_NAME: self.schedule_names,
            Kept.BLOB: self.blobs,
            Kept.AUDIENCE: self.audiences,
        }
        """Tables whose rows have two numbers for a key."""
        self.by_number: dict[Kept, Table[int, Any]] = {
            Kept.ACCOUNT: self.accounts,
            Kept.MAILBOX: self.mailboxes,
            Kept.RECEIPTS: self.receipts,
            Kept.DUE_HOUR: self.due_hours,
            Kept.DUE: self.due,
            Kept.DEAD_LETTER: self.dead_letters,
            Kept.KEYS: self.keys,
            Kept.LETTER_CLASSES: self.letter_classes,
            Kept.LETTER_PAGE: self.letter_pages,
            Kept.SHARES: self.shares,
            Kept.KNOWN: self.known,
            Kept.HANDLE: self.handles,
            Kept.GROUP: self.groups,
            Kept.ROSTER: self.rosters,
            Kept.ACCOUNT_GROUPS: self.account_groups,
            Kept.AT_HEAD: self.at_head,
            Kept.ACCOUNT_SCHEDULES: self.account_schedules,
            Kept.PUSH: self.pushes,
            Kept.ACCOUNT_BLOBS: self.account_blobs,
        }

        self._changed: list[dict[Any, int]] = []
        """The changes of every table, once they were counted: they are counted after each batch."""
        self.entries: dict[int, Entries] = {}
        """Queue → the entries of it that are in memory."""
        self.filed: dict[int, int] = {}
        """Queue → the first entry filed since the last checkpoint."""
        self.filed_bytes = 0
        """Ciphertext of what was filed since, at most. An ack takes back what it ends, if nothing of that was saved;
        what ends otherwise counts until the next checkpoint."""
        self.loaded: list[tuple[int, int]] = []
        """(queue, seq) of entries that were read from the store, until the cache takes note of them."""
        self.stored: dict[int, int] = {}
        """Queue → the highest entry that the store may hold. Beside the row, because it depends on when we saved."""
        self.cleared: dict[int, int] = {}
        """Queue → entries up to here may go from the store."""
        self.dropped: list[tuple[int, int]] = []

        self.effects: list[Effect] = []
        self.forwards: list[Forward] = []
        self.derived: deque[AnyBody] = deque()
        """Records that follow from the current one and are folded right after it, under its offset."""
        self.notes: list[Note] = []
        self.noted: set[int] = set()
        """Devices that notes speak of although no mailbox or stream of theirs has changed."""

    # --- for the fold -------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.shard.now

    @property
    def elapsed(self) -> int:
        """Time that never goes back: `now`, and by how much it was set back."""
        return self.shard.now + self.shard.set_back_ms

    def notice_fold(self) -> None:
        """The shard's fold version is known, or was raised: take note of what that means for every message."""
        self.counts_waking = self.counts_shares = self.checks_ids = self.shard.fold > 1
        self.knows_groups = self.shard.fold >= GROUPS_FOLD
        self.knows_schedules = self.shard.fold >= SCHEDULES_FOLD
        self.knows_pushes = self.shard.fold >= PUSH_FOLD
        self.ledger = self.shard.ledger if self.shard.fold >= PUSH_FOLD else CopyLedger()

    def tell(self, account: int, body: Told) -> None:
        """Bring this to the shard of `account`: at once if it is ours, by its log if not."""
        if self.shards == 1 or (there := shard_of(account, self.shards)) == self.index:
            self.derived.append(body)
            return
        told = self.shard.told
        k = told[there] = told.get(there, 0) + 1
        self.forwards.append(Forward(there, k, body))

    # --- for the engine, which loads and saves --------------------------------------------------

    def install(self, key: RowKey, data: bytes | None) -> None:
        """Put a row where the fold can see it. What is here already is newer, and stays."""
        if key.kind is Kept.SHARD:
            self.shard = _decoded(decode_shard, key, data) or Shard()
            self.notice_fold()
            return
        if (pairs := self.by_pair.get(key.kind)) is not None:
            if (key.a, key.b) not in pairs.rows:
                pairs[key.a, key.b] = _decoded(pairs.decode, key, data)
            return
        table = self.by_number[key.kind]
        if key.a in table:
            return
        table[key.a] = row = _decoded(table.decode, key, data)
        if isinstance(row, Mailbox):
            for lane, queue in enumerate(row.lanes):
                if queue.waiting:
                    self.stored[queue_id(key.a, lane)] = queue.head

    def install_entries(self, number: int, stored: Iterable[tuple[int, bytes]]) -> None:
        """Put entries where the fold can see them, except those that ended since they were saved.

        None at all if their mailbox is not here to say which those are: it may have been let go meanwhile.
        """
        mailbox = self.mailboxes.rows.get(number >> 1)
        if mailbox is None:
            return
        queue = mailbox.lanes[number & 1]
        entries = self.entries.setdefault(number, {})
        for seq, data in stored:
            if seq > queue.acked and seq not in entries and gap_at(queue.gaps, seq) is None:
                entry = _decoded(decode_entry, f"entry {seq} of queue {number}", data)
                assert entry is not None
                entries[seq] = entry
                self.loaded.append((number, seq))

    def devices_noted(self) -> list[int]:
        """Every device that the notes since `forget_changes` speak of; some of them more than once."""
        return [*self.mailboxes.changed, *[by for by, _ in self.streams.changed], *self.noted]

    def changed_rows(self) -> Iterator[tuple[RowKey, int, Row | None]]:
        """Every row that changed since `forget_changes`, with its version."""
        yield SHARD, self.offset, self.shard
        for kind, pairs in self.by_pair.items():
            for pair, version in pairs.changed.items():
                yield RowKey(kind, *pair), version, pairs[pair]
        for kind, table in self.by_number.items():
            for number, version in table.changed.items():
                yield RowKey(kind, number), version, table[number]

    def known_rows(self) -> Iterator[tuple[RowKey, Row | None]]:
        """Every row in memory, and every one known to be absent."""
        for kind, pairs in self.by_pair.items():
            for pair, row in pairs.items():
                yield RowKey(kind, *pair), row
        for kind, table in self.by_number.items():
            for number, row in table.items():
                yield RowKey(kind, number), row

    def row(self, key: RowKey) -> Row | None:
        """A row that is in memory."""
        pairs = self.by_pair.get(key.kind)
        return self.by_number[key.kind][key.a] if pairs is None else pairs[key.a, key.b]

    def forget_changes(self) -> None:
        """What has changed so far is being saved: from here on it counts as unchanged."""
        for table in self.tables():
            table.changed.clear()
        self.filed.clear()
        self.filed_bytes = 0
        self.cleared.clear()
        self.dropped.clear()
        self.notes.clear()
        self.noted.clear()

    def tables(self) -> list[Table[Any, Any]]:
        """Those of `by_pair`, then those of `by_number`."""
        return [*self.by_pair.values(), *self.by_number.values()]

    def count_changed(self) -> int:
        """Rows that wait for a checkpoint. Keys count by their weight."""
        if not self._changed:
            self._changed = [table.changed for table in self.tables()]
        changed = sum(map(len, self._changed))
        return changed + (KEYS_WEIGHT - 1) * len(self.keys.changed)


def _decoded(decode: Callable[[bytes], T], what: RowKey | str, data: bytes | None) -> T | None:
    if data is None:
        return None
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRow(what) from error


def missing_row(table: Table[int, R], kind: Kept, number: int, missing: list[Need]) -> bool:
    """Whether a row is not in memory; if so, it is noted as missing."""
    if number in table.rows:
        return False
    missing.append(RowKey(kind, number))
    return True


def missing_pair(table: Table[tuple[int, int], R], kind: Kept, a: int, b: int, missing: list[Need]) -> bool:
    """Likewise, of a table whose rows have two numbers for a key."""
    if (a, b) in table.rows:
        return False
    missing.append(RowKey(kind, a, b))
    return True
