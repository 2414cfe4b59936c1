"""Messages for later, as devices and the HTTP interface speak of them: scheduled, sealed again, cancelled, called."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TypeAlias

from nightmail.model.answers import Done, SchedulesFound, ScheduleTaken
from nightmail.model.forms import (
    ACCOUNT_MAX,
    NUMBER_MAX,
    TAG_BYTES,
    Complaint,
    Form,
    out_of,
    wrong_id,
)
from nightmail.model.group_chain import HEAD_BYTES, is_group
from nightmail.model.ids import MESSAGE_ID, account_of
from nightmail.model.schedule_rows import GroupContent, GroupTarget, PairContent, PairTarget
from nightmail.model.words import Kind

from .body import Author, Body, Pace
from .messages import enveloped

ASKED_MAX = 64
"""Schedules in one question."""
KEY_CHARS = 128
"""Of an idempotency key."""
ERROR = re.compile(r"[a-z0-9_]{1,32}\Z")
CONTENT_TYPE = re.compile(r"[!-~ ]{1,128}\Z")
URL = re.compile(r"https?://[!-~]+\Z")


class CallOutcome(IntEnum):
    """What became of one call to a webhook."""

    DELIVERED = 0
    """Answered by a 2xx."""
    FAILED = 1
    """For now: it is tried again, if it may be."""
    REFUSED = 2
    """For good."""


class Scheduled(Body, frozen=True, tag=112):
    """A message for a conversation, sealed now and delivered later. It takes its number and its stamp when it fires.

    The same id again is answered alike, as long as the schedule is kept.
    """

    said_by = Author.DEVICE
    since = 5
    pace = Pace.SEND
    frees_space = False
    answered_by = (ScheduleTaken,)

    id: str
    tag: bytes
    """Digest of the content, made by the sender: tells a retry from a reused id."""
    kind: Kind
    life_ms: int
    """Drop it this long after it has fired; 0 means the mailbox's own limit."""
    deliver_at: int
    """Milliseconds since 1970."""
    target: PairTarget | GroupTarget
    content: PairContent | GroupContent

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            wrong_id(by, self.id)
            or (len(self.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or (self.life_ms and out_of(self.life_ms, limits.lifetime_ms_min, limits.lifetime_ms, "life_ms"))
            or out_of(self.deliver_at, 0, NUMBER_MAX, "deliver_at")
            or _wrong_target(self.target, self.content)
            or _wrong_content(self.content, limits)
            or None
        )


class Resealed(Body, frozen=True, tag=113):
    """A scheduled message, sealed again: the recipient's devices, or the group, have changed since.

    The device that seals it is its author from then on.
    """

    said_by = Author.DEVICE
    since = 5
    pace = Pace.SEND
    frees_space = False
    answered_by = (ScheduleTaken,)

    id: str
    content: PairContent | GroupContent

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return wrong_schedule(self.id) or _wrong_content(self.content, limits)


class ScheduleCancelled(Body, frozen=True, tag=114):
    """A scheduled message is not to be delivered. If it is cancelled already, that is so."""

    said_by = Author.DEVICE | Author.SERVER
    since = 5
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int
    id: str

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.account, 1, ACCOUNT_MAX, "account") or wrong_schedule(self.id)


class SchedulesAsked(Body, frozen=True, tag=141):
    """How far have the account's schedules with these serials come? A device asks when it was told to look again."""

    said_by = Author.DEVICE
    since = 5
    pace = Pace.ITEM
    frees_space = False
    answered_by = (SchedulesFound,)

    serials: tuple[int, ...]

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        if not 1 <= len(self.serials) <= ASKED_MAX:
            return f"not 1 to {ASKED_MAX} serials"
        return next((wrong for serial in self.serials if (wrong := out_of(serial, 1, NUMBER_MAX, "serial"))), None)


class CallScheduled(Body, frozen=True, tag=115):
    """A call to a webhook, later. The server said it: it has checked that the address is allowed.

    The same idempotency key again is answered alike, with the id of the first request.
    """

    said_by = Author.SERVER
    since = 5
    answered_by = (ScheduleTaken,)

    account: int
    id: str
    """Drawn by the server, unless the client has named one."""
    key: str
    """For idempotency; empty: none, the id alone tells a retry."""
    tag: bytes
    """Digest of the request, made by the server: tells a retry from a reused key or id."""
    deliver_at: int
    url: str
    content_type: str
    content: bytes

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            out_of(self.account, 1, ACCOUNT_MAX, "account")
            or wrong_schedule(self.id)
            or (len(self.key) > KEY_CHARS and f"an idempotency key has at most {KEY_CHARS} characters")
            or (len(self.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or out_of(self.deliver_at, 0, NUMBER_MAX, "deliver_at")
            or (len(self.url) > limits.url_chars and f"a URL has at most {limits.url_chars} characters")
            or (not URL.match(self.url) and "url is no http or https URL")
            or (not CONTENT_TYPE.match(self.content_type) and "content_type is none")
            or (len(self.content) > limits.call_bytes and f"more than {limits.call_bytes} bytes of content")
            or None
        )


class CallEnded(Body, frozen=True, tag=116):
    """What became of a call: the outlet says so."""

    said_by = Author.SERVER
    since = 5
    answered_by = (Done,)

    account: int
    serial: int
    attempt: int
    outcome: CallOutcome
    error: str
    """A word: `http_503`, `timeout`; empty if it was delivered."""
    retry_after_ms: int = 0
    """What the webhook asked for; 0: nothing."""

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        delivered = self.outcome is CallOutcome.DELIVERED
        return (
            out_of(self.account, 1, ACCOUNT_MAX, "account")
            or out_of(self.serial, 1, NUMBER_MAX, "serial")
            or out_of(self.attempt, 1, NUMBER_MAX, "attempt")
            or out_of(self.retry_after_ms, 0, NUMBER_MAX, "retry_after_ms")
            or (delivered is bool(self.error) and "a call that failed names an error, and no other does")
            or (bool(self.error) and not ERROR.match(self.error) and "error is no word")
            or None
        )


__all__ = (
    "CallEnded", "CallOutcome", "CallScheduled", "Resealed", "ScheduleCancelled", "Scheduled", "SchedulesAsked",
)  # fmt: skip
Bodies: TypeAlias = Scheduled | Resealed | ScheduleCancelled | SchedulesAsked | CallScheduled | CallEnded
DeviceBodies: TypeAlias = Scheduled | Resealed | ScheduleCancelled | SchedulesAsked


def wrong_schedule(ident: str) -> Complaint:
    """The id of a scheduled message: any device of the account may have made it."""
    return None if MESSAGE_ID.match(ident) else "not a message id: want device:milliseconds:sequence:random"


def _wrong_target(target: PairTarget | GroupTarget, content: PairContent | GroupContent) -> Complaint:
    if isinstance(target, GroupTarget):
        if not is_group(target.group):
            return "group is not the number of a group"
        return None if isinstance(content, GroupContent) else "what goes to a group is sealed for it"
    if wrong := out_of(target.to, 1, ACCOUNT_MAX, "to"):
        return wrong
    return None if isinstance(content, PairContent) else "what goes to an account is sealed for its devices"


def _wrong_content(content: PairContent | GroupContent, limits: Form) -> Complaint:
    if isinstance(content, PairContent):
        return (
            out_of(content.list_version, 0, NUMBER_MAX, "list_version")
            or enveloped(content.envelopes, limits)
            or enveloped(content.own_envelopes, limits)
        )
    return (
        out_of(content.epoch, 0, NUMBER_MAX, "epoch")
        or (len(content.head) != HEAD_BYTES and f"head is not {HEAD_BYTES} bytes")
        or (len(content.ciphertext) > limits.body_bytes and f"a body of more than {limits.body_bytes} bytes")
        or None
    )
