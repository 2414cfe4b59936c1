"""Form: whatever is wrong is refused in one clear sentence, before it costs anything."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.core.state import encode_row
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX, Form
from nightmail.model.group_chain import NO_HEAD, ChainedChange, encode_change
from nightmail.model.ids import ACCOUNT_BITS, account_id, account_of, device_id
from nightmail.model.limits import FoldLimits, FormLimits
from nightmail.model.records import (
    Acked,
    AnyBody,
    BadRecord,
    Blocked,
    Claimed,
    ClockBelieved,
    ClockDoubted,
    ClockSetBack,
    Closed,
    Copied,
    Envelope,
    Enveloped,
    Expired,
    Fanned,
    FellowClaimed,
    FoldRaised,
    Forwarded,
    GroupAcked,
    GroupChanged,
    GroupDelivered,
    GroupMade,
    GroupMarked,
    GroupMissed,
    GroupNews,
    GroupRead,
    GroupReceipted,
    GroupSealed,
    GroupSent,
    GroupSwept,
    GroupVoided,
    GroupWasRead,
    HandleClaimed,
    HandleReleased,
    KeysAsked,
    Known,
    KnownForgotten,
    LetterExpired,
    LimitsSet,
    Linked,
    Listed,
    MemberAnswered,
    MemberAsked,
    MemberGone,
    MemberListed,
    PinSet,
    Published,
    Read,
    Receipted,
    ReceiptsAcked,
    ReceiptsSet,
    Record,
    Registered,
    Relabelled,
    Relisted,
    Sent,
    Span,
    Swept,
    Ticked,
    Unlinked,
    Voided,
    Watched,
    decode_record,
    encode_record,
)
from nightmail.model.refusals import Malformed
from nightmail.model.roster import Creation, Departure, GroupChange, GroupSettings, NewMember
from nightmail.model.words import Kind, Lane, MessageState, Platform, Reason
from tests.core.world import World
from tests.model.blob_forms import MALFORMED_BLOBS, SERVERS_BLOBS, WELL_FORMED_BLOBS
from tests.model.push_forms import MALFORMED_PUSHES, SERVERS_PUSHES, WELL_FORMED_PUSHES
from tests.model.schedule_forms import MALFORMED_SCHEDULES, SERVERS_SCHEDULES, WELL_FORMED_SCHEDULES
from tests.model.values import built

NORMAL, HIGH = Lane
BOB = account_id("bob")
PHONE, TABLET = device_id(account_id("alice"), 1), device_id(BOB, 1)
ID = f"{PHONE:x}:1700000000000:00001:abc"
DAY_MS = 24 * 3_600_000

ENVELOPE = Envelope(TABLET, 5, b"sealed")
SENT = Sent(BOB, NORMAL, 1, 1, 0, ID, bytes(16), Kind.TEXT, None, 0, 1, (ENVELOPE,), ())
VOIDED = Voided(BOB, NORMAL, 1, 1, ID)
REGISTERED = Registered(BOB, "bob", 5, bytes(32), "phone", Platform.CLI)
LINKED = Linked(BOB, 5, bytes(32), "phone", Platform.CLI)
LISTED = Listed(BOB, 1, (TABLET,), b"signed")
READ = Read(BOB, (Span(TABLET, NORMAL, 1, 3),))

PUBLISHED = Published(5, bytes(128), bytes(100), b"\1" + bytes(1_636), (), ())


def one_time(key: int, size: int = 36) -> bytes:
    return key.to_bytes(4, "big").ljust(size, b".")


def one_time_kem(key: int, size: int = 1_637) -> bytes:
    return (b"\0" + key.to_bytes(4, "big")).ljust(size, b".")


def but(body: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(body, **changes)


def many(count: int) -> tuple[Envelope, ...]:
    return tuple(Envelope(1 + n, 5, b"") for n in range(count))


GROUP = 0x1234
SETTINGS = GroupSettings()


def chained(change: GroupChange, group: int = GROUP, device: int = PHONE) -> bytes:
    previous = NO_HEAD if isinstance(change, Creation) else bytes((1,)) * 32
    return encode_change(ChainedChange(group, previous, device, 7, change, bytes(32))) + bytes(64)


CREATION = chained(Creation(SETTINGS, (NewMember(account_of(PHONE), bytes(32)),)))
DEPARTURE = chained(Departure())
GROUP_SENT = GroupSent(GROUP, NORMAL, 1, 1, 0, ID, bytes(16), Kind.TEXT, 1, bytes(32), 0, b"x")
GROUP_SEALED = GroupSealed(GROUP, HIGH, 1, 1, 0, ID, bytes(16), Kind.CONTROL, 1, None, 0, 0, (ENVELOPE,))

# --- what is well formed ----------------------------------------------------------------------

WELL_FORMED: dict[str, AnyBody] = {
    "a message": SENT,
    "a message in the high lane": but(SENT, lane=HIGH),
    "a message with nobody to seal for": but(SENT, envelopes=()),
    "a message for as many as there may be": but(SENT, envelopes=many(256), own_envelopes=many(256)),
    "a message as large as can be": but(SENT, envelopes=(but(ENVELOPE, ciphertext=bytes(65_536)),)),
    "a message with no body": but(SENT, envelopes=(but(ENVELOPE, ciphertext=b""),)),
    "a message that disappears late": but(SENT, life_ms=7 * DAY_MS),
    "a message that disappears soon": but(SENT, life_ms=30_000),
    "a re-seal with little left of its life": but(SENT, life_ms=1, of=SENT.id),
    "the last of all numbers": but(SENT, n=NUMBER_MAX, floor=NUMBER_MAX, seen=NUMBER_MAX, list_version=NUMBER_MAX),
    "as many unanswered as there may be": but(SENT, n=256, floor=1),
    "a later window": but(SENT, n=1_000, floor=745),
    "a re-seal": but(SENT, of=ID),
    "a number given up": VOIDED,
    "an ack of nothing": Acked(NORMAL, 0),
    "an ack with as many unreadables as can be": Acked(HIGH, NUMBER_MAX, tuple(range(256))),
    "receipts heard": ReceiptsAcked(NUMBER_MAX),
    "something read": READ,
    "nothing read": Read(BOB, ()),
    "much read": Read(BOB, READ.spans * 1_024),
    "as many authors as there may be": Read(BOB, tuple(Span(by, NORMAL, 1, 1) for by in range(1, 65)) * 2),
    "an account": REGISTERED,
    "the longest names": but(REGISTERED, account=account_id("h" * 64), handle="h" * 64, label="l" * 64),
    "no label": but(REGISTERED, label=""),
    "a device": LINKED,
    "a list": LISTED,
    "an empty list": but(LISTED, devices=(), signed=b""),
    "the longest list": but(LISTED, devices=tuple(range(256)), signed=bytes(65_536), version=NUMBER_MAX),
    "a device revoked": Unlinked(TABLET),
    "the greatest device": Unlinked(DEVICE_MAX),
    "an account closed": Closed(BOB),
    "somebody blocked": Blocked(BOB, account_id("eve"), True),
    "somebody unblocked": Blocked(BOB, account_id("eve"), False),
    "somebody known": Known(BOB, account_id("eve"), True),
    "receipts off": ReceiptsSet(BOB, False),
    "keys": PUBLISHED,
    "as many keys as can be": but(
        PUBLISHED, one_time=tuple(map(one_time, range(1, 201))), one_time_kem=tuple(map(one_time_kem, range(1, 41)))
    ),
    "the last of all keys": but(PUBLISHED, one_time=(one_time(2**32 - 1),), one_time_kem=(one_time_kem(2**32 - 1),)),
    "a claim": Claimed(TABLET, 1),
    "the last of all claims": Claimed(DEVICE_MAX, NUMBER_MAX),
    "a question about keys": KeysAsked(TABLET),
    "a takeover": but(REGISTERED, verified=True, pin=bytes(32)),
    "a device's new name": Relabelled(TABLET, "l" * 64),
    "a claim of a fellow member": FellowClaimed(GROUP, TABLET, 1),
    "a claimed handle": HandleClaimed(9, "bob", BOB, 1),
    "a lock": PinSet(BOB, bytes(16), bytes(32)),
    "no lock": PinSet(BOB, b"", b""),
    "a group": GroupMade(GROUP, CREATION),
    "a change of a group": GroupChanged(GROUP, DEPARTURE),
    "a message to a group": GROUP_SENT,
    "a message to a group that disappears": but(GROUP_SENT, life_ms=30_000),
    "a number in a group given up": GroupVoided(GROUP, NORMAL, 1, 1, ID),
    "keys for a group": GROUP_SEALED,
    "a re-seal in a group": but(GROUP_SEALED, of=ID, of_seq=5, life_ms=1),
    "something read in a group": GroupRead(GROUP, 1, (BOB,)),
    "something fetched from a group": GroupAcked(GROUP, NUMBER_MAX, tuple(range(256))),
    **WELL_FORMED_SCHEDULES,
    **WELL_FORMED_PUSHES,
    **WELL_FORMED_BLOBS,
}


@pytest.mark.parametrize("body", WELL_FORMED.values(), ids=list(WELL_FORMED))
def test_what_is_well_formed_passes(body: AnyBody) -> None:
    assert Form().check(PHONE, body) is None


# --- what is not ------------------------------------------------------------------------------

NUMBERS = f"and {NUMBER_MAX}"
DEVICES = f"between 1 and {DEVICE_MAX}"
ACCOUNTS = f"between 1 and {ACCOUNT_MAX}"
SHAPE = "not a message id: want device:milliseconds:sequence:random"
MALFORMED: dict[str, tuple[AnyBody, str]] = {
    **MALFORMED_SCHEDULES,
    **MALFORMED_PUSHES,
    **MALFORMED_BLOBS,
    "to nobody": (but(SENT, to=0), f"to is not {ACCOUNTS}"),
    "to beyond": (but(SENT, to=ACCOUNT_MAX + 1), f"to is not {ACCOUNTS}"),
    "n of nothing": (but(SENT, n=0), f"n is not between 1 {NUMBERS}"),
    "n beyond": (but(SENT, n=NUMBER_MAX + 1), f"n is not between 1 {NUMBERS}"),
    "floor below the window": (but(SENT, n=257, floor=1), "floor is not between 2 and 257"),
    "floor above its number": (but(SENT, n=3, floor=4), "floor is not between 1 and 3"),
    "floor of nothing": (but(SENT, n=3, floor=0), "floor is not between 1 and 3"),
    "an id of another": (but(SENT, id=f"{TABLET:x}:1:1:a"), "the id begins with another device"),
    "an id that is none": (but(SENT, id="hello"), SHAPE),
    "an empty id": (but(SENT, id=""), SHAPE),
    "an id that goes on": (but(SENT, id=ID + "\n"), SHAPE),
    "an id too long": (but(SENT, id="a" * 65), "an id has at most 64 characters"),
    "seen before time": (but(SENT, seen=-1), f"seen is not between 0 {NUMBERS}"),
    "seen beyond": (but(SENT, seen=NUMBER_MAX + 1), f"seen is not between 0 {NUMBERS}"),
    "a life before birth": (but(SENT, life_ms=-1), f"life_ms is not between 30000 and {7 * DAY_MS}"),
    "a life too short": (but(SENT, life_ms=29_999), f"life_ms is not between 30000 and {7 * DAY_MS}"),
    "a life too long": (but(SENT, life_ms=7 * DAY_MS + 1), f"life_ms is not between 30000 and {7 * DAY_MS}"),
    "a re-seal's life too long": (but(SENT, life_ms=7 * DAY_MS + 1, of=SENT.id), "life_ms is not between 1 and"),
    "a list version below": (but(SENT, list_version=-1), f"list_version is not between 0 {NUMBERS}"),
    "a short tag": (but(SENT, tag=bytes(15)), "tag is not 16 bytes"),
    "a long tag": (but(SENT, tag=bytes(17)), "tag is not 16 bytes"),
    "no tag, which means void": (but(SENT, tag=b""), "tag is not 16 bytes"),
    "of too long": (but(SENT, of="x" * 65), "of is too long"),
    "too many envelopes": (but(SENT, envelopes=many(257)), "more than 256 envelopes"),
    "too many of one's own": (but(SENT, own_envelopes=many(257)), "more than 256 envelopes"),
    "one device twice": (but(SENT, envelopes=(ENVELOPE, ENVELOPE)), "two envelopes for one device"),
    "one own device twice": (but(SENT, own_envelopes=(ENVELOPE, ENVELOPE)), "two envelopes for one device"),
    "a body too large": (
        but(SENT, envelopes=(but(ENVELOPE, ciphertext=bytes(65_537)),)),
        "a body of more than 65536 bytes",
    ),
    "an envelope for nobody": (but(SENT, envelopes=(but(ENVELOPE, device=0),)), f"device is not {DEVICES}"),
    "an envelope from beyond": (
        but(SENT, own_envelopes=(but(ENVELOPE, registration=-1),)),
        f"registration is not between 0 {NUMBERS}",
    ),
    "void to nobody": (but(VOIDED, to=0), f"to is not {ACCOUNTS}"),
    "void of nothing": (but(VOIDED, n=0), f"n is not between 1 {NUMBERS}"),
    "void floor above": (but(VOIDED, floor=2), "floor is not between 1 and 1"),
    "void id of another": (but(VOIDED, id=f"{TABLET:x}:1:1:a"), "the id begins with another device"),
    "an ack before the first": (Acked(NORMAL, -1), f"upto is not between 0 {NUMBERS}"),
    "an ack beyond": (Acked(NORMAL, NUMBER_MAX + 1), f"upto is not between 0 {NUMBERS}"),
    "too many unreadables": (Acked(NORMAL, 5, tuple(range(257))), "more than 256 unreadable numbers"),
    "receipts before the first": (ReceiptsAcked(-1), f"upto is not between 0 {NUMBERS}"),
    "too many spans": (Read(BOB, READ.spans * 1_025), "more than 1024 spans"),
    "too many authors": (
        Read(BOB, tuple(Span(by, NORMAL, 1, 1) for by in range(1, 66))),
        "messages of more than 64 devices",
    ),
    "a span by nobody": (Read(BOB, (Span(0, NORMAL, 1, 1),)), f"by is not {DEVICES}"),
    "a span backwards": (Read(BOB, (Span(TABLET, NORMAL, 3, 2),)), f"high is not between 3 {NUMBERS}"),
    "a span beyond": (Read(BOB, (Span(TABLET, NORMAL, 1, 1 << 60),)), f"high is not between 1 {NUMBERS}"),
    "read of nobody": (Read(0, ()), f"peer is not {ACCOUNTS}"),
    "no handle": (but(REGISTERED, handle=""), "a handle has 1 to 64 characters"),
    "a handle too long": (but(REGISTERED, handle="h" * 65), "a handle has 1 to 64 characters"),
    "a token that is no digest": (but(REGISTERED, token=b"secret"), "token is not a digest of 32 bytes"),
    "a label too long": (but(REGISTERED, label="l" * 65), "a label has at most 64 characters"),
    "another's account": (but(REGISTERED, account=BOB + 2), "account is not what follows from the handle"),
    "a registration below": (but(REGISTERED, registration=-1), f"registration is not between 0 {NUMBERS}"),
    "a device's token that is no digest": (but(LINKED, token=bytes(31)), "token is not a digest of 32 bytes"),
    "a device's label too long": (but(LINKED, label="l" * 65), "a label has at most 64 characters"),
    "a device of nobody": (but(LINKED, account=0), "account is not between 1 and"),
    "too many devices": (but(LISTED, devices=tuple(range(257))), "more than 256 devices, or one twice"),
    "one device listed twice": (but(LISTED, devices=(5, 5)), "more than 256 devices, or one twice"),
    "a list too large": (but(LISTED, signed=bytes(65_537)), "a list of more than 65536 bytes"),
    "a list of nobody": (but(LISTED, account=0), "account is not between 1 and"),
    "a list without a version": (but(LISTED, version=0), f"version is not between 1 {NUMBERS}"),
    "no device revoked": (Unlinked(0), f"device is not {DEVICES}"),
    "a device beyond": (Unlinked(DEVICE_MAX + 1), f"device is not {DEVICES}"),
    "nobody closed": (Closed(0), "account is not between 1 and"),
    "nobody blocks": (Blocked(0, BOB, True), "account is not between 1 and"),
    "somebody beyond blocks": (Blocked(1 << 63, BOB, True), "account is not between 1 and"),
    "nobody blocked": (Blocked(BOB, 0, True), "peer is not between 1 and"),
    "nobody knows": (Known(0, BOB, True), "account is not between 1 and"),
    "nobody known": (Known(BOB, 0, True), "peer is not between 1 and"),
    "nobody's receipts": (ReceiptsSet(0, True), "account is not between 1 and"),
    "keys of no registration": (but(PUBLISHED, registration=-1), f"registration is not between 0 {NUMBERS}"),
    "an identity too short": (but(PUBLISHED, identity=bytes(127)), "identity is not 128 bytes"),
    "a signed prekey too long": (but(PUBLISHED, signed=bytes(101)), "signed is not 100 bytes"),
    "no last resort": (but(PUBLISHED, last_resort=b""), "last_resort is not 1637 bytes"),
    "a last resort that is none": (but(PUBLISHED, last_resort=bytes(1_637)), "last_resort does not say that it is one"),
    "too many keys": (
        but(PUBLISHED, one_time=tuple(map(one_time, range(1, 202)))),
        "one_time has more than 200 keys",
    ),
    "too many KEM keys": (
        but(PUBLISHED, one_time_kem=tuple(map(one_time_kem, range(1, 42)))),
        "one_time_kem has more than 40 keys",
    ),
    "a key too short": (but(PUBLISHED, one_time=(one_time(1, 35),)), "one_time has a key that is not 36 bytes"),
    "a KEM key too long": (
        but(PUBLISHED, one_time_kem=(one_time_kem(1, 1_638),)),
        "one_time_kem has a key that is not 1637 bytes",
    ),
    "a key twice": (but(PUBLISHED, one_time=(one_time(1),) * 2), "one_time has ids that do not ascend from 1"),
    "a key without a number": (but(PUBLISHED, one_time=(one_time(0),)), "one_time has ids that do not ascend from 1"),
    "KEM keys out of order": (
        but(PUBLISHED, one_time_kem=(one_time_kem(2), one_time_kem(1))),
        "one_time_kem has ids that do not ascend from 1",
    ),
    "a last resort among others": (
        but(PUBLISHED, one_time_kem=(b"\1" + one_time_kem(1)[1:],)),
        "one_time_kem has a last-resort key",
    ),
    "a claim of nobody": (Claimed(0, 1), f"device is not {DEVICES}"),
    "a question about nobody's keys": (KeysAsked(0), f"device is not {DEVICES}"),
    "a claim without a number": (Claimed(TABLET, 0), f"request is not between 1 {NUMBERS}"),
    "a claim beyond": (Claimed(TABLET, NUMBER_MAX + 1), f"request is not between 1 {NUMBERS}"),
    "a PIN that is no digest": (but(REGISTERED, pin=b"1234"), "pin is not a digest of 32 bytes"),
    "a device's new name too long": (Relabelled(TABLET, "l" * 65), "a label has at most 64 characters"),
    "a name for no device": (Relabelled(0, ""), f"device is not {DEVICES}"),
    "a lock without salt": (
        PinSet(BOB, b"", bytes(32)),
        "a lock has a salt of 16 and a digest of 32 bytes, or neither",
    ),
    "a fellow of no group": (FellowClaimed(GROUP + 1, TABLET, 1), "group is not the number of a group"),
    "a fellow that is nobody": (FellowClaimed(GROUP, 0, 1), f"device is not {DEVICES}"),
    "a fellow without a number": (FellowClaimed(GROUP, TABLET, 0), f"request is not between 1 {NUMBERS}"),
    "a claim of nothing": (HandleClaimed(0, "bob", BOB, 1), "number is not between 1 and"),
    "a claim for another account": (HandleClaimed(9, "bobby", BOB, 1), "account is not what follows from the handle"),
    "a claim without a handle": (HandleClaimed(9, "", BOB, 1), "a handle has 1 to 64 characters"),
    "a claim for no device": (HandleClaimed(9, "bob", BOB, 0), "index is not between 1 and 4096"),
    "an account under no claim": (but(REGISTERED, claim=1 << 61), "claim is not between 0 and"),
    "a lock of nothing": (PinSet(BOB, bytes(16), b""), "a lock has a salt of 16 and a digest of 32 bytes, or neither"),
    "nobody's lock": (PinSet(0, b"", b""), "account is not between 1 and"),
    "a group with an odd number": (GroupMade(GROUP + 1, CREATION), "blob is of another group"),
    "a group that another device signed": (
        GroupMade(GROUP, chained(Creation(SETTINGS, (NewMember(BOB, bytes(32)),)), device=TABLET)),
        "blob names another device as its author",
    ),
    "a group that nobody created": (GroupMade(GROUP, DEPARTURE), "a group is made by a creation"),
    "a group that is created twice": (GroupChanged(GROUP, CREATION), "a group is made by a creation"),
    "a blob that is none": (GroupChanged(GROUP, b"rubbish"), "blob: 7 bytes"),
    "a message to an account as a group": (but(GROUP_SENT, group=BOB), "group is not the number of a group"),
    "a message to a group with a short head": (but(GROUP_SENT, head=b"x"), "head is not 32 bytes"),
    "a message to a group with a short tag": (but(GROUP_SENT, tag=b"x"), "tag is not 16 bytes"),
    "a message to a group that lives too short": (but(GROUP_SENT, life_ms=29_999), "life_ms is not between"),
    "too large a message to a group": (but(GROUP_SENT, ciphertext=bytes(65_537)), "a body of more than"),
    "a message to a group of a negative epoch": (but(GROUP_SENT, epoch=-1), "epoch is not between"),
    "a message to a group under another's id": (but(GROUP_SENT, id="1:2:3:x"), "the id begins with another device"),
    "keys for nobody": (but(GROUP_SEALED, envelopes=()), "it is sealed for nobody"),
    "keys twice for one device": (but(GROUP_SEALED, envelopes=(ENVELOPE, ENVELOPE)), "two envelopes for one device"),
    "a re-seal without its number": (but(GROUP_SEALED, of=ID), "a re-seal names id and number"),
    "a number without an id": (but(GROUP_SEALED, of_seq=1), "a re-seal names id and number"),
    "too many authors in a group": (GroupRead(GROUP, 1, (BOB,) * 65), "messages of more than 64 accounts"),
    "too many unreadables of a group": (GroupAcked(GROUP, 1, (1,) * 257), "more than 256 unreadable numbers"),
    "fetched from an account": (GroupAcked(BOB, 1), "group is not the number of a group"),
    "an author without a number": (GroupRead(GROUP, 1, (0,)), "author is not between"),
}


@pytest.mark.parametrize(("body", "complaint"), MALFORMED.values(), ids=list(MALFORMED))
def test_what_is_not_well_formed_is_refused_in_one_clear_sentence(body: AnyBody, complaint: str) -> None:
    refused = Form().check(PHONE, body)
    assert isinstance(refused, Malformed)
    assert refused.what.startswith(complaint)
    assert refused.sentence == f"malformed: {refused.what}"
    assert not refused.retry
    assert "\n" not in refused.sentence


def test_a_device_has_one_spelling_in_an_id() -> None:
    by_tablet = but(VOIDED, id=f"{TABLET:x}:1:1:a")
    assert Form().check(TABLET, by_tablet) is None
    for text in (f"0{TABLET:x}:1:1:a", f"00{TABLET:x}:1:1:a", f"{TABLET:X}:1:1:a"):
        assert isinstance(Form().check(TABLET, but(VOIDED, id=text)), Malformed), text
        assert isinstance(Form().check(TABLET, but(SENT, id=text)), Malformed), text


COPIED = Copied(PHONE, BOB, NORMAL, 1, ID, bytes(16), Kind.TEXT, None, 0, 5, (ENVELOPE,))
RECEIPTED = Receipted(PHONE, BOB, NORMAL, TABLET, MessageState.READ, Reason.NONE, 5, ((1, 1),))
SERVERS: list[AnyBody] = [
    HandleReleased(9, BOB, 1, 2),
    COPIED, RECEIPTED, Forwarded(1, 1, COPIED), Ticked(), Expired(TABLET, NORMAL, 0), Watched(TABLET),
    LimitsSet(FoldLimits()), FoldRaised(2), LetterExpired(5), Swept(PHONE, Lane.NORMAL, 1), KnownForgotten(BOB),
    ClockSetBack(1, 2), ClockBelieved(1, 2), ClockDoubted(1),
    MemberAsked(GROUP, BOB, 1, BOB), MemberAnswered(GROUP, BOB, 1, True, 0, (), BOB), MemberGone(GROUP, BOB),
    MemberListed(GROUP, BOB, 1, 1, (), False, False), Relisted(BOB), GroupNews(GROUP),
    Fanned(GROUP, PHONE, NORMAL, 1, ID, bytes(16), Kind.TEXT, 0, 5, 1, 1, ((BOB, 0),), b"x"),
    Enveloped(GROUP, PHONE, NORMAL, 1, ID, bytes(16), Kind.TEXT, None, 0, 0, 5, 1, (ENVELOPE,)),
    GroupDelivered(GROUP, PHONE, ((BOB, ((1, 1),)),)), GroupWasRead(GROUP, PHONE, 1, ()),
    GroupReceipted(GROUP, BOB, MessageState.READ, 5, ((1, 1),)), GroupMarked(GROUP, 1, (), (PHONE,)), GroupSwept(GROUP),
    GroupMissed(GROUP, PHONE, 1),
    *SERVERS_SCHEDULES,
    *SERVERS_PUSHES,
    *SERVERS_BLOBS,
]  # fmt: skip


@pytest.mark.parametrize("body", SERVERS, ids=[type(body).__name__ for body in SERVERS])
def test_what_only_the_server_says_is_refused_of_anybody(body: AnyBody) -> None:
    assert Form().check(PHONE, body) == Malformed("only the server says such a thing")


def test_every_kind_of_record_is_either_checked_or_the_servers() -> None:
    tried = {type(body) for body in (*WELL_FORMED.values(), *SERVERS)}
    assert tried == set(get_args(AnyBody))


def test_limits_may_be_set() -> None:
    form = Form(
        FormLimits(body_bytes=3, envelopes=1, spans=2, authors=1, unreadable=1, lifetime_ms=10, lifetime_ms_min=1),
        FoldLimits(ring_acks=4),
    )
    assert form.check(PHONE, but(SENT, n=5, floor=1)) == Malformed("floor is not between 2 and 5")
    assert form.check(PHONE, SENT) == Malformed("a body of more than 3 bytes")
    assert form.check(PHONE, but(SENT, life_ms=11)) == Malformed("life_ms is not between 1 and 10")
    assert form.check(PHONE, Acked(NORMAL, 9, (1, 2))) == Malformed("more than 1 unreadable numbers")
    two = (Span(PHONE, NORMAL, 1, 1), Span(TABLET, NORMAL, 1, 1))
    assert form.check(PHONE, Read(BOB, two)) == Malformed("messages of more than 1 devices")
    assert form.check(PHONE, Read(BOB, two[:1] * 3)) == Malformed("more than 2 spans")


# --- whatever is said -------------------------------------------------------------------------

numbers = st.integers(-(2**63), 2**64 - 1)


@pytest.mark.parametrize("kind", get_args(AnyBody), ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data(), by=st.integers(0, 2**64 - 1))
def test_any_body_that_can_be_decoded_is_judged_and_never_raises(kind: Any, data: st.DataObject, by: int) -> None:
    body = data.draw(built(kind))
    numbered = [field.name for field in msgspec.structs.fields(kind) if field.type is int]
    wild = {name: data.draw(numbers) for name in numbered if data.draw(st.booleans())}
    heard = decode_record(encode_record(Record(by, 0, but(body, **wild)))).body
    assert isinstance(Form().check(by, heard), Malformed | None)


@given(st.binary(max_size=200))
def test_any_bytes_that_happen_to_be_a_record_are_judged(data: bytes) -> None:
    try:
        record = decode_record(bytes(16) + data)
    except BadRecord:
        return
    assert isinstance(Form().check(record.by, record.body), Malformed | None)


@given(st.integers(1 << ACCOUNT_BITS, DEVICE_MAX))
def test_an_account_that_passes_can_be_saved(account: int) -> None:
    """Device ids are built from it: one that is too great could be folded, and never saved."""
    body = but(REGISTERED, account=account)
    if Form().check(PHONE, body) is None:
        world = World()
        world.do(0, body)
        for _, _, row in world.node(0).state.changed_rows():
            encode_row(row)


EDGES = st.sampled_from((-(2**63), -1, 0, 1, 2, 255, 256, 257, ACCOUNT_MAX, ACCOUNT_MAX + 1, NUMBER_MAX, NUMBER_MAX + 1,
                         DEVICE_MAX, DEVICE_MAX + 1, 2**63 - 1))  # fmt: skip


@given(st.data())
def test_a_message_to_one_device_is_judged_as_the_same_message_with_a_copy_is(data: st.DataObject) -> None:
    """The usual message is asked in one breath; a copy makes it an unusual one, asked word for word."""
    names = ("to", "n", "floor", "seen", "life_ms", "list_version")
    wild = {name: data.draw(EDGES) for name in names if data.draw(st.booleans())}
    envelope = Envelope(data.draw(EDGES), data.draw(EDGES), b"sealed") if data.draw(st.booleans()) else ENVELOPE
    tag = data.draw(st.sampled_from((bytes(16), b"", bytes(17))))
    plain = but(SENT, **wild, tag=tag, envelopes=(envelope,))
    assert Form().check(PHONE, plain) == Form().check(PHONE, but(plain, own_envelopes=(Envelope(PHONE + 1, 1, b""),)))
