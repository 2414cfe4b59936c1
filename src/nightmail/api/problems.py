"""Every error of the HTTP side, as application/problem+json (RFC 9457).

    {"type": "urn:nightmail:problem:handle_taken", "title": …, "status": 409, "detail": …, "code": "handle_taken", …}

Knows:   the HTTP status of each refusal of the fold, and the errors that only HTTP has.
Never:   repeats what a request said, except in a refusal's own fields.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from nightmail.model import refusals as no
from nightmail.model.refusals import AnyRefusal

MEDIA_TYPE = "application/problem+json"
NO_STORE = {"Cache-Control": "no-store"}
"""An answer is for the one who asked, and for now."""

STATUSES: dict[type[AnyRefusal], int] = {
    no.OutOfOrder: 409,
    no.IdReused: 409,
    no.NumberVoided: 410,
    no.UnknownRecipient: 404,
    no.StaleDevices: 409,
    no.MailboxFull: 507,
    no.ShareFull: 507,
    no.AckAboveHead: 409,
    no.HandleTaken: 409,
    no.HandleConfusable: 409,
    no.UnknownAccount: 404,
    no.UnknownDevice: 404,
    no.NotAllowed: 403,
    no.ListConflict: 409,
    no.TooManyBlocked: 422,
    no.TooManyDevices: 422,
    no.TooManyLinked: 422,
    no.NoKeys: 404,
    no.IdentityFixed: 409,
    no.PinNeeded: 403,
    no.PinWrong: 403,
    no.PinLocked: 423,
    no.UnknownGroup: 404,
    no.GroupIdTaken: 409,
    no.StaleGroup: 409,
    no.NotMember: 403,
    no.NotGroupAdmin: 403,
    no.AlreadyMember: 409,
    no.UnknownMember: 404,
    no.RemovesItself: 422,
    no.LastAdmin: 409,
    no.GroupFull: 422,
    no.UnknownSchedule: 404,
    no.AlreadySent: 409,
    no.InProgress: 409,
    no.AlreadyEnded: 409,
    no.TooManySchedules: 422,
    no.SchedulesFull: 422,
    no.TooFarOff: 422,
    no.TimePast: 422,
    no.KeyReused: 422,
    no.UnknownLetter: 404,
    no.LetterSettled: 409,
    no.NotReplayable: 409,
    no.UnknownBlob: 404,
    no.BlobTooLarge: 413,
    no.BlobQuota: 413,
    no.TooManyBlobs: 422,
    no.TooManyUploads: 429,
    no.TooManyAddressed: 422,
    no.BlobUnfinished: 409,
    no.BackupPrivate: 409,
    no.Malformed: 400,
    no.Unavailable: 503,
    no.Overloaded: 503,
    no.DiskFull: 507,
    no.DeadLettered: 500,
    no.RateLimited: 429,
    no.NotYet: 503,
}
"""Refusal → status. A test sees that none is missing."""

RETRY_S = 2
"""`Retry-After`, in seconds, for a refusal that may pass but does not say when."""

HEX_FIELDS = frozenset({"account", "device", "to", "missing", "extra", "rekeyed", "group"})
"""Ids are hex text everywhere in HTTP: a device's id does not fit into a JavaScript number."""


class ProblemKind(NamedTuple):
    """An error that only HTTP has."""

    status: int
    title: str


KINDS: dict[str, ProblemKind] = {
    "unauthorized": ProblemKind(401, "Say who you are"),
    "forbidden": ProblemKind(403, "Not yours"),
    "verification_needed": ProblemKind(403, "Show that the handle is yours"),
    "verification_wrong": ProblemKind(403, "Not the code"),
    "verification_refused": ProblemKind(422, "No code can be sent there"),
    "webhooks_off": ProblemKind(403, "No calls to webhooks"),
    "webhook_refused": ProblemKind(422, "Not an address that is called"),
    "not_found": ProblemKind(404, "There is no such thing"),
    "method_not_allowed": ProblemKind(405, "Not in this way"),
    "too_slow": ProblemKind(408, "The request did not arrive in time"),
    "too_large": ProblemKind(413, "The request is too large"),
    "unsupported_media_type": ProblemKind(415, "The request is not JSON"),
    "wrong_offset": ProblemKind(409, "Another part comes next"),
    "tus_version": ProblemKind(412, "Another version of tus"),
    "range_outside": ProblemKind(416, "Not in the blob"),
    "checksum_mismatch": ProblemKind(460, "Not these bytes"),
    "clock_not_behind": ProblemKind(409, "The clock is not behind"),
    "not_ready": ProblemKind(503, "Not ready"),
    "internal": ProblemKind(500, "A mistake of the server's"),
}


class Problem(Exception):
    """Raised where a request cannot be fulfilled; becomes the response."""

    def __init__(
        self, code: str, status: int, title: str, detail: str, fields: dict[str, Any] | None = None, retry_s: int = 0
    ) -> None:
        super().__init__(detail)
        self.code, self.status, self.title, self.detail = code, status, title, detail
        self.fields, self.retry_s = fields or {}, retry_s
        self.headers: dict[str, str] = {}

    def response(self) -> Response:
        body = {
            "type": f"urn:nightmail:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.fields,
        }
        headers = {**self.headers, **NO_STORE}
        if self.retry_s:
            headers["Retry-After"] = str(self.retry_s)
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Bearer realm="nightmail"'
        return Response(msgspec.json.encode(body), self.status, headers, MEDIA_TYPE)


def problem(code: str, detail: str, *, retry_s: int = 0, fields: dict[str, Any] | None = None) -> Problem:
    """One of `KINDS`."""
    kind = KINDS[code]
    return Problem(code, kind.status, kind.title, detail, fields, retry_s)


def refused(refusal: AnyRefusal) -> Problem:
    """The problem for a refusal by the fold, or by a check before it."""
    fields: dict[str, Any] = {
        field: _hex(value) if field in HEX_FIELDS else value for field, value in msgspec.structs.asdict(refusal).items()
    }
    fields["refusal"] = refusal.code
    retry_s = 0
    if isinstance(refusal, no.RateLimited | no.PinLocked):
        retry_s = max(1, math.ceil(refusal.retry_ms / 1000))
    elif refusal.retry:
        retry_s = RETRY_S
    return Problem(refusal.word, STATUSES[type(refusal)], title_of(type(refusal)), refusal.sentence, fields, retry_s)


def malformed(what: str) -> Problem:
    return refused(no.Malformed(what))


def title_of(kind: type[AnyRefusal]) -> str:
    return kind.word.replace("_", " ").capitalize()


def _hex(value: int | tuple[int, ...]) -> str | list[str]:
    return f"{value:x}" if isinstance(value, int) else [f"{each:x}" for each in value]
