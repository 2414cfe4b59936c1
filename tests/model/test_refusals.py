from __future__ import annotations

from contextlib import suppress
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.answers import (
    Accepted,
    Bundle,
    Done,
    GroupAccepted,
    GroupHead,
    Joined,
    Said,
    ScheduleTaken,
    Settled,
    Stocked,
)
from nightmail.model.refusals import (
    AckAboveHead,
    AlreadyEnded,
    AlreadyMember,
    AlreadySent,
    AnyRefusal,
    BackupPrivate,
    BlobQuota,
    BlobTooLarge,
    BlobUnfinished,
    DeadLettered,
    DiskFull,
    GroupFull,
    GroupIdTaken,
    HandleConfusable,
    HandleTaken,
    IdentityFixed,
    IdReused,
    InProgress,
    KeyReused,
    LastAdmin,
    LetterSettled,
    ListConflict,
    MailboxFull,
    Malformed,
    NoKeys,
    NotAllowed,
    NotGroupAdmin,
    NotMember,
    NotReplayable,
    NotYet,
    NumberVoided,
    OutOfOrder,
    Overloaded,
    PinLocked,
    PinNeeded,
    PinWrong,
    RateLimited,
    Refusal,
    RemovesItself,
    SchedulesFull,
    ShareFull,
    StaleDevices,
    StaleGroup,
    TimePast,
    TooFarOff,
    TooManyAddressed,
    TooManyBlobs,
    TooManyBlocked,
    TooManyDevices,
    TooManyLinked,
    TooManySchedules,
    TooManyUploads,
    Unavailable,
    UnknownAccount,
    UnknownBlob,
    UnknownDevice,
    UnknownGroup,
    UnknownLetter,
    UnknownMember,
    UnknownRecipient,
    UnknownSchedule,
)

EACH: dict[AnyRefusal, str] = {
    OutOfOrder(7): "out of order: number 7 must come first",
    IdReused("1:2:3:x"): "the id or number of 1:2:3:x was used for something else before",
    NumberVoided("1:2:3:x"): "1:2:3:x was given up by its sender before it was accepted",
    UnknownRecipient(0xAB): "there is no account ab",
    StaleDevices(4, (1, 2), (3,), ()): "the device list is now version 4: 2 missing, 1 extra, 0 with new keys",
    MailboxFull(10_000): "every device of the recipient is full: limit 10000 entries, fewer if they are large",
    ShareFull(100): "too much of yours waits for the recipient: limit 100 entries, fewer if they are large",
    AckAboveHead(9): "nothing above 9 was ever handed out",
    HandleTaken("alice"): "'alice' is taken",
    UnknownAccount(0xAB): "there is no account ab",
    UnknownDevice(0xAB): "there is no device ab",
    NotAllowed(): "only a device of the account itself may do this",
    ListConflict(3): "the device list is at version 3: the next one must be built on it",
    TooManyBlocked(5): "the block list is full: limit 5 accounts",
    TooManyDevices(4095): "an account can have 4095 devices over its life",
    NoKeys(0xAB): "device ab has published no keys yet",
    IdentityFixed(): "a device keeps the identity that it published first: with other keys it is another device",
    PinNeeded("alice"): "'alice' has a registration lock: its PIN is needed",
    PinWrong(3): "that is not the PIN; tries left: 3",
    PinLocked(40): "too many wrong PINs: try again in 40 ms",
    TooManyLinked(32): "an account can have 32 devices at once",
    HandleConfusable("b\u043eb"): "'b\u043eb' looks like a handle that is taken",
    UnknownGroup(0xAB): "there is no group ab",
    GroupIdTaken(0xAB): "another group has the number ab",
    StaleGroup(9, bytes(32), 4): "the group is in epoch 9, with 4 changes",
    NotMember(0xAB): "only members of the group ab may do this",
    NotGroupAdmin(0xAB): "only admins of the group ab may do this",
    AlreadyMember(0xAB): "the group ab has that member",
    UnknownMember(0xAB): "the group ab has no such member",
    RemovesItself(0xAB): "a member leaves the group; it does not remove itself",
    LastAdmin(0xAB): "the group ab needs another admin first",
    GroupFull(5_000): "a group has at most 5000 members",
    UnknownSchedule("a:1:1:x"): "there is no scheduled message a:1:1:x",
    AlreadySent("a:1:1:x"): "a:1:1:x was sent already",
    InProgress("a:1:1:x"): "a:1:1:x is being delivered",
    AlreadyEnded("a:1:1:x"): "a:1:1:x has ended without being delivered",
    TooManySchedules(7): "an account can have 7 of these at once",
    SchedulesFull(7): "scheduled messages of an account can have 7 bytes",
    TooFarOff(7): "this can be scheduled at most 7 ms ahead",
    TimePast(7): "the time that it is scheduled for is over",
    KeyReused(): "this idempotency key was used for another request",
    UnknownLetter(7): "there is no dead letter 7",
    LetterSettled(7): "the dead letter 7 is settled",
    UnknownBlob(): "there is no such blob",
    BlobTooLarge(600): "a blob has at most 600 bytes",
    BlobQuota(1_000, 900): "blobs of an account can have 1000 bytes, and 900 are used",
    TooManyBlobs(3): "an account can have 3 blobs",
    TooManyUploads(2): "an account can have 2 uploads at once; finish or delete one",
    TooManyAddressed(600): "a blob can be for 600 devices",
    BlobUnfinished(): "the blob is not whole yet",
    BackupPrivate(): "a backup is for nobody but its owner",
    NotReplayable(7): "the dead letter 7 cannot be replayed",
    Malformed("no body"): "malformed: no body",
    Unavailable(): "the server could not write this down; try again",
    Overloaded(): "the server has too much to save; try again soon",
    DiskFull(): "the server's disk is full; try again later",
    DeadLettered(): "the server could not apply this; it was set aside for the operator",
    RateLimited(40): "too fast: try again in 40 ms",
    NotYet(): "the server is being upgraded and does not take this yet; try again later",
}
CODES = {
    OutOfOrder: 0x10,
    IdReused: 0x11,
    NumberVoided: 0x12,
    UnknownRecipient: 0x13,
    StaleDevices: 0x14,
    MailboxFull: 0x15,
    ShareFull: 0x16,
    AckAboveHead: 0x20,
    HandleTaken: 0x30,
    UnknownAccount: 0x31,
    UnknownDevice: 0x32,
    NotAllowed: 0x33,
    ListConflict: 0x34,
    TooManyBlocked: 0x35,
    TooManyDevices: 0x36,
    NoKeys: 0x37,
    IdentityFixed: 0x38,
    PinNeeded: 0x39,
    PinWrong: 0x3A,
    PinLocked: 0x3B,
    TooManyLinked: 0x3C,
    HandleConfusable: 0x3D,
    UnknownGroup: 0x60,
    GroupIdTaken: 0x61,
    StaleGroup: 0x62,
    NotMember: 0x63,
    NotGroupAdmin: 0x64,
    AlreadyMember: 0x65,
    UnknownMember: 0x66,
    RemovesItself: 0x67,
    LastAdmin: 0x68,
    GroupFull: 0x69,
    UnknownSchedule: 0x80,
    AlreadySent: 0x81,
    InProgress: 0x82,
    AlreadyEnded: 0x83,
    TooManySchedules: 0x84,
    SchedulesFull: 0x85,
    TooFarOff: 0x86,
    TimePast: 0x87,
    KeyReused: 0x88,
    UnknownLetter: 0x90,
    LetterSettled: 0x91,
    UnknownBlob: 0xA0,
    BlobTooLarge: 0xA1,
    BlobQuota: 0xA2,
    TooManyBlobs: 0xA3,
    TooManyUploads: 0xA4,
    TooManyAddressed: 0xA5,
    BlobUnfinished: 0xA6,
    BackupPrivate: 0xA7,
    NotReplayable: 0x92,
    Malformed: 0x40,
    Unavailable: 0x50,
    Overloaded: 0x51,
    DiskFull: 0x52,
    DeadLettered: 0x53,
    RateLimited: 0x54,
    NotYet: 0x55,
}
WORTH_A_RETRY = {
    OutOfOrder,
    MailboxFull,
    ShareFull,
    NoKeys,
    PinLocked,
    Unavailable,
    Overloaded,
    DiskFull,
    RateLimited,
    NotYet,
}

kinds = get_args(AnyRefusal)
each = pytest.mark.parametrize("refusal", EACH, ids=lambda refusal: type(refusal).__name__)
decode_said = msgspec.msgpack.Decoder(Said).decode


def test_every_refusal_there_is_can_be_said() -> None:
    assert set(kinds) == set(Refusal.__subclasses__()) == {type(refusal) for refusal in EACH}


ANSWERS = (Accepted, Settled, Joined, Done, Stocked, Bundle, GroupAccepted, GroupHead, ScheduleTaken)
WORDS = {
    "out_of_order", "id_reused", "number_voided", "unknown_recipient", "stale_devices", "mailbox_full", "share_full",
    "ack_above_head", "handle_taken", "unknown_account", "unknown_device", "not_allowed", "list_conflict",
    "too_many_blocked", "too_many_devices", "too_many_linked", "handle_confusable", "no_keys", "identity_fixed",
    "pin_needed",
    "pin_wrong", "pin_locked", "malformed", "unavailable", "overloaded", "disk_full", "dead_lettered",
    "rate_limited", "not_yet",
    "unknown_group", "group_taken", "stale_group", "not_member", "not_group_admin", "already_member", "unknown_member",
    "removes_itself", "last_admin", "group_full",
    "unknown_schedule", "already_sent", "in_progress", "already_ended", "too_many_schedules", "schedules_full",
    "too_far_ahead", "time_past", "key_reused", "unknown_letter", "letter_settled", "not_replayable",
    "unknown_blob", "blob_too_large", "blob_quota", "too_many_blobs", "too_many_uploads", "too_many_addressed",
    "blob_unfinished", "backup_private",
}  # fmt: skip


def test_words_are_what_they_have_always_been_and_none_is_used_twice() -> None:
    assert sorted(kind.word for kind in kinds) == sorted(WORDS)


def test_codes_are_what_they_have_always_been_and_none_is_used_twice() -> None:
    assert {type(refusal): refusal.code for refusal in EACH} == CODES
    answers = [kind.__struct_config__.tag for kind in ANSWERS]
    assert len({*CODES.values(), *answers}) == len(CODES) + len(answers)


@each
def test_every_refusal_says_its_own_sentence(refusal: AnyRefusal) -> None:
    assert refusal.sentence == EACH[refusal]


@each
def test_every_refusal_tells_whether_the_same_again_may_succeed(refusal: AnyRefusal) -> None:
    assert refusal.retry == (type(refusal) in WORTH_A_RETRY)


SAID = [Accepted("id", b"tag", 5, 1), Settled("id"), Joined(9, 2), Done(), Stocked(3, 4)]
BUNDLES = [Bundle(9, 2, b"i", b"s", b"k", one_time) for one_time in (b"o", None)]


@pytest.mark.parametrize("said", [*EACH, *SAID, *BUNDLES])
def test_whatever_the_fold_says_comes_back_as_it_was_said(said: Said) -> None:
    assert decode_said(msgspec.msgpack.encode(said)) == said


@given(st.binary(max_size=64))
def test_random_bytes_are_either_an_answer_or_a_decode_error(data: bytes) -> None:
    with suppress(msgspec.DecodeError):
        decode_said(data)
