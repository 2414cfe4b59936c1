"""What is remembered. Rows are nouns: mutable, slotted, and small enough to be written whole.

A row holds only what follows from the log. What depends on the machine (is it saved yet, is it
in memory) is kept beside it, never in it: the same log must give the same bytes everywhere.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, NamedTuple, TypeAlias

from msgspec import Struct, field

from .blob_rows import AccountBlobs, AudiencePage, Blob
from .group_rows import AccountGroups, AtHead, ChainBlob, Group, GroupMember, GroupRoster
from .leaps import Doubt, Leap
from .ledger import CopyLedger
from .letter_rows import DeadLetter, LetterClasses, LetterPage
from .limits import FoldLimits
from .mutable import mutable
from .push_rows import PushTarget
from .schedule_rows import AccountSchedules, Schedule, ScheduleName, SchedulePage
from .spans import Spans
from .words import Kind, Lane, MessageState, Platform, Reason


class Kept(IntEnum):
    """Which table a row belongs to. The numbers are on disk: only ever add."""

    SHARD = 0
    ACCOUNT = 1
    STREAM = 2
    MAILBOX = 3
    RECEIPTS = 4
    DUE_HOUR = 5
    DUE = 6
    DEAD_LETTER = 7
    KEYS = 8
    LETTER_CLASSES = 9
    LETTER_PAGE = 10
    HANDLE = 11
    SHARES = 16
    KNOWN = 17
    GROUP = 20
    ROSTER = 21
    MEMBER = 22
    CHAIN = 23
    ACCOUNT_GROUPS = 24
    AT_HEAD = 25
    SCHEDULE = 30
    ACCOUNT_SCHEDULES = 32
    SCHEDULE_PAGE = 33
    SCHEDULE_NAME = 34
    PUSH = 40
    BLOB = 48
    AUDIENCE = 49
    ACCOUNT_BLOBS = 50


PAIRED = frozenset({
    Kept.STREAM, Kept.MEMBER, Kept.CHAIN, Kept.SCHEDULE, Kept.SCHEDULE_PAGE, Kept.SCHEDULE_NAME, Kept.BLOB,
    Kept.AUDIENCE,
})  # fmt: skip
"""Tables whose rows have two numbers for a key."""


class RowKey(NamedTuple):
    kind: Kept
    a: int
    b: int = 0


class EntryRange(NamedTuple):
    """Entries `low` to `high`, both included, of one queue."""

    queue: int
    low: int
    high: int


Need: TypeAlias = RowKey | EntryRange


def queue_id(device: int, lane: int) -> int:
    """One number for (device, lane): entries of a queue lie together wherever they are stored."""
    return device << 1 | lane


# --- the shard itself -------------------------------------------------------------------------


@mutable
class Shard(Struct, array_like=True, gc=False):
    """What a shard knows of itself. Always in memory."""

    now: int = 0
    """The newest time it has seen. It goes back only where an operator sets it back (`ClockSetBack`)."""
    fold: int = 1
    limits: FoldLimits = field(default_factory=FoldLimits)
    due: dict[int, int] = field(default_factory=dict)
    """Hour → the first moment in it at which something is due: a second in fold 1, 50 ms since (core/due.py)."""
    next_due: int = 0
    """The earliest of them; 0 if nothing is due, ever."""
    told: dict[int, int] = field(default_factory=dict)
    """Other shard → how many things it was told."""
    heard: dict[int, int] = field(default_factory=dict)
    """Other shard → how many of its things were taken."""
    out_of_chain: int = 0
    """Forwards that jumped ahead and were dropped: only an owner that was replaced sends such."""
    dead: int = 0
    """Dead letters: records that could not be applied, and that nobody has settled yet."""
    low: int = 0
    """Devices that have published keys and have few left."""
    exhausted: int = 0
    """Of these, those without any one-time key of one kind or of both."""
    set_backs: int = 0
    """How many times its time was set back."""
    set_back_to: int = 0
    """The time that it was last set back to."""
    set_back_by: int = 0
    """The offset of the record that did so. The time of the batch that holds it does not count any more."""
    set_back_ms: int = 0
    """By how much it was set back, in all: `now` and this together never go back."""
    newest_time: int = 0
    """The newest time that it, or another shard, was ever set back from: until then stamps may stand ahead of its
    time. 0: none was."""
    doubts: list[Doubt] = field(default_factory=list["Doubt"])
    """The last times that its clock was doubted and then believed, oldest first."""
    doubted_from: int = 0
    """Its time when the present doubt of its clock began; 0: the clock is not doubted."""
    leaps: list[Leap] = field(default_factory=list["Leap"])
    """Since fold 4, oldest first."""
    doubted_elapsed: int = 0
    """Likewise: `doubted_from` by elapsed time, which nobody sets back."""
    ledger: CopyLedger = field(default_factory=CopyLedger)
    """Since fold 6."""


class DueHour(Struct, array_like=True):
    """The slots of one hour in which something is due."""

    slots: list[int] = field(default_factory=list)
    """Their numbers, by moment, and those of one moment in the order in which they were opened (core/due.py)."""


class DueFor(IntEnum):
    """What a due item is for. The numbers are on disk: only ever add."""

    EXPIRY = 0
    """A mailbox (`seq` 0), or one entry with a timer of its own."""
    DEAD_LETTER = 1
    """The dead letter at offset `seq`."""
    BLOCK = 5
    """A mailbox whose entries from `seq` on are looked through for accounts that are blocked."""
    GROUP_NEWS = 16
    """Authors in the group `seq` are told what became of their messages."""
    RELISTING = 17
    """The groups of the account `seq` are told of its devices."""
    GROUP_LOG = 18
    """The log of the group `seq` is looked through for entries that everybody has."""
    SCHEDULE = 24
    """The schedule `seq` of an account, whose number stands in place of the device's."""
    SCHEDULE_PAGE = 25
    """Likewise, its page `seq` is looked through for schedules to forget."""
    WAKE = 32
    """A mailbox whose device may have to be woken; `seq` is the moment that this was planned for."""
    BLOB = 40
    """The blob `seq` of an account, whose number stands in place of the device's; `planned` is the moment."""


class DueItem(Struct, frozen=True, array_like=True, gc=False):
    device: int
    lane: Lane
    seq: int
    what: DueFor = DueFor.EXPIRY
    planned: int = 0
    """When, by elapsed time; 0: before fold 4."""


class Due(Struct, array_like=True):
    """A slot: what is due in one moment, or a part of it, in the order it was scheduled."""

    items: list[DueItem] = field(default_factory=list)


# --- accounts ---------------------------------------------------------------------------------


class Device(Struct, array_like=True):
    registration: int
    token: bytes
    label: str
    platform: Platform
    low: bool = True
    """It has few keys left to be handed out, or has published none."""


class Lock(Struct, array_like=True):
    """A registration lock: a person who takes the account over must know its PIN."""

    salt: bytes
    digest: bytes
    """Made by the server, of what the client made of the PIN, with a pepper that is in no row."""
    wrong: int = 0
    """Wrong PINs since the last right one."""
    until: int = 0
    """No PIN is compared before this time: there were too many wrong ones."""


class FormerDevice(Struct, frozen=True, array_like=True, gc=False):
    """A device that was removed: the request that it has joined by may come once more, late."""

    device: int
    registration: int
    token: bytes


class Account(Struct, array_like=True):
    handle: str
    devices: dict[int, Device] = field(default_factory=dict)
    """Every linked device, listed or not."""
    listed: dict[int, int] = field(default_factory=dict)
    """Device → registration: whom a message must be sealed for."""
    list_version: int = 0
    signed_list: bytes = b""
    blocked: dict[int, int] = field(default_factory=dict)
    """Account → since when."""
    read_receipts: bool = True
    next_index: int = 1
    """Device numbers only grow, even through closing and registering again."""
    closed: bool = False
    lock: Lock | None = None
    closed_at: int = 0
    """When it was closed; 0: it is not, or was closed in fold 1."""
    claim: int = 0
    """The number under which its handle is claimed; 0: none."""
    revision: int = 0
    """How many times the set of its listed devices has changed since fold 4."""
    listed_since: dict[int, int] = field(default_factory=dict)
    """Device → the revision that listed it; absent: it was listed before."""
    former: list[FormerDevice] = field(default_factory=list)
    """The devices that were removed last, since fold 8."""


class HandleClaim(Struct, array_like=True):
    """Which handle has a look, and so which others may not be registered."""

    handle: str
    account: int
    since: int
    index: int
    """The number that the account's next device had when the handle was claimed."""
    until: int = 0
    """When the claim ends; 0: it does not."""


class KnownAccounts(Struct, array_like=True):
    """Whom an account knows: its devices say so when the person first writes to somebody, or saves them."""

    accounts: dict[int, int] = field(default_factory=dict)
    """Account → since when; oldest first."""
    withheld: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Blocked account → (entries, bytes, since when): what it would hold, had it not been blocked. So it is refused
    when anybody else would be."""


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """What somebody took, and when."""

    at: int
    """Elapsed time (`ShardState.elapsed`)."""
    one_time: bytes | None
    """None: there was none left, and a repeated request gets none either."""
    kem: bytes | None


ClaimKey: TypeAlias = tuple[int, int]
"""(device that asked, number of its request)."""


class Keys(Struct, array_like=True):
    """A device's public keys. The heaviest row: 40 KiB after an upload, 180 KiB at most."""

    registration: int
    identity: bytes
    signed: bytes
    last_resort: bytes
    one_time: list[bytes] = field(default_factory=list)
    """Oldest first, and so handed out first."""
    one_time_kem: list[bytes] = field(default_factory=list)
    highest: int = 0
    """The highest id of a one-time key that was ever taken in: what lies below is no news."""
    highest_kem: int = 0
    low: bool = False
    """Counted by the shard as such."""
    exhausted: bool = False
    claims: dict[ClaimKey, Claim] = field(default_factory=dict)
    """Oldest first."""


# --- sending ----------------------------------------------------------------------------------


@mutable
class Numbers(Struct, array_like=True, gc=False):
    """One lane of a stream: the watermark, and the answers its sender may still ask for."""

    last: int = 0
    low: int = 1
    """The lowest number whose answer is kept."""
    ring: bytearray = field(default_factory=bytearray)
    """From there to the last, packed as core/ring.py says."""


@mutable
class Stream(Struct, array_like=True, gc=False):
    """One device's numbered messages into one conversation. Never expires."""

    at: int = 0
    """The newest stamp given out; the next is later, in whichever lane."""
    lanes: tuple[Numbers, Numbers] = field(default_factory=lambda: (Numbers(), Numbers()))
    scheduled: int = 0
    """How many messages of it were scheduled and have fired: the third count (`SCHEDULED_FROM`)."""


# --- receiving --------------------------------------------------------------------------------


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """What a mailbox holds and a device is handed: all that the server knows of a message."""

    by: int
    to: int
    n: int
    id: str
    tag: bytes
    kind: Kind
    of: str | None
    at: int
    life_ms: int
    ciphertext: bytes

    group_seq: ClassVar[int] = 0
    epoch: ClassVar[int] = 0
    """0: it did not come through a group."""

    @property
    def wakes(self) -> bool:
        """Whether it may wake a sleeping device. Keys, read marks and other control messages never do."""
        return self.kind is not Kind.CONTROL


class GroupEntry(Entry, frozen=True, array_like=True, gc=False):
    """An entry that came through a group: `to` is the group. A stored one is told apart by its length.

    `by` is 0 in a notice: what happened to the group.
    """

    group_seq: int  # pyright: ignore[reportIncompatibleVariableOverride]
    """Its number in the group; of a re-seal, that of its original; 0: a key, or a notice for a single account."""
    epoch: int  # pyright: ignore[reportIncompatibleVariableOverride]
    """Of the group when it was accepted."""
    lane: Lane
    """Of its number in the author's stream: the group's log has only one."""


class Gap(Struct, frozen=True, array_like=True, gc=False):
    """Sequence numbers that will never bring anything, and why."""

    low: int
    high: int
    reason: Reason


@mutable
class Queue(Struct, array_like=True, gc=False):
    """One lane of a mailbox: entries `acked < seq <= head`, except the gaps."""

    head: int = 0
    acked: int = 0
    waiting: int = 0
    """How many entries there are: head - acked - gaps."""
    gaps: list[Gap] = field(default_factory=list)


@mutable
class Mailbox(Struct, array_like=True, gc=False):
    lanes: tuple[Queue, Queue] = field(default_factory=lambda: (Queue(), Queue()))
    due: int = 0
    """The moment at which its oldest entries are looked at; 0: none is set."""
    bytes: int = 0
    """Of ciphertext, in both lanes. Less than there is where entries were filed before this was counted."""
    waking: int = 0
    """How many waiting entries may wake the device. Less than there are where some were filed in fold 1."""
    shared: bool = False
    """Whose entries wait is counted: there is a row of shares."""
    set_backs: int = 0
    """How many times the shard's time had been set back when something was last filed here."""
    before_set_back: tuple[int, int] = (0, 0)
    """The newest entry of each lane that was filed before the last of them."""
    push: bool = False
    """Its device has a push token, and is woken when something waits."""
    marked: bool = False
    """Since a group's log had something for the device, nobody has seen that it fetched that."""
    woke_at: int = 0
    """When something last began to wait, by elapsed time; greater each time."""
    wake_due: int = 0
    """The moment at which it is looked at whether the device must be woken; 0: none is set."""

    @property
    def waiting(self) -> int:
        normal, high = self.lanes
        return normal.waiting + high.waiting

    def let_go(self, size: int, waking: int) -> None:
        """So many bytes, and so many entries that may wake the device, wait no longer."""
        self.bytes = self.bytes - size if self.bytes > size else 0
        self.waking = self.waking - waking if self.waking > waking else 0


class MailboxShares(Struct, array_like=True):
    """How much of a mailbox each account holds. Exact while it exists: from when the mailbox is crowded until it is
    nearly empty (core/shares.py)."""

    held: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Account → (entries, bytes of ciphertext)."""


ReceiptKey: TypeAlias = tuple[int, int, int, int, int, int]
"""What a receipt is about: (by, to, lane, peer device, state, n).

`n` is 0 except for failures: the number of one that stands alone, or minus the reason of those that
share an interval. A plain tuple, because it is made and looked up once per receipt.
"""


@mutable
class PendingReceipt(Struct, array_like=True, gc=False):
    """A receipt that a device has not acknowledged yet."""

    key: ReceiptKey
    seq: int
    at: int
    reason: Reason
    numbers: Spans

    @property
    def state(self) -> MessageState:
        return MessageState(self.key[4])


@mutable
class PendingReceipts(Struct, array_like=True, gc=False):
    """A device's receipts, oldest first. An update moves its key to the end under a new number."""

    head: int = 0
    items: dict[ReceiptKey, PendingReceipt] = field(default_factory=dict)


Row: TypeAlias = (
    Shard
    | DueHour
    | Due
    | DeadLetter
    | LetterClasses
    | LetterPage
    | Account
    | HandleClaim
    | KnownAccounts
    | Keys
    | Stream
    | Mailbox
    | MailboxShares
    | PendingReceipts
    | Group
    | GroupRoster
    | GroupMember
    | ChainBlob
    | AccountGroups
    | AtHead
    | Schedule
    | AccountSchedules
    | SchedulePage
    | ScheduleName
    | PushTarget
    | Blob
    | AudiencePage
    | AccountBlobs
)
