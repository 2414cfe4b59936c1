"""The routes of messages for later: schedule, look, list, cancel.

Knows:   which record a request is, whose it is, and whether calls to webhooks are allowed.
Touches: the desk, by `DeskClient`.
Never:   decides a race between cancelling and firing: the fold does.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request

from nightmail.engine.ports import Schedules
from nightmail.model.answers import Answer, ScheduleTaken
from nightmail.model.envelopes import Envelope
from nightmail.model.forms import TAG_BYTES
from nightmail.model.ids import DEVICE_BITS, SERVER, MessageId, account_of
from nightmail.model.records import CallScheduled, ScheduleCancelled, Scheduled
from nightmail.model.refusals import UnknownSchedule
from nightmail.model.schedule_rows import GroupContent, GroupTarget, PairContent, PairTarget, ScheduleState

from .access import Access
from .bodies import read_json
from .desk_client import DeskClient
from .handles import Handles
from .limits import HttpLimits
from .problems import malformed, problem, refused
from .queries import number_asked
from .rates import Rate
from .route import ApiRoute
from .schedule_schemas import (
    KINDS,
    STATES,
    Cancelled,
    GroupSealedContent,
    NewSchedule,
    ScheduleMade,
    ScheduleShown,
    SchedulesShown,
    SealedContent,
    SealedEnvelope,
    ToConversation,
    ToWebhook,
    WebhookSecret,
    schedule_shown,
)
from .schemas import device_number
from .times import from_rfc3339, rfc3339

S = TypeVar("S", bound=Struct)

KEY_HEADER = "Idempotency-Key"
PROBLEMS = ("not_yet", "unknown_account", "rate_limited")


DRAWN_MAX = 10**11
"""Sequences of the ids that are drawn here: it begins at a random place, so that no id of before a restart is met."""


class Webhooks(Struct, frozen=True):
    """What the node says about calls to webhooks."""

    allowed: Literal["off", "operator", "accounts"]
    check: Callable[[str], None]
    """Raises ValueError, in a sentence, for an address that could never be called."""
    secret: Callable[[int], str]
    """What the calls of an account are signed with."""


class Asking(Struct, frozen=True):
    """Who asks: a device, or the operator in the name of an account."""

    account: int
    device: int
    """SERVER: the operator."""


class ScheduleRoutes:
    def __init__(
        self, desk: DeskClient, schedules: Schedules, access: Access, rate: Rate, limits: HttpLimits,
        webhooks: Webhooks, time: Callable[[], int],
    ) -> None:  # fmt: skip
        self._desk, self._schedules, self._access, self._rate = desk, schedules, access, rate
        self._limits, self._webhooks, self._time = limits, webhooks, time
        self._handles = Handles(desk)
        self._drawn = secrets.randbelow(DRAWN_MAX)

    async def schedule(self, request: Request) -> ScheduleMade:
        device = await self._access.device_or_operator(request)
        new = await read_json(request, NewSchedule, self._limits, self._limits.schedule_bytes)
        asking = await self._asking(device, new.account)
        self._rate.take(f"{asking.account:x}")
        at = self._moment(new)
        if isinstance(new.target, ToWebhook):
            body = self._call(request, asking, new, new.target.url, at)
            said = await self._desk.record(SERVER, body)
        else:
            if asking.device == SERVER:
                raise problem("forbidden", "only a device can seal a message for a conversation")
            said = await self._desk.record(asking.device, _sealed(new, at))
        return _made(said)

    def _moment(self, new: NewSchedule) -> int:
        if (new.delay_seconds is None) == (new.deliver_at is None):
            raise malformed("either delay_seconds or deliver_at")
        if new.delay_seconds is not None:
            return self._time() + math.ceil(new.delay_seconds * 1_000)
        return moment(new.deliver_at, "deliver_at")

    def _call(self, request: Request, asking: Asking, new: NewSchedule, url: str, at: int) -> CallScheduled:
        allowed = self._webhooks.allowed
        if allowed == "off" or (allowed == "operator" and asking.device != SERVER):
            whom = "nobody" if allowed == "off" else "the operator only"
            raise problem("webhooks_off", f"on this server {whom} may schedule calls to webhooks")
        try:
            self._webhooks.check(url)
        except ValueError as error:
            raise problem("webhook_refused", str(error)) from None
        key = request.headers.get(KEY_HEADER, "")
        if not key.isprintable():
            raise malformed(f"{KEY_HEADER} is not printable")
        content = bytes(new.content)
        if new.message_id and account_of(MessageId.parse(new.message_id).device) != asking.account:
            raise malformed("a message id begins with a device of the account")
        # As it was asked for: the moment of a delay is another one at every retry.
        asked = msgspec.json.encode((url, new.delay_seconds, new.deliver_at, hashlib.sha256(content).hexdigest()))
        tag = hashlib.sha256(asked).digest()[:TAG_BYTES]
        ident = new.message_id or self._draw(asking)
        return CallScheduled(asking.account, ident, key, tag, at, url, "application/json", content)

    def _draw(self, asking: Asking) -> str:
        """An id for a call, by no device of the account. A retry of the request finds it by its idempotency key."""
        self._drawn = (self._drawn + 1) % DRAWN_MAX
        return str(MessageId(self._time(), self._drawn, asking.account << DEVICE_BITS, secrets.token_hex(8)))

    async def scheduled(self, request: Request) -> ScheduleShown:
        asking = await self._asked_by(request)
        ident = _ident(request)

        def ask(then: Callable[[ScheduleShown | None], None]) -> None:
            self._schedules.schedule(
                asking.account, ident, lambda seen: then(schedule_shown(seen) if seen else None)
            )  # fmt: skip

        seen = await self._desk.look(ask)
        if seen is None:
            raise refused(UnknownSchedule(ident))
        return seen

    async def list_scheduled(self, request: Request) -> SchedulesShown:
        asking = await self._asked_by(request)
        state, before = state_asked(request), number_asked(request, "page", "page is what next_page said")

        def ask(then: Callable[[SchedulesShown], None]) -> None:
            self._schedules.schedules(
                asking.account, state, before,
                lambda found: then(
                    SchedulesShown(list(map(schedule_shown, found.schedules)), str(found.before or ""))
                ),
            )  # fmt: skip

        return await self._desk.look(ask)

    async def cancel(self, request: Request) -> Cancelled:
        asking = await self._asked_by(request)
        await self._desk.done(asking.device, ScheduleCancelled(asking.account, _ident(request)))
        return Cancelled()

    async def webhook_secret(self, request: Request) -> WebhookSecret:
        asking = await self._asked_by(request)
        return WebhookSecret(self._webhooks.secret(asking.account))

    async def _asked_by(self, request: Request) -> Asking:
        device = await self._access.device_or_operator(request)
        return await self._asking(device, request.query_params.get("account", ""))

    async def _asking(self, device: int, handle: str) -> Asking:
        if device != SERVER:
            if handle:
                raise malformed("only the operator names an account")
            return Asking(account_of(device), device)
        if not handle:
            raise malformed("name the account in whose name you ask")
        return Asking((await self._handles.name(handle)).account, SERVER)

    def routes(self) -> list[ApiRoute]:
        both, named = "device/operator", ("account",)
        routes = [
            ApiRoute(
                "POST", "/v1/schedule", both, "Have a message delivered later", self.schedule, NewSchedule,
                ScheduleMade, 201,
                (
                    *PROBLEMS, "forbidden", "webhooks_off", "webhook_refused", "id_reused", "key_reused", "time_past",
                    "too_far_ahead", "too_many_schedules", "schedules_full",
                ),
                headers=(KEY_HEADER,),
            ),
            ApiRoute(
                "GET", "/v1/schedule", both, "My scheduled messages, newest first, by state and page",
                self.list_scheduled, None, SchedulesShown, query=("state", "page", *named),
            ),
            ApiRoute(
                "GET", "/v1/schedule/{message_id}", both, "What became of a scheduled message", self.scheduled, None,
                ScheduleShown, 200, ("unknown_schedule",), query=named,
            ),
            ApiRoute(
                "DELETE", "/v1/cancel/{message_id}", both, "Cancel a scheduled message", self.cancel, None, Cancelled,
                200, (*PROBLEMS, "unknown_schedule", "already_sent", "in_progress", "already_ended"), query=named,
            ),
            ApiRoute(
                "GET", "/v1/webhook-secret", both, "What calls of this account are signed with", self.webhook_secret,
                None, WebhookSecret, query=named,
            ),
        ]  # fmt: skip
        aliases = [
            msgspec.structs.replace(route, path=route.path.removeprefix("/v1"), is_alias=True)
            for route in routes
            if route.path in {"/v1/schedule", "/v1/cancel/{message_id}"} and route.method != "GET"
        ]
        return routes + aliases


def moment(given: str | int | None, name: str) -> int:
    """Milliseconds since 1970. Raises a Problem."""
    if isinstance(given, int) and given >= 0:
        return given
    try:
        return from_rfc3339(str(given))
    except ValueError as error:
        raise malformed(f"{name} is {error}") from None


def _sealed(new: NewSchedule, at: int) -> Scheduled:
    if new.message_id is None:
        raise malformed("a message into a conversation has an id of the device's own: message_id")
    if isinstance(new.target, ToConversation):
        pair = _decoded(new.content, SealedContent)
        return Scheduled(
            new.message_id, pair.tag, KINDS[pair.kind], pair.life_ms, at, PairTarget(int(new.target.account, 16)),
            PairContent(pair.list_version, _envelopes(pair.envelopes), _envelopes(pair.own_envelopes)),
        )  # fmt: skip
    assert not isinstance(new.target, ToWebhook)
    group = _decoded(new.content, GroupSealedContent)
    return Scheduled(
        new.message_id, group.tag, KINDS[group.kind], group.life_ms, at, GroupTarget(int(new.target.group, 16)),
        GroupContent(group.epoch, group.head, group.ciphertext),
    )  # fmt: skip


def _decoded(content: msgspec.Raw, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise malformed(f"content: {error}"[:200]) from None


def _envelopes(sealed: list[SealedEnvelope]) -> tuple[Envelope, ...]:
    return tuple(Envelope(device_number(each.device), each.registration, each.ciphertext) for each in sealed)


def _made(said: Answer) -> ScheduleMade:
    assert isinstance(said, ScheduleTaken)
    return ScheduleMade(said.id, said.deliver_at, rfc3339(said.deliver_at))


def _ident(request: Request) -> str:
    ident = request.path_params["message_id"]
    try:
        MessageId.parse(ident)
    except ValueError as error:
        raise malformed(str(error)) from None
    return ident


def state_asked(request: Request) -> ScheduleState | None:
    name = request.query_params.get("state", "")
    if name and name not in STATES:
        raise malformed(f"state is one of {', '.join(STATES)}")
    return STATES[name] if name else None
