"""What a frame carries. A frame is an array of items, and every item begins with its number.

    device → server    Hello · Ask · Look · Ping
    server → device    Welcome · Answered · Entries · Gone · Receipts · Drained · Devices · Pong · Goodbye · KeysLow

Records, answers, refusals, entries and receipts travel as the model knows them: nothing is translated.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

from msgspec import Struct

from nightmail.model.answers import Said
from nightmail.model.records import SaidByDevices
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Lane, Reason

VERSION = 1
"""Of everything in this room. A server may speak several; the device names one in its `Hello`."""

SUBPROTOCOL = "nightmail.v1"

NEWEST_SINCE = max(body.since for body in get_args(SaidByDevices))
"""The newest records that a device may say are those `since` this number."""

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


FromDevice: TypeAlias = Hello | Ask | Look | Ping
FromServer: TypeAlias = (
    Welcome | Answered | Entries | Gone | Receipts | Drained | Devices | Pong | Goodbye | KeysLow
)  # fmt: skip
