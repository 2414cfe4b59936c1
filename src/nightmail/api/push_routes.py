"""How a device is woken: its push token, and whether the server's providers answer.

Knows:   which platform has which name.
Touches: the desk, and for an operator the providers.
Never:   shows a token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct
from starlette.requests import Request

from nightmail.model.records import PushRemoved, PushSet
from nightmail.model.words import PushPlatform

from .access import Access
from .bodies import read_json
from .desk_client import DeskClient
from .limits import HttpLimits
from .route import ApiRoute

PushPlatformName: TypeAlias = Literal["ios", "android", "web", "unifiedpush"]


class NewPush(Struct, frozen=True, forbid_unknown_fields=True):
    platform: PushPlatformName
    token: str
    """As the platform's service gave it; of a browser, its subscription as JSON."""


class PushKey(Struct, frozen=True):
    web_key: str
    """What a web app subscribes with (VAPID); empty: browsers are not woken by this server."""


class PushTested(Struct, frozen=True):
    providers: dict[str, str]
    """Platform → `ok`, or what is wrong: `bad_credentials`, `unreachable`, `timeout`, `http_400`. Platforms that are
    not set up are left out."""


class PushService(Struct, frozen=True):
    """What the node hands in."""

    probe: Callable[[], Awaitable[dict[str, str]]]
    web_key: str


class PushRoutes:
    def __init__(self, desk: DeskClient, access: Access, limits: HttpLimits, service: PushService) -> None:
        self._desk, self._access, self._limits, self._service = desk, access, limits, service

    async def set_token(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, NewPush, self._limits)
        await self._desk.done(device, PushSet(PushPlatform[new.platform.upper()], new.token))

    async def remove_token(self, request: Request) -> None:
        await self._desk.done(await self._access.device(request), PushRemoved())

    async def key(self, request: Request) -> PushKey:
        await self._access.device(request)
        return PushKey(self._service.web_key)

    async def test(self, request: Request) -> PushTested:
        self._access.operator(request)
        return PushTested(await self._service.probe())

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute("PUT", "/v1/push", "device", "Set how this device is woken", self.set_token, NewPush),
            ApiRoute("DELETE", "/v1/push", "device", "Do not wake this device any more", self.remove_token),
            ApiRoute("GET", "/v1/push", "device", "What a web app subscribes with", self.key, None, PushKey),
            ApiRoute(
                "POST", "/v1/push/test", "operator", "Ask each push provider whether it takes our credentials",
                self.test, None, PushTested,
            ),
        ]  # fmt: skip
