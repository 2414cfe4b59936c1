"""Records about messages for later: well formed, malformed in each way, and those that only the server says."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.model.ids import account_id, device_id
from nightmail.model.records import (
    AnyBody,
    CallEnded,
    CallOutcome,
    CallScheduled,
    Discarded,
    Envelope,
    Fired,
    FiringOutcome,
    FiringSettled,
    GroupFired,
    LettersSettled,
    Replayed,
    Resealed,
    ScheduleCancelled,
    Scheduled,
    ScheduleLooked,
    SchedulesAsked,
    SchedulesEnded,
    SchedulesSwept,
)
from nightmail.model.schedule_rows import GroupContent, GroupTarget, PairContent, PairTarget
from nightmail.model.words import Kind

BOB = account_id("bob")
PHONE = device_id(account_id("alice"), 1)
GROUP = 0x1234_5678
ID = f"{PHONE:x}:1700000000000:00001:abcd"
FOREIGN_ID = f"{PHONE + 1:x}:1700000000000:00001:abcd"
PAIR = PairContent(1, (Envelope(PHONE + 1, 5, b"x"),), ())
IN_GROUP = GroupContent(1, bytes(32), b"x")
SCHEDULED = Scheduled(ID, bytes(16), Kind.TEXT, 0, 1_700_000_000_000, PairTarget(BOB), PAIR)
IN_A_GROUP = replace(SCHEDULED, target=GroupTarget(GROUP), content=IN_GROUP)
CALL = CallScheduled(BOB, ID, "key", bytes(16), 5, "https://example.com/", "application/json", b"{}")
ENDED = CallEnded(BOB, 1, 1, CallOutcome.FAILED, "http_503", 1_000)
TOO_MUCH = b"x" * 65_537
NO_ID = "not a message id"

WELL_FORMED_SCHEDULES: dict[str, AnyBody] = {
    "a message for later": SCHEDULED,
    "a message for later that disappears": replace(SCHEDULED, life_ms=30_000),
    "a message for later to a group": IN_A_GROUP,
    "a message that is sealed again": Resealed(ID, PAIR),
    "a message of another own device that is sealed again": Resealed(FOREIGN_ID, IN_GROUP),
    "a cancelled message": ScheduleCancelled(BOB, ID),
    "a question about schedules": SchedulesAsked((1,)),
    "a question about as many as can be": SchedulesAsked(tuple(range(1, 65))),
    "a call": CALL,
    "a call without a key": replace(CALL, key="", content=b""),
    "a call that failed": ENDED,
    "a call that succeeded": replace(ENDED, outcome=CallOutcome.DELIVERED, error=""),
}

MALFORMED_SCHEDULES: dict[str, tuple[AnyBody, str]] = {
    "a question about nothing": (SchedulesAsked(()), "not 1 to 64 serials"),
    "a question about too many": (SchedulesAsked(tuple(range(1, 66))), "not 1 to 64 serials"),
    "a question about no schedule": (SchedulesAsked((1, 0)), "serial is not between"),
    "a message for later with a foreign id": (replace(SCHEDULED, id=FOREIGN_ID), "the id begins with another device"),
    "a message for later with a short tag": (replace(SCHEDULED, tag=b""), "tag is not 16 bytes"),
    "a message for later with too short a life": (replace(SCHEDULED, life_ms=1), "life_ms is not between"),
    "a message for no time": (replace(SCHEDULED, deliver_at=-1), "deliver_at is not between"),
    "a message for the end of time": (replace(SCHEDULED, deliver_at=1 << 53), "deliver_at is not between"),
    "a message for later to nobody": (replace(SCHEDULED, target=PairTarget(0)), "to is not between"),
    "a message for later to an odd group": (
        replace(IN_A_GROUP, target=GroupTarget(3)), "group is not the number of a group",
    ),
    "a message to a group that is sealed for devices": (
        replace(IN_A_GROUP, content=PAIR), "what goes to a group is sealed for it",
    ),
    "a message to an account that is sealed for a group": (
        replace(SCHEDULED, content=IN_GROUP), "what goes to an account is sealed for its devices",
    ),
    "a message for later that is too large": (
        replace(SCHEDULED, content=PairContent(1, (Envelope(PHONE, 5, TOO_MUCH),), ())), "a body of more than",
    ),
    "an own copy for later that is too large": (
        replace(SCHEDULED, content=PairContent(1, (), (Envelope(PHONE, 5, TOO_MUCH),))), "a body of more than",
    ),
    "a message for later under no list": (
        replace(SCHEDULED, content=PairContent(-1, (), ())), "list_version is not between",
    ),
    "a message for later in no epoch": (
        replace(IN_A_GROUP, content=GroupContent(-1, bytes(32), b"")), "epoch is not between",
    ),
    "a message for later after no head": (replace(IN_A_GROUP, content=GroupContent(1, b"", b"")), "head is not 32"),
    "a message for later that is too large for a group": (
        Resealed(ID, GroupContent(1, bytes(32), TOO_MUCH)), "a body of more than",
    ),
    "a re-seal of nothing": (Resealed(NO_ID, PAIR), "not a message id"),
    "a cancel of nothing": (ScheduleCancelled(BOB, NO_ID), "not a message id"),
    "a cancel of nobody's": (ScheduleCancelled(0, ID), "account is not between"),
    "nobody's call": (replace(CALL, account=0), "account is not between"),
    "a call without an id": (replace(CALL, id=NO_ID), "not a message id"),
    "a call with a long key": (replace(CALL, key="k" * 129), "an idempotency key has at most 128 characters"),
    "a call with a short tag": (replace(CALL, tag=b""), "tag is not 16 bytes"),
    "a call for no time": (replace(CALL, deliver_at=-1), "deliver_at is not between"),
    "a call to a long address": (replace(CALL, url="https://" + "x" * 2_048), "a URL has at most 2048 characters"),
    "a call to a file": (replace(CALL, url="file:///etc/passwd"), "url is no http or https URL"),
    "a call with a header of its own": (replace(CALL, content_type="text/plain\r\nx: y"), "content_type is none"),
    "a call that is too large": (replace(CALL, content=TOO_MUCH), "more than 65536 bytes of content"),
    "an outcome for nobody": (replace(ENDED, account=0), "account is not between"),
    "an outcome of no schedule": (replace(ENDED, serial=0), "serial is not between"),
    "an outcome of no attempt": (replace(ENDED, attempt=0), "attempt is not between"),
    "an outcome with a negative delay": (replace(ENDED, retry_after_ms=-1), "retry_after_ms is not between"),
    "a failure without an error": (replace(ENDED, error=""), "a call that failed names an error"),
    "a success with an error": (replace(ENDED, outcome=CallOutcome.DELIVERED), "a call that failed names an error"),
    "an error that is no word": (replace(ENDED, error="Token=abc"), "error is no word"),
}  # fmt: skip

SERVERS_SCHEDULES: list[AnyBody] = [
    ScheduleLooked(BOB, 1),
    Fired(1, PHONE, BOB, ID, bytes(16), Kind.TEXT, 0, PAIR),
    GroupFired(1, PHONE, GROUP, ID, bytes(16), Kind.TEXT, 0, IN_GROUP),
    FiringSettled(BOB, 1, FiringOutcome.FILED, 1, 5),
    SchedulesEnded(BOB, 0),
    SchedulesSwept(BOB, 0, 5),
    Replayed(1),
    Discarded(1),
    LettersSettled((1, 2), replay=True),
]
