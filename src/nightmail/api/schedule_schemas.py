"""The JSON bodies of scheduled messages and of dead letters. `schemas.py` says what holds for all of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from nightmail.engine.ports import LetterSeen, ScheduleSeen
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.schedule_rows import CallTarget, GroupTarget, ScheduleState
from nightmail.model.words import Kind

from .schemas import Hex, Number
from .times import Milliseconds, Time, rfc3339

ScheduleStateName = Literal["pending", "processing", "delivered", "cancelled", "failed"]
LetterStatusName = Literal["waiting", "replayed", "discarded", "expired", "delivered"]
KindName = Literal["text", "media", "control"]

STATE_NAMES: dict[ScheduleState, ScheduleStateName] = {
    ScheduleState.PENDING: "pending",
    ScheduleState.PROCESSING: "processing",
    ScheduleState.DELIVERED: "delivered",
    ScheduleState.CANCELLED: "cancelled",
    ScheduleState.FAILED: "failed",
}
STATES: dict[str, ScheduleState] = {name: state for state, name in STATE_NAMES.items()}
STATUS_NAMES: dict[LetterStatus, LetterStatusName] = {
    LetterStatus.WAITING: "waiting",
    LetterStatus.REPLAYED: "replayed",
    LetterStatus.DISCARDED: "discarded",
    LetterStatus.EXPIRED: "expired",
    LetterStatus.DELIVERED: "delivered",
}
KINDS: dict[KindName, Kind] = {"text": Kind.TEXT, "media": Kind.MEDIA, "control": Kind.CONTROL}

DELAY_S_MAX = 400 * 24 * 60 * 60
MESSAGE_ID = r"^[0-9a-f]{1,16}:[0-9]{1,15}:[0-9]{1,12}:[0-9a-z]{1,16}$"
MessageIdText = Annotated[str, Meta(pattern=MESSAGE_ID, examples=["d7f3a2b1:1706745600000:00042:x9k2"])]


# --- targets ----------------------------------------------------------------------------------


class ToWebhook(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="webhook"):
    """A third party's HTTP API. The server can read what it is told, and deletes it when the call has ended."""

    url: str


class ToConversation(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="conversation"):
    """The conversation with an account. The content is sealed by the client."""

    account: Hex


class ToGroup(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="group"):
    group: Hex


# --- requests ---------------------------------------------------------------------------------


class NewSchedule(Struct, frozen=True, forbid_unknown_fields=True):
    """A message for later. Either `delay_seconds` or `deliver_at`."""

    content: Raw
    """For a webhook: any JSON, which it gets as it is. Otherwise `SealedContent` or `GroupSealedContent`."""
    target: ToWebhook | ToConversation | ToGroup
    delay_seconds: Annotated[float, Meta(ge=0, le=DELAY_S_MAX)] | None = None
    deliver_at: str | int | None = None
    """RFC 3339 with a zone, or milliseconds since 1970."""
    message_id: MessageIdText | None = None
    """Made by the device; of a call to a webhook, the server makes one if there is none."""
    account: str = ""
    """The operator says in whose name: a handle."""


class SealedEnvelope(Struct, frozen=True, forbid_unknown_fields=True):
    device: Hex
    registration: Number
    ciphertext: bytes


class SealedContent(Struct, frozen=True, forbid_unknown_fields=True):
    """A message into a conversation, as docs/protocol.md has it."""

    tag: bytes
    list_version: Number
    envelopes: list[SealedEnvelope]
    own_envelopes: list[SealedEnvelope] = []
    kind: KindName = "text"
    life_ms: Number = 0


class GroupSealedContent(Struct, frozen=True, forbid_unknown_fields=True):
    """A message into a group, likewise."""

    tag: bytes
    epoch: Number
    head: bytes
    ciphertext: bytes
    kind: KindName = "text"
    life_ms: Number = 0


class LettersWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Dead letters of one error, or that became such in a time, or both. At least one of them."""

    error: str | None = None
    since: str | int | None = None
    """RFC 3339 with a zone, or milliseconds since 1970; included."""
    before: str | int | None = None
    """Likewise; not included."""


# --- responses --------------------------------------------------------------------------------


class ScheduleMade(Struct, frozen=True):
    message_id: str
    deliver_at: Milliseconds
    deliver_at_rfc3339: Time


class ScheduleShown(Struct, frozen=True, omit_defaults=True):
    """What became of a scheduled message. Its content is not shown."""

    message_id: str
    state: ScheduleStateName
    target: ToWebhook | ToConversation | ToGroup
    made_at: Milliseconds
    made_at_rfc3339: Time
    deliver_at: Milliseconds
    deliver_at_rfc3339: Time
    retry_count: int = 0
    next_at: Milliseconds = 0
    """When it is tried next; left out when it has ended."""
    next_at_rfc3339: str = ""
    ended_at: Milliseconds = 0
    ended_at_rfc3339: str = ""
    needs_sealing: bool = False
    """The recipient's devices have changed: it waits until a device of the author seals it again."""
    error: str = ""
    """Why it failed, or why the last call did."""
    n: int = 0
    """Its number in the author's stream, once it is in the conversation; `accepted_at` is its stamp there."""
    accepted_at: Milliseconds = 0


class SchedulesShown(Struct, frozen=True, omit_defaults=True):
    schedules: list[ScheduleShown]
    """Newest first. A page may be short, or empty, and yet not be the last."""
    next_page: str = ""
    """Left out: this is the last one."""


class Cancelled(Struct, frozen=True):
    success: Literal[True] = True


class WebhookSecret(Struct, frozen=True):
    secret: str
    """What calls of this account are signed with, as every library of the Standard Webhooks scheme takes it."""


class LetterClassShown(Struct, frozen=True):
    error: str
    count: int


class LetterClassesShown(Struct, frozen=True):
    classes: list[LetterClassShown]
    """The most frequent first. Settled letters count as long as they are kept."""
    total: int


class OriginalShown(Struct, frozen=True):
    """Empty fields: it was no message, or the letter is settled and its content is gone."""

    msg_id: str
    sender: str
    recipient: str
    content: list[bytes]
    """Base64: sealed, for each device; of a call to a webhook, what it was to be told."""
    timestamp: Milliseconds
    timestamp_rfc3339: Time


class LetterShown(Struct, frozen=True, omit_defaults=True):
    """What could not be delivered."""

    id: str
    original_message: OriginalShown
    error: str
    error_class: str
    retry_count: int
    first_attempt: Milliseconds
    first_attempt_rfc3339: Time
    last_attempt: Milliseconds
    last_attempt_rfc3339: Time
    dlq_timestamp: Milliseconds
    dlq_timestamp_rfc3339: Time
    source_topic: str
    source_partition: int
    source_offset: int
    status: LetterStatusName
    replayable: bool
    settled_at: Milliseconds = 0


class LettersShown(Struct, frozen=True, omit_defaults=True):
    letters: list[LetterShown]
    next_page: str = ""


class LettersSettledCount(Struct, frozen=True):
    settled: int
    """Letters that this request was about. Those that were settled before, or cannot be replayed, do not count."""


# --- from the model ---------------------------------------------------------------------------


def _time(at: int) -> str:
    return rfc3339(at) if at else ""


def schedule_shown(seen: ScheduleSeen) -> ScheduleShown:
    row = seen.schedule
    match row.target:
        case CallTarget(url):
            target = ToWebhook(url)
        case GroupTarget(group):
            target = ToGroup(f"{group:x}")
        case pair:
            target = ToConversation(f"{pair.to:x}")
    next_at = row.next_at if row.state.is_open else 0
    return ScheduleShown(
        row.id, STATE_NAMES[row.state], target, row.made_at, rfc3339(row.made_at), row.deliver_at,
        rfc3339(row.deliver_at), row.retry_count, next_at, _time(next_at), row.ended_at, _time(row.ended_at),
        row.is_stale, row.error, row.n, row.at,
    )  # fmt: skip


def letter_shown(shard: int, seen: LetterSeen, source: str, *, with_content: bool = True) -> LetterShown:
    first = seen.original
    original = OriginalShown(
        first.msg_id, f"{first.sender:x}" if first.sender else "",
        first.recipient if isinstance(first.recipient, str) else f"{first.recipient:x}" if first.recipient else "",
        list(first.content) if with_content else [], first.timestamp, rfc3339(first.timestamp),
    )  # fmt: skip
    return LetterShown(
        f"{shard}-{seen.offset}", original, seen.errors[-1] if seen.errors else "",
        seen.errors[0] if seen.errors else "", seen.retry_count, seen.first_attempt, rfc3339(seen.first_attempt),
        seen.last_attempt, rfc3339(seen.last_attempt), seen.at, rfc3339(seen.at), source, shard, seen.offset,
        STATUS_NAMES[seen.status], seen.is_replayable, seen.settled_at,
    )  # fmt: skip
