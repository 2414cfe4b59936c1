"""The HTTP application: routes, health, metrics, and every error as a problem.

Knows:   the routes.
Never:   knows the node: `Surroundings` holds the functions that answer for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route as PathRoute

from nightmail.api.media.blob_client import BlobClient
from nightmail.api.media.limits import MediaLimits
from nightmail.api.media.routes import MediaRoutes
from nightmail.api.media.transfers import Transfers
from nightmail.api.media.upload_routes import UploadRoutes
from nightmail.api.operator.alert_routes import AlertRoutes, AlertsShown
from nightmail.api.operator.clock_routes import ClockRoutes
from nightmail.api.operator.letter_routes import LetterRoutes
from nightmail.api.operator.routes import OperatorRoutes, OperatorView
from nightmail.engine.ports import BlobRecords, Blobs, Desk, Presence, Schedules
from nightmail.model.clock import ClockSeen
from nightmail.model.forms import Form

from . import pages
from .access import Access
from .desk_client import DeskClient
from .limits import HttpLimits
from .openapi import describe
from .pins import Pins
from .problems import NO_STORE, Problem, problem
from .push_routes import PushRoutes, PushService
from .rates import MINUTE_MS, Rate
from .registration import RegistrationRoutes
from .route import ApiRoute
from .routes import AccountRoutes
from .schedule_routes import ScheduleRoutes, Webhooks
from .schemas import Health
from .verification import Codes, Deliver, Verification

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

INDEX = """\
Nightmail: every message exactly once, in order, on every device.

This is version {version}. Devices connect to /v1/connect (WebSocket).

  curl {url}/healthz          is it alive?
  curl {url}/readyz           does it take messages?
  curl {url}/metrics          what is it doing? (Prometheus; for the operator)
  curl {url}/openapi.json     what can be asked of it?

The operations page, for a browser and the operator's token: {url}/ops

Register an account, with the SHA-256 of a token that only the device knows:

  curl {url}/v1/accounts --json '{{"handle": "ada", "label": "phone", "platform": "cli",
    "registration": 1, "token_digest": "'$(printf secret-token-of-32-bytes-or-more | sha256sum | cut -d" " -f1)'"}}'
"""

log = logging.getLogger("nightmail.api")


class MediaService(Struct, frozen=True):
    """What the node hands in for blobs."""

    blobs: Blobs
    records: BlobRecords
    limits: MediaLimits
    most_bytes: int
    """Of one upload, for any purpose."""
    streams: Transfers


class Surroundings(Struct, frozen=True):
    """What the node hands in."""

    desk: Desk
    schedules: Schedules
    webhooks: Webhooks
    pushes: PushService
    presence: Presence | None
    """None: the operator has switched it off."""
    media: MediaService
    form: Form
    limits: HttpLimits
    operator_digest: bytes
    """SHA-256 of the operator's token."""
    secret: bytes
    """The pepper of registration locks, and the key of codes."""
    deliver: Deliver | None
    """How a code is delivered to a handle's owner. None: the first to register a handle has it."""
    open_metrics: bool
    soon: Callable[[], None]
    """Something was submitted: flush at the end of this turn."""
    on_registered: Callable[[int], None]
    """An account was registered, or taken over."""
    clock: Callable[[], int]
    clock_seen: Callable[[], ClockSeen]
    """The machine's clock, and the time that the server goes by."""
    handle_kept_ms: int
    """How long the handle of a closed account is kept for its owner."""
    pace: Callable[[], int]
    not_ready: Callable[[], list[str]]
    """Why the node takes no messages; empty if it does."""
    scrape: Callable[[], bytes]
    alerts: Callable[[], AlertsShown]
    view: OperatorView
    version: str


def app(around: Surroundings) -> Starlette:
    desk = DeskClient(around.desk, around.form, around.limits, around.soon)
    access = Access(desk, around.operator_digest, around.limits.account_requests)
    limits = around.limits
    registrations, questions = (
        Rate(limits.registrations_per_minute, MINUTE_MS, limits.addresses, around.pace) for _ in range(2)
    )
    links, lookups, unknown, scheduling = (
        Rate(most, MINUTE_MS, limits.addresses, around.pace)
        for most in (
            limits.links_per_minute, limits.lookups_per_minute, limits.unknown_per_minute, limits.schedules_per_minute
        )
    )  # fmt: skip
    verification = None
    if around.deliver:
        verification = Verification(Codes(around.secret, around.clock), around.deliver, limits, around.pace)
    pins = Pins(around.secret)
    registering = RegistrationRoutes(
        desk, access, registrations, questions, limits, pins, verification, around.on_registered,
        lambda: around.clock_seen().time_ms, around.handle_kept_ms,
    )  # fmt: skip
    accounts = AccountRoutes(desk, access, links, lookups, unknown, limits, around.presence)
    times = ClockRoutes(desk, access, around.clock_seen)
    schedules = ScheduleRoutes(
        desk, around.schedules, access, scheduling, limits, around.webhooks, lambda: around.clock_seen().time_ms
    )
    letters = LetterRoutes(desk, around.schedules, access, limits)
    pushes = PushRoutes(desk, access, limits, around.pushes)
    media, blobs = around.media, BlobClient(desk, around.media.records, around.media.blobs)
    streams = media.streams
    begun, fetched = (
        Rate(most, MINUTE_MS, limits.addresses, around.pace)
        for most in (media.limits.begun_per_minute, media.limits.fetched_per_minute)
    )
    uploads = UploadRoutes(desk, access, blobs, media.limits, streams, begun, media.most_bytes)
    fetching = MediaRoutes(desk, access, blobs, media.limits, limits, streams, fetched)
    alerts, operating = AlertRoutes(access, around.alerts), OperatorRoutes(desk, access, around.view)
    parts = (registering, accounts, times, schedules, letters, pushes, uploads, fetching, alerts, operating)
    routes = [route for part in parts for route in part.routes()]
    plain = _plain(around, access, routes)
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = _serve(route, access)
    for path, endpoint in plain.items():
        by_path.setdefault(path, {})["GET"] = endpoint
    # A fixed path is tried before one with a parameter, which would match it, too.
    ordered = sorted(by_path.items(), key=lambda item: ("{" in item[0], item[0]))
    return Starlette(
        routes=[PathRoute(path, _dispatch(methods), methods=list(ALL_METHODS)) for path, methods in ordered],
        exception_handlers={Problem: _on_problem, HTTPException: _on_http, Exception: _on_mistake},
    )


Endpoint = Callable[[Request], Awaitable[Response]]

ALL_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _dispatch(methods: dict[str, Endpoint]) -> Endpoint:
    """One path, several methods. Another method is answered with those that there are."""
    if "GET" in methods:
        methods = {"HEAD": methods["GET"], **methods}

    async def endpoint(request: Request) -> Response:
        if found := methods.get(request.method):
            return await found(request)
        wrong = problem("method_not_allowed", f"here one can {', '.join(sorted(methods))}")
        wrong.headers["Allow"] = ", ".join(sorted(methods))
        raise wrong

    return endpoint


def _serve(route: ApiRoute, access: Access) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            said = await route.handler(request)
        finally:
            access.leave(request)
        if isinstance(said, Response):
            return said
        if said is None:
            return Response(status_code=204, headers=NO_STORE)
        return Response(msgspec.json.encode(said), route.status, NO_STORE, "application/json")

    return endpoint


def _plain(around: Surroundings, access: Access, routes: list[ApiRoute]) -> dict[str, Endpoint]:
    """The routes about the node itself."""

    async def index(request: Request) -> Response:
        url = str(request.base_url).rstrip("/")
        return PlainTextResponse(INDEX.format(version=around.version, url=url))

    async def alive(_: Request) -> Response:
        return Response(msgspec.json.encode(Health()), media_type="application/json")

    async def ready(_: Request) -> Response:
        if reasons := around.not_ready():
            raise problem("not_ready", "; ".join(reasons), retry_s=1, fields={"reasons": reasons})
        return Response(msgspec.json.encode(Health()), media_type="application/json")

    async def metrics(request: Request) -> Response:
        if not around.open_metrics:
            access.operator(request)
        return Response(around.scrape(), headers={"Content-Type": METRICS_TYPE, **NO_STORE})

    description = msgspec.json.encode(describe(routes, around.version))

    async def openapi(_: Request) -> Response:
        return Response(description, media_type="application/json")

    return {
        "/": index, "/healthz": alive, "/readyz": ready, "/metrics": metrics, "/openapi.json": openapi,
        pages.PATH: pages.page, pages.PATH + "/{name:path}": pages.page_file,
    }  # fmt: skip


# --- errors -----------------------------------------------------------------------------------


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _on_http(_: Request, error: Exception) -> Response:
    """The only error of Starlette's own that can arrive here: no route."""
    assert isinstance(error, HTTPException)
    return problem("not_found", "there is nothing at this path; see /openapi.json").response()


async def _on_mistake(request: Request, error: Exception) -> Response:
    # Without the request's path: it may name people.
    log.error("a request could not be answered", exc_info=error, extra={"method": request.method})
    return problem("internal", "the server made a mistake; its operator can see which").response()
