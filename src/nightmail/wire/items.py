"""What a frame carries. A frame is an array of items, and every item begins with its number.

    device → server    Hello · Ask · Look · Ping · Foreground · Watch · Peek · Typing · ShowTo
                       GroupLook · MembersLook · LogFetch · ReceiptsLook
    server → device    Welcome · Answered · Entries · Gone · Receipts · Drained · Devices · Pong · Goodbye · KeysLow
                       Seen · Types · ShownTo · GroupChain · GroupMembers · GroupLog · GroupSeenBy

Records, answers, refusals, entries and receipts travel as the model knows them: nothing is translated.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

from msgspec import Struct

from nightmail.model.answers import Said
from nightmail.model.group_questions import LogGap, LogRun, MemberShown
from nightmail.model.group_rows import FanOut
from nightmail.model.records import SaidByDevices
from nightmail.model.roster import GroupReceipts, GroupSettings
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Audience, Lane, MessageState, PresenceState, Reason

VERSION = 1
"""Of everything in this room. A server may speak several; the device names one in its `Hello`."""

SUBPROTOCOL = "nightmail.v1"

NEWEST_SINCE = max(body.since for body in get_args(SaidByDevices))
"""The newest records that a device may say are those `since` this number."""

FIRST_ITEMS = 1
PRESENCE_ITEMS = 2
"""A server that takes the items about presence says so in its `Welcome` (`items`)."""

GROUP_ITEMS = 3
"""Likewise, the items about groups, too."""

PATH = "/v1/connect"

REF_MAX = (1 << 24) - 1
"""A device numbers its questions; it may begin again at 1 after this many."""


class Item(Struct, frozen=True, array_like=True, gc=False):
    """One thing that is said."""


# --- device → server --------------------------------------------------------------------------


class Hello(Item, frozen=True, tag=1):
    """The first item of the first frame: who this is, and how far its mailbox is safe on the device."""

    version: int
    device: int
    token: bytes
    normal: int
    """The newest sequence number of the normal lane that is durable on the device; 0 if there is none."""
    high: int
    receipts: int
    """Likewise, of the receipts."""
    agent: str = ""
    """Which software, for the operator's eyes only."""


class Ask(Item, frozen=True, tag=2):
    """A record for the log. Its answer comes back under `ref`; 0: no answer is wanted."""

    ref: int
    body: SaidByDevices


class Look(Item, frozen=True, tag=3):
    """Whom must a message to `account` be sealed for? Answered by `Devices`."""

    ref: int
    account: int


class Ping(Item, frozen=True, tag=4):
    """Still here. Answered by `Pong`."""

    nonce: int


# --- device → server: presence. Said only to a server whose `Welcome` has `items` of 2 or more.


class Foreground(Item, frozen=True, tag=16):
    """Whether a person is looking at the app. A connection begins in the background."""

    on: bool


class Watch(Item, frozen=True, tag=17):
    """The accounts whose conversations are open, instead of those that were watched before. Answered by `Seen`."""

    ref: int
    accounts: tuple[int, ...]


class Peek(Item, frozen=True, tag=18):
    """The presence of these accounts, once. Answered by `Seen`."""

    ref: int
    accounts: tuple[int, ...]


class Typing(Item, frozen=True, tag=19):
    """The person is writing to this account, or in this group. Never answered."""

    to: int


class ShowTo(Item, frozen=True, tag=20):
    """To whom this account's presence is to be shown; None only asks. Answered by `ShownTo`."""

    ref: int
    audience: Audience | None


# --- device → server: groups. Said only to a server whose `Welcome` has `items` of 3 or more.


class GroupLook(Item, frozen=True, tag=32):
    """The changes of a group behind index `after`, and the group as it is now. Answered by `GroupChain`."""

    ref: int
    group: int
    after: int


class MembersLook(Item, frozen=True, tag=33):
    """The members of a group with account numbers above `after`. Answered by `GroupMembers`."""

    ref: int
    group: int
    after: int


class LogFetch(Item, frozen=True, tag=34):
    """What stands in a group's log behind `after`, for this device. Answered by `GroupLog`."""

    ref: int
    group: int
    after: int
    attend: bool
    """From now on, on this connection, tell by `GroupLog` under 0 when the log grows; false: no longer."""


class ReceiptsLook(Item, frozen=True, tag=35):
    """Who has these messages of this account, and who has read them. Answered by `GroupSeenBy`."""

    ref: int
    group: int
    numbers: tuple[int, ...]
    """Their `group_seq`."""


# --- server → device --------------------------------------------------------------------------


class Welcome(Item, frozen=True, tag=1):
    """The device is known; what follows is its mailbox."""

    version: int
    at: int
    """The server's clock, in milliseconds since 1970."""
    node: str
    heartbeat_ms: int
    """Say something at least this often."""
    window: int
    """Messages per conversation and lane that may wait for their answer."""
    body_bytes: int
    frame_bytes: int
    since: int = 1
    """The newest records that the server knows: a device says no record that came later."""
    items: int = 1
    """The newest items that the server takes: 2 are those about presence, 3 those about groups."""


class Answered(Item, frozen=True, tag=2):
    """What became of the record that was asked for under `ref`."""

    ref: int
    said: Said


class Entries(Item, frozen=True, tag=3):
    """Entries `first`, `first + 1`, … of one lane."""

    lane: Lane
    first: int
    entries: tuple[Entry, ...]


class Gone(Item, frozen=True, tag=4):
    """Numbers `low` to `high` of one lane will never bring anything."""

    lane: Lane
    low: int
    high: int
    reason: Reason


class Receipts(Item, frozen=True, tag=5):
    """What became of messages of this account, oldest first."""

    receipts: tuple[PendingReceipt, ...]


class Drained(Item, frozen=True, tag=6):
    """*Queue empty*: everything up to these numbers has been handed out."""

    normal: int
    high: int
    receipts: int


class Devices(Item, frozen=True, tag=7):
    """An account's device list. Version 0: there is no such account."""

    ref: int
    account: int
    version: int
    devices: dict[int, int]
    """Device → registration."""
    signed: bytes


class Pong(Item, frozen=True, tag=8):
    nonce: int
    at: int


class Goodbye(Item, frozen=True, tag=9):
    """The server is about to close, with this close code. The last item there is."""

    code: int
    sentence: str
    retry_ms: int
    """Not sooner than this; 0: at once, at another address if there is one."""


class KeysLow(Item, frozen=True, tag=10):
    """Few of the device's one-time keys are left, or none was ever published: publish more."""


# --- server → device: presence. Said only on a connection whose device has said one of the items about presence.


class PersonSeen(Struct, frozen=True, array_like=True, gc=False):
    """What the device's account may know of one account's presence."""

    account: int
    state: PresenceState
    last_seen: int
    """If it is offline: its last heartbeat, in milliseconds since 1970. 0: never, or not told."""


class Seen(Item, frozen=True, tag=16):
    """The presence of some accounts, asked for under `ref`; 0: that of a watched account has changed."""

    ref: int
    people: tuple[PersonSeen, ...]


class Types(Item, frozen=True, tag=17):
    """A person is writing to this account, or in a group. To be shown for a few seconds."""

    by: int
    group: int = 0
    """0: to this account."""


class ShownTo(Item, frozen=True, tag=18):
    """To whom this account's presence is shown."""

    ref: int
    audience: Audience


# --- server → device: groups. Said only on a connection whose device has asked about a group.


class GroupChain(Item, frozen=True, tag=32):
    """A group as it is now, and changes of its chain, oldest first. Fewer than there are: ask again."""

    ref: int
    group: int
    epoch: int
    head: bytes
    """The hash of the newest change."""
    length: int
    """How many changes the chain has."""
    seq: int
    """The newest `group_seq`."""
    fan_out: FanOut
    blobs: tuple[tuple[int, bytes], ...]
    """(Index, signed change). The oldest changes of a long chain are not kept."""


class GroupMembers(Item, frozen=True, tag=33):
    """A page of a group's members, by account number. All pages belong together if their `head` is the same."""

    ref: int
    group: int
    epoch: int
    head: bytes
    length: int
    settings: GroupSettings
    members: tuple[MemberShown, ...]
    more: bool
    """There are members behind the last of these."""


class GroupLog(Item, frozen=True, tag=34):
    """What stands in a group's log behind `after`, in order and without holes.

    Under `ref` 0: the log has grown. Without `items`, and `after` 0, it says only how far.
    """

    ref: int
    group: int
    after: int
    items: tuple[LogRun | LogGap, ...]
    head: int
    """The last number that this device can fetch: the log's newest, or that with which its membership ended."""


class GroupSeenBy(Item, frozen=True, tag=35):
    """Who has a message, and who has read it: for each number, (account, state) of everybody who was addressed."""

    ref: int
    group: int
    receipts: GroupReceipts
    """How much the group shows: of *at least one*, the best state under account 0; of *none*, nothing."""
    states: tuple[tuple[int, tuple[tuple[int, MessageState], ...]], ...]


AboutGroups: TypeAlias = GroupLook | MembersLook | LogFetch | ReceiptsLook
AboutPresence: TypeAlias = Foreground | Watch | Peek | Typing | ShowTo
FromDevice: TypeAlias = (
    Hello | Ask | Look | Ping | Foreground | Watch | Peek | Typing | ShowTo
    | GroupLook | MembersLook | LogFetch | ReceiptsLook
)  # fmt: skip
FromServer: TypeAlias = (
    Welcome | Answered | Entries | Gone | Receipts | Drained | Devices | Pong | Goodbye | KeysLow
    | Seen | Types | ShownTo | GroupChain | GroupMembers | GroupLog | GroupSeenBy
)  # fmt: skip
