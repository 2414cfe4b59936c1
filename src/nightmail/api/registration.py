"""The routes by which somebody becomes a device, and keeps others from becoming one in their name.

Knows:   what must be shown before a handle is somebody's: a code, a PIN, or nothing.
Touches: the desk, by `DeskClient`.
Never:   decides who may take an account over: the fold does.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request

from nightmail.model.handles import PLUS
from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import HandleClaimed, PinSet, Registered
from nightmail.model.refusals import HandleTaken
from nightmail.model.rows import Account
from nightmail.wire.networks import network

from . import schemas
from .access import Access
from .bodies import read_json
from .desk_client import DeskClient
from .handles import Handles, Named
from .limits import HttpLimits
from .pins import Pins
from .problems import Problem, problem, refused
from .rates import Rate
from .route import ApiRoute
from .skeletons import claim_of
from .times import rfc3339
from .verification import Verification


class Standing(NamedTuple):
    """What exists under a handle, as far as a registration needs to know."""

    device: int = 0
    """The one that asks, if it joined before."""
    list_version: int = 0
    salt: bytes = b""
    """Of the registration lock."""
    is_open: bool = False
    """There is an account, and it is not closed: its handle is claimed already, or was registered without a claim."""
    next_index: int = 1
    """The number that the next device gets."""
    closed_at: int = 0
    """When the account was closed; 0: it is not."""


class RegistrationRoutes:
    def __init__(
        self, desk: DeskClient, access: Access, registrations: Rate, questions: Rate, limits: HttpLimits, pins: Pins,
        verification: Verification | None, on_registered: Callable[[int], None], time: Callable[[], int],
        handle_kept_ms: int,
    ) -> None:  # fmt: skip
        self._desk, self._access, self._limits, self._pins = desk, access, limits, pins
        self._registrations, self._questions = registrations, questions
        self._verification, self._on_registered = verification, on_registered
        self._time, self._handle_kept_ms = time, handle_kept_ms
        self._handles = Handles(desk)

    async def verify(self, request: Request) -> schemas.CodeSent:
        self._questions.take(peer_network(request))
        new = await read_json(request, schemas.NewVerification, self._limits)
        if self._verification is None:
            raise problem("not_found", "this server asks for no codes")
        expires_at = await self._verification.send((await self._handles.name(new.handle)).handle)
        return schemas.CodeSent(expires_at, rfc3339(expires_at))

    async def register(self, request: Request) -> schemas.AccountMade:
        self._registrations.take(peer_network(request))
        new = await read_json(request, schemas.NewAccount, self._limits)
        named = await self._handles.name(new.handle)
        while True:
            try:
                return await self._register(named, new)
            except Problem:
                # Another handle with the same id may have been registered meanwhile: this one has the next.
                before, named = named, await self._handles.name(new.handle)
                if named == before:
                    raise

    async def _register(self, named: Named, new: schemas.NewAccount) -> schemas.AccountMade:
        (handle, account), token = named, bytes.fromhex(new.token_digest)
        standing = await self._standing(account, token, new.registration)
        verified, pin = False, b""
        # A device that joined before has lost the answer, and its code may have expired: it needs none.
        if not standing.device:
            if self._verification:
                self._verification.check(handle, new.code)
                verified = True
            if new.pin_token and standing.salt:
                pin = await self._pins.digest(bytes.fromhex(new.pin_token), standing.salt)
        # A claim ends the release of its handle. So nobody claims a handle that the fold would not give away.
        if standing.closed_at and not verified and self._time() < standing.closed_at + self._handle_kept_ms:
            raise refused(HandleTaken(handle))
        # Every phone number looks different from every other: only names are claimed.
        claim = 0 if handle.startswith(PLUS) else claim_of(handle)
        if claim and not standing.is_open:
            await self._desk.done(SERVER, HandleClaimed(claim, handle, account, standing.next_index))
        joined = await self._desk.join(
            SERVER,
            Registered(
                account, handle, new.registration, token, new.label, schemas.PLATFORMS[new.platform], verified, pin,
                claim,
            ),
        )  # fmt: skip
        self._on_registered(account)
        return schemas.AccountMade(f"{account:x}", f"{joined.device:x}", joined.list_version)

    async def find(self, request: Request) -> schemas.DeviceMade:
        self._questions.take(peer_network(request))
        new = await read_json(request, schemas.FindDevice, self._limits)
        account = (await self._handles.name(new.handle)).account
        standing = await self._standing(account, bytes.fromhex(new.token_digest), new.registration)
        if not standing.device:
            raise problem("not_found", "no device of that handle has this token")
        return schemas.DeviceMade(f"{standing.device:x}", standing.list_version)

    async def _standing(self, account: int, token: bytes, registration: int) -> Standing:
        def view(row: Account | None) -> Standing:
            if row is None:
                return Standing()
            ours = [
                number
                for number, device in row.devices.items()
                if hmac.compare_digest(device.token, token) and device.registration == registration
            ]
            salt, is_open = row.lock.salt if row.lock else b"", bool(row.devices) and not row.closed
            return Standing(ours[0] if ours else 0, row.list_version, salt, is_open, row.next_index, row.closed_at)

        return await self._desk.row(account, view)

    async def set_lock(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, schemas.NewLock, self._limits)
        salt, digest = await self._pins.new(bytes.fromhex(new.pin_token))
        await self._desk.done(device, PinSet(account_of(device), salt, digest))

    async def remove_lock(self, request: Request) -> None:
        device = await self._access.device(request)
        await self._desk.done(device, PinSet(account_of(device), b"", b""))

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST", "/v1/verifications", "anyone", "Have a code sent to a handle's owner", self.verify,
                schemas.NewVerification, schemas.CodeSent, 202,
                ("not_found", "verification_refused", "rate_limited", "not_ready"),
            ),
            ApiRoute(
                "POST", "/v1/accounts", "anyone",
                "Register an account with its first device, or take over one's own with a new device",
                self.register, schemas.NewAccount, schemas.AccountMade, 201,
                (
                    "handle_taken", "handle_confusable", "too_many_devices", "rate_limited", "verification_needed",
                    "verification_wrong", "pin_needed", "pin_wrong", "pin_locked", "not_ready",
                ),
            ),
            ApiRoute(
                "POST", "/v1/devices/find", "anyone", "The device that an older one has linked for this token",
                self.find, schemas.FindDevice, schemas.DeviceMade, 200, ("not_found", "rate_limited"),
            ),
            ApiRoute(
                "PUT", "/v1/lock", "device", "Set the registration lock's PIN", self.set_lock, schemas.NewLock,
                problems=("not_ready",),
            ),
            ApiRoute("DELETE", "/v1/lock", "device", "Remove the registration lock", self.remove_lock),
        ]  # fmt: skip


def peer_network(request: Request) -> str:
    return network(request.client.host if request.client else "")
