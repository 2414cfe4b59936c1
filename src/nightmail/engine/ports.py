"""What the loop needs of the world, and what sessions need of the loop: Log, Rows, Desk, Registry, Presence.

Implementations stand beside this file, named for their technology; one conformance suite holds
them all to the words below.

The manner of every port: a call never blocks on the disk or the network. What takes time is
answered by calling `done`, exactly once, on the thread that the loop runs on (possibly before
the call returns). An implementation with threads of its own is given a `Post` to get back there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from nightmail.core.letters.pages import Listing
from nightmail.core.letters.seen import LetterSeen
from nightmail.core.schedules.reading import ScheduleListing, ScheduleSeen
from nightmail.model.answers import Said
from nightmail.model.group_questions import GroupAnswer, GroupQuestion, ToldSoFar
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import Record
from nightmail.model.rows import Account, Entry, EntryRange, Gap, Kept, KnownAccounts, Need, PendingReceipt, RowKey
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.traces import Trace
from nightmail.model.words import Audience, Lane, PushPlatform

from .blobs.port import BlobFailed, BlobRecords, Blobs, Held
from .log_port import RECORD_OVERHEAD, Log, Stored, last_of

Post: TypeAlias = Callable[[Callable[[], None]], None]
"""Run this on the loop's thread, soon. May be called from any thread."""


class EngineError(Exception):
    """Something below the loop failed. Its text is one sentence for the operator."""


class Damaged(EngineError):
    """What is stored is not what was written. Nothing was changed; nothing is served."""


class TrimmedAway(EngineError):
    """A shared log was trimmed above what we asked for: another owner's checkpoint has it."""


class InUse(EngineError):
    """Another process has this data folder open."""


class TooNew(EngineError):
    """The data was written by a newer version of Nightmail."""


class Unwritable(EngineError):
    """The folder or a file in it cannot be written."""


# --- the rows ---------------------------------------------------------------------------------


Saving: TypeAlias = tuple[Kept, int, int, int, bytes | None]
"""One row as of a checkpoint: its key, its version (the offset of the last record that changed it), and its bytes.

None instead of bytes: the row is no more. A plain tuple, because a checkpoint has thousands of them.
"""


def saving(key: RowKey, version: int, value: bytes | None) -> Saving:
    kind, a, b = key
    return kind, a, b, version, value


class Checkpoint(Struct, frozen=True):
    """Everything that changed up to `upto`, to be seen all at once or not at all."""

    upto: int
    at: int
    rows: Sequence[Saving] = ()
    entries: Sequence[tuple[int, int, bytes]] = ()
    """(queue, seq, entry): filed since the last checkpoint and still waiting. Never change again."""
    cleared: Sequence[tuple[int, int]] = ()
    """(queue, upto): entries up to here are acknowledged."""
    dropped: Sequence[tuple[int, int]] = ()
    """(queue, seq): single entries that ended before those in front of them."""
    notes: Sequence[bytes] = ()
    """The delivery log's new lines, oldest first, in pieces of some hundred that are encoded by themselves."""
    noted: Collection[int] = ()
    """Every device that `notes` speaks of; some perhaps more than once."""
    forwards: Sequence[tuple[int, int, bytes]] = ()
    """(shard, k, record): told to another shard since the last checkpoint, and not known to be in its log. In order of
    k for each shard. The k-th never changes; the fold never reads it."""


class Overtaken(Struct, frozen=True):
    """Another owner has moved the pointer to `pointer`: what we hold may be trimmed under us."""

    pointer: int


class Failed(Struct, frozen=True):
    """It did not work, or nobody knows; `why` is for the operator. The same call may be repeated."""

    why: str


KEY_END = 1 << 63
"""Every store holds the numbers of a key from -KEY_END up to, but not including, this."""


def is_nowhere(need: Need) -> bool:
    """Whether no store could hold what is asked for. Then it does not exist: every store finds None, or no entries."""
    return min(need) < -KEY_END or max(need) >= KEY_END


Found: TypeAlias = Sequence[bytes | None | Sequence[tuple[int, bytes]]]
"""Per need, in order: a row's bytes or None; for a range, its (seq, entry) pairs in order."""


class Rows(Protocol):
    """What a shard remembers, as of its last checkpoint."""

    @property
    def pointer(self) -> int:
        """The offset that everything readable here belongs to. 0 at birth."""
        ...

    def load(self, needs: Sequence[Need], done: Callable[[Found | Overtaken | Failed], None]) -> None:
        """Read rows and entry ranges as of `pointer`. What `is_nowhere` is not there, and no failure."""
        ...

    def save(self, checkpoint: Checkpoint, done: Callable[[Overtaken | Failed | None], None]) -> None:
        """Store a checkpoint durably; afterwards `pointer` is its `upto`. One is under way at a time.

        After Failed the same checkpoint is given again, before any other: it may be stored all the
        same. Entries that are cleared or dropped leave no readable bytes behind within a day.
        A checkpoint older than `pointer` is answered with Overtaken.
        """
        ...

    def load_forwards(
        self, shard: int, after: int, upto: int, limit: int,
        done: Callable[[Sequence[tuple[int, bytes]] | Failed], None],
    ) -> None:  # fmt: skip
        """The saved forwards to `shard` with after < k <= upto, in order of k, the first `limit` of them.

        Every one that was saved up to `pointer` and not dropped is found. One that was dropped may be found, too.
        """
        ...

    def drop_forwards(self, shard: int, upto: int, done: Callable[[Failed | None], None]) -> None:
        """Remove the forwards to `shard` with k <= upto. To be called only once they are durable in its log.

        They leave no readable bytes behind within a day.
        """
        ...

    def recall(self, devices: Collection[int], since: int) -> Iterator[bytes]:
        """The delivery log: the pieces of those blocks, oldest first, that speak of one of `devices`.

        A block is what one checkpoint brought, at `since` or later. One that speaks of none of them may be among them.
        """
        ...

    def forget(self, before: int) -> None:
        """Drop the delivery log's blocks saved before this time, in the background. To be called about hourly."""
        ...

    def close(self) -> None: ...


# --- the desk ---------------------------------------------------------------------------------

REF_BITS = 24
"""An answer's address is a line and a number that the line's holder chose: `line << REF_BITS | ref`."""

Offered: TypeAlias = tuple[int, tuple[Entry, ...]] | Gap
"""Entries under consecutive numbers, from the first one on; or numbers that bring nothing."""


class Listener(Protocol):
    """Told what devices may want to know, a batch at a time."""

    def grew(self, device: int, lane: Lane) -> None: ...

    def changed(self, device: int) -> None: ...

    def dismissed(self, device: int) -> None: ...

    def low(self, device: int) -> None:
        """It has few keys left."""
        ...

    def settled(self) -> None:
        """That was all of this batch."""
        ...


class Mailboxes(Protocol):
    """Answers what is asked about mailboxes and accounts: one loop, or the owners of many shards.

    `then` is called once, at once if the rows are in memory. Rows are shown, not given: they change
    after the call, so the caller keeps nothing of them.
    """

    def note_connection(self, device: int, *, here: bool) -> None:
        """A connection begins (`here`) or ends: a line for the delivery log, which may be lost."""
        ...

    def offer(
        self,
        device: int,
        lane: Lane,
        after: int,
        limit: int,
        limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:
        """What waits behind `after`: at most `limit` numbers, and not much more than `limit_bytes`.

        `then(items, more)`: whether there is more behind them.
        """
        ...

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        """The oldest receipts behind `after`."""
        ...

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        """Its row, at least as new as every answer that any node gave before the call."""
        ...

    def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
        """Its row and whom it knows, each as new as `account` shows it."""
        ...

    def about_group(self, question: GroupQuestion, then: Callable[[GroupAnswer], None]) -> None:
        """Answered by the group's shard. Its chain and its members are as new as `account` shows an account."""
        ...

    def high_heads(self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]) -> None:
        """Device → the newest number of its high lane, once their shard has taken all that `told` counts.

        All devices are of one shard. One without a mailbox has 0.
        """
        ...

    def push(self, device: int, then: Callable[[PushSeen | None], None]) -> None:
        """What a push to a device needs; None: nothing waits that may wake it, or it has no push token."""
        ...

    def push_platforms(self, devices: Sequence[int], then: Callable[[Mapping[int, PushPlatform]], None]) -> None:
        """Device → by whose service it is woken, of those that have a push token. All are of one account."""
        ...

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        """What the delivery log knows about a message; None: it could not be read. Raises ValueError for no id.

        Reads from the disk, on another thread: the caller bounds how often.
        """
        ...


class Desk(Mailboxes, Protocol):
    """What sessions and the HTTP API ask for: records in, answers out, and a look at mailboxes."""

    def open_line(self, on_answer: Callable[[int, Said], None]) -> int:
        """An address for answers, never used before; `on_answer(ref, said)`."""
        ...

    def close_line(self, line: int) -> None: ...

    def submit(self, records: Sequence[Record]) -> None:
        """Take records whose form and rights were checked."""
        ...

    @property
    def shards(self) -> int:
        """How many there are, numbered from 0."""
        ...

    def attend_group(self, group: int, *, here: bool) -> None:
        """Somebody here is to be told when the group's log grows (`here`), or nobody any longer.

        `Listener.grew` then tells it of the group's device 0; if news may have been lost, it is told in vain.
        """
        ...

    def submit_to(self, shard: int, record: Record) -> None:
        """Take a record for one shard, whatever its home: what concerns shards as a whole is said to each of them."""
        ...


class Schedules(Protocol):
    """Answers what is asked about scheduled messages and dead letters. `then` is called once; rows are shown as
    `Mailboxes` shows them."""

    def schedule(self, account: int, ident: str, then: Callable[[ScheduleSeen | None], None]) -> None: ...

    def schedules(
        self, account: int, wanted: ScheduleState | None, before: int, then: Callable[[ScheduleListing], None]
    ) -> None:
        """Those in one state, or in any, below the serial `before`; 0: the newest."""
        ...

    def letter_counts(self, shard: int, then: Callable[[Mapping[str, int]], None]) -> None:
        """Error class → how many letters of a shard are listed under it."""
        ...

    def letters(self, shard: int, error: str, page: int, then: Callable[[Listing], None]) -> None:
        """A page of the letters of one class; 0: the newest."""
        ...

    def letter(self, shard: int, offset: int, then: Callable[[LetterSeen | None], None]) -> None: ...


# --- the registry -----------------------------------------------------------------------------


class Seat(NamedTuple):
    """Where a device is connected. A greater `since` displaces a smaller one."""

    node: str
    connection: int
    """No other connection of the node ever has it."""
    since: int
    """By the wall clock of the node, in ms."""


HELD = -1
"""Instead of a time to wait: some node holds the device."""


class Registry(Protocol):
    """Which device is connected where. Can be lost at any time and is rebuilt by its owners.

    Where it is not on this machine it may be slow, or away. Then it holds a device for connected rather than not.
    """

    def attend(self, on_displaced: Callable[[int, Seat], None]) -> None:
        """Tell when a device that sat here has sat down elsewhere since: that connection is to be closed. Called once,
        before anything else."""
        ...

    def take(self, device: int, seat: Seat, now: int) -> None:
        """Sit down, or stay seated, until `now` + lifetime. Who has sat down later keeps the seat."""
        ...

    def find(self, device: int, now: int, then: Callable[[Seat | None], None]) -> None:
        """Where it sits, as far as that is known; None also if nobody could be asked."""
        ...

    def leave(self, device: int, seat: Seat, then: Callable[[bool], None]) -> None:
        """Get up, if it is still this seat; tells whether it was. True also if nobody could be asked: it may sleep."""
        ...

    @property
    def lost_at(self) -> int | None:
        """When it last lost what it held, by the caller's `now`: until its owners have sat down again, nobody knows who
        is connected. None: never, since it was made."""
        ...

    def claim_wake(self, device: int, now: int, then: Callable[[int], None]) -> None:
        """Whether to push to the device: 0, now; or so many ms later, because somebody did less than a second ago or
        because nobody knows whether it is connected; or not at all, because it is (`HELD`)."""
        ...


# --- presence ---------------------------------------------------------------------------------


class Sighting(NamedTuple):
    """What is known of one account. Who may see it is not decided here."""

    online: bool
    last_seen: int
    """Its last heartbeat in the foreground, in milliseconds since 1970; 0: none is known."""
    audience: Audience


class PresenceListener(Protocol):
    def presence_changed(self, account: int) -> None:
        """It has come online or gone offline."""
        ...

    def audience_changed(self, account: int) -> None:
        """It shows its presence to others than before."""
        ...


class Presence(Protocol):
    """Who is online, who was last seen when, and who may see it. Nothing of this is in the log.

    Who is online may be lost at any time, and comes back with the next heartbeats. The rest is durable: an audience
    before it is confirmed, the last heartbeats some seconds later.
    """

    def attend(self, listener: PresenceListener) -> None:
        """Tell this listener of every change. Called once, before anything else."""
        ...

    def beat(self, device: int, now: int) -> None:
        """The device is in the foreground: its account is online until `now` + lifetime, unless it leaves."""
        ...

    def leave(self, device: int) -> None:
        """The device is gone, or in the background. May be called again."""
        ...

    def sightings(self, accounts: Collection[int], then: Callable[[Mapping[int, Sighting] | Failed], None]) -> None:
        """What is known of each of these accounts, also of one that does not exist."""
        ...

    def saw(self, device: int, ago_ms: int) -> None:
        """The device was connected so long ago, in the foreground or not. Only its own account may know that."""
        ...

    def devices_seen(self, devices: Collection[int], then: Callable[[Mapping[int, int] | Failed], None]) -> None:
        """When each of an account's devices was last connected, in milliseconds since 1970; of those that were."""
        ...

    def show_to(self, account: int, audience: Audience, then: Callable[[Failed | None], None]) -> None:
        """Make the account's choice durable; it counts from when `then` is called."""
        ...

    def forget(self, account: int) -> None:
        """The account is no more: remove what is stored of it and its devices."""
        ...

    def forget_device(self, device: int) -> None:
        """The device is no more: remove what is stored of it."""
        ...

    def tick(self, now: int) -> None:
        """Let lifetimes end, and store heartbeats. To be called often."""
        ...


__all__ = [
    "HELD", "RECORD_OVERHEAD", "REF_BITS", "BlobFailed", "BlobRecords", "Blobs", "Checkpoint", "Damaged", "Desk",
    "EngineError", "EntryRange", "Failed", "Found", "Held", "InUse", "Listener", "Log", "Mailboxes", "Need", "Offered",
    "Overtaken", "Post", "Presence", "PresenceListener", "Registry", "RowKey", "Rows", "Saving", "Seat", "Sighting",
    "Stored", "TooNew", "TrimmedAway", "Unwritable", "is_nowhere", "last_of", "saving",
]  # fmt: skip
