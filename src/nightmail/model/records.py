"""What can happen. Each body is a value; in the log it stands behind who said it and whom to answer.

Records are past tense: by the time anyone reads one, it has happened.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from .ids import account_of
from .limits import FoldLimits
from .words import Kind, Lane, Platform, Reason, State


class Envelope(Struct, frozen=True, array_like=True, gc=False):
    """One device's ciphertext. `registration` tells a device from its reset successor."""

    device: int
    registration: int
    ciphertext: bytes


class Span(Struct, frozen=True, array_like=True, gc=False):
    """Numbers `low` to `high` (both included) of one device's stream in one lane."""

    by: int
    lane: Lane
    low: int
    high: int


class Body(Struct, frozen=True, array_like=True, gc=False):
    """The part of a record that its author wrote."""


# --- what devices say -------------------------------------------------------------------------


class Sent(Body, frozen=True, tag=1):
    """A message, sealed for every device of `to` and every other device of the sender."""

    to: int
    lane: Lane
    n: int
    """Its number in the sender's stream to `to`, in this lane. Starts at 1, grows by 1."""
    floor: int
    """The lowest number whose answer the sender still waits for."""
    seen: int
    """The newest stamp that the sender had displayed in this conversation."""
    id: str
    tag: bytes
    """Digest of the content, made by the sender: tells a retry from a reused number."""
    kind: Kind
    of: str | None
    """For a re-seal: the id of the message that is sealed again for one device."""
    life_ms: int
    """Drop it this long after it was accepted; 0 means the mailbox's own limit."""
    list_version: int
    envelopes: tuple[Envelope, ...]
    own_envelopes: tuple[Envelope, ...]


class Voided(Body, frozen=True, tag=2):
    """A number whose message was given up: consumed, so that the next one can be accepted."""

    to: int
    lane: Lane
    n: int
    floor: int
    id: str


class Acked(Body, frozen=True, tag=3):
    """Everything up to `upto` is durable on the device, except what it could not open."""

    lane: Lane
    upto: int
    unreadable: tuple[int, ...] = ()


class ChangesAcked(Body, frozen=True, tag=4):
    """Every receipt up to `upto` is durable on the device."""

    upto: int


class Read(Body, frozen=True, tag=5):
    """What a person has looked at in the conversation with `peer`: the numbers, exactly."""

    peer: int
    spans: tuple[Span, ...]


# --- accounts and devices ---------------------------------------------------------------------


class Registered(Body, frozen=True, tag=16):
    """An account comes into being, with its first device; or whoever owns its handle takes it over."""

    account: int
    handle: str
    registration: int
    token: bytes
    """SHA-256 of the device's token: the token itself is never stored."""
    label: str
    platform: Platform
    verified: bool = False
    """Whether the operator's verification has shown that the handle is theirs."""
    pin: bytes = b""
    """What the registration lock is compared with; empty: no PIN was given."""


class Linked(Body, frozen=True, tag=17):
    """A further device. It is addressed only once a device list names it."""

    account: int
    registration: int
    token: bytes
    label: str
    platform: Platform


class Listed(Body, frozen=True, tag=18):
    """The account's next device list. Linked devices that it no longer names are removed."""

    account: int
    version: int
    devices: tuple[int, ...]
    signed: bytes


class Unlinked(Body, frozen=True, tag=19):
    """A device is revoked: its mailbox ends now, and senders are told."""

    device: int


class Closed(Body, frozen=True, tag=20):
    """An account ends, with all its devices."""

    account: int


class Blocked(Body, frozen=True, tag=21):
    """`account` wants (not) to hear from `peer`."""

    account: int
    peer: int
    on: bool


class ReceiptsSet(Body, frozen=True, tag=22):
    """Read receipts, in both directions, on or off."""

    account: int
    on: bool


class Relabelled(Body, frozen=True, tag=25):
    """A device gets another name."""

    device: int
    label: str


class PinSet(Body, frozen=True, tag=26):
    """The account's registration lock, from here on. Only the server can make a digest; both empty: no lock."""

    account: int
    salt: bytes
    digest: bytes


# --- keys -------------------------------------------------------------------------------------


class Published(Body, frozen=True, tag=23):
    """A device's public keys, for whoever wants to write to it first. Each is opaque, but for its id."""

    registration: int
    identity: bytes
    signed: bytes
    """The signed prekey."""
    last_resort: bytes
    """The KEM key that is handed out when there is no other."""
    one_time: tuple[bytes, ...]
    """Further keys that are handed out once each, by ascending id."""
    one_time_kem: tuple[bytes, ...]


class Claimed(Body, frozen=True, tag=24):
    """Whoever wants to write to `device` takes one key of each kind. The same `request` gets the same ones."""

    device: int
    request: int


# --- what shards say to each other ------------------------------------------------------------


class Copied(Body, frozen=True, tag=32):
    """A message was accepted: file the sender's own copies."""

    by: int
    to: int
    lane: Lane
    n: int
    id: str
    tag: bytes
    kind: Kind
    of: str | None
    life_ms: int
    at: int
    envelopes: tuple[Envelope, ...]


class Receipted(Body, frozen=True, tag=33):
    """What became, on `device`, of messages that `by` sent to `to`."""

    by: int
    to: int
    lane: Lane
    device: int
    state: State
    reason: Reason
    at: int
    numbers: tuple[tuple[int, int], ...]


class Forwarded(Body, frozen=True, tag=34):
    """The `k`-th thing that shard `source` told this shard."""

    source: int
    k: int
    body: Copied | Receipted


# --- what time and operators say --------------------------------------------------------------


class Ticked(Body, frozen=True, tag=48):
    """Something is due. What, follows from the rows and the batch's time."""


class Expired(Body, frozen=True, tag=49):
    """One due item: a mailbox whose oldest entries may be too old, or one entry with a timer."""

    device: int
    lane: Lane
    seq: int
    """0: look at the whole mailbox."""


class Watched(Body, frozen=True, tag=52):
    """A mailbox's clock is set anew, by the oldest entry it still holds."""

    device: int


class LimitsSet(Body, frozen=True, tag=50):
    limits: FoldLimits


class FoldRaised(Body, frozen=True, tag=51):
    """From here on records are folded as `version` says: every node supports it."""

    version: int


AnyBody: TypeAlias = (
    Sent | Voided | Acked | ChangesAcked | Read
    | Registered | Linked | Listed | Unlinked | Closed | Blocked | ReceiptsSet
    | Published | Claimed | Relabelled | PinSet
    | Forwarded | Copied | Receipted
    | Ticked | Expired | Watched | LimitsSet | FoldRaised
)  # fmt: skip


def home_of(by: int, body: AnyBody) -> int:
    """The account whose shard decides about a record that a device or an operator submits."""
    match body:
        case Sent() | Voided():
            return body.to
        case Registered() | Linked() | Listed() | Closed() | Blocked() | ReceiptsSet() | PinSet():
            return body.account
        case Unlinked() | Claimed() | Relabelled():
            return account_of(body.device)
        case _:
            return account_of(by)


class Record(Struct, frozen=True, array_like=True, gc=False):
    """A body, the authenticated device that said it, and the address an answer goes to."""

    by: int
    via: int
    body: AnyBody


class Batch(Struct, frozen=True):
    """What became durable together: records `first`, `first + 1`, …, all accepted at `at`."""

    first: int
    at: int
    records: Sequence[Record]

    @property
    def last(self) -> int:
        return self.first + len(self.records) - 1


_HEADER = struct.Struct("<QQ")
_encode_body = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(AnyBody).decode


class BadRecord(ValueError):
    """Bytes that are no record."""


def encode_record(record: Record) -> bytes:
    """Header (author, answer address: two little-endian u64), then the body as its author encoded it."""
    return _HEADER.pack(record.by, record.via) + _encode_body(record.body)


def decode_record(data: bytes | memoryview) -> Record:
    if len(data) <= _HEADER.size:
        raise BadRecord("a record is shorter than its header")
    by, via = _HEADER.unpack_from(data)
    try:
        return Record(by, via, _decode_body(data[_HEADER.size :]))
    except (msgspec.DecodeError, ValueError) as error:
        raise BadRecord("a record's body is not of any known form") from error
