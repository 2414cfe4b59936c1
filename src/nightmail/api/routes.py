"""The routes under /v1, and what each of them does.

Knows:   which record each request is, and who may say it.
Touches: the desk, by `DeskClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from starlette.requests import Request

from nightmail.engine.ports import Failed, Presence
from nightmail.model.ids import MessageId, account_of
from nightmail.model.records import Blocked, Closed, Linked, Listed, ReceiptsSet, Relabelled, Unlinked

from . import schemas
from .access import Access
from .bodies import read_json
from .desk_client import DeskClient
from .handles import Handles
from .limits import HttpLimits
from .problems import malformed, problem
from .rates import Rate
from .registration import peer_network
from .route import ApiRoute
from .schemas import account_seen, device_number, devices_seen, group_message_seen, message_seen, trace_seen


class AccountRoutes:
    """Requests of devices, and of the operator."""

    def __init__(
        self, desk: DeskClient, access: Access, links: Rate, lookups: Rate, unknown: Rate, limits: HttpLimits,
        presence: Presence | None,
    ) -> None:  # fmt: skip
        self._desk, self._access, self._links, self._limits = desk, access, links, limits
        self._lookups, self._unknown, self._presence = lookups, unknown, presence
        self._handles = Handles(desk)

    async def look(self, request: Request) -> schemas.AccountSeen:
        asking = f"{account_of(await self._access.device(request)):x}"
        guessers = asking, peer_network(request)
        for each in guessers:
            self._unknown.check(each)
        self._lookups.take(asking)
        account = (await self._handles.name(request.path_params["handle"])).account
        if seen := await self._desk.account(account, lambda row: account_seen(account, row)):
            return seen
        for each in guessers:
            self._unknown.take(each)
        raise problem("not_found", "there is no account of that name")

    async def close(self, request: Request) -> None:
        device = await self._access.device(request)
        await self._desk.done(device, Closed(account_of(device)))

    async def link(self, request: Request) -> schemas.DeviceMade:
        device = await self._access.device(request)
        new = await read_json(request, schemas.NewDevice, self._limits)
        self._links.take(f"{account_of(device):x}")
        joined = await self._desk.join(
            device,
            Linked(
                account_of(device), new.registration, bytes.fromhex(new.token_digest), new.label,
                schemas.PLATFORMS[new.platform],
            ),
        )  # fmt: skip
        return schemas.DeviceMade(f"{joined.device:x}", joined.list_version)

    async def devices(self, request: Request) -> schemas.DevicesSeen:
        device = await self._access.device(request)
        account = account_of(device)
        devices = await self._desk.account(account, lambda row: list(row.devices))
        pushes = await self._desk.push_platforms(devices or [device])
        last_seen = await self._last_seen(devices or [device])
        if seen := await self._desk.account(account, lambda row: devices_seen(account, row, pushes, last_seen)):
            return seen
        raise problem("not_found", "the account has ended")

    async def _last_seen(self, devices: Sequence[int]) -> Mapping[int, int]:
        """Nothing where presence is switched off or cannot be read: the list of devices does not depend on it."""
        if (presence := self._presence) is None:
            return {}

        def ask(then: Callable[[Mapping[int, int] | Failed], None]) -> None:
            presence.devices_seen(devices, then)

        found = await self._desk.look(ask)
        return {} if isinstance(found, Failed) else found

    async def list_devices(self, request: Request) -> schemas.ListSeen:
        device = await self._access.device(request)
        new = await read_json(request, schemas.NewList, self._limits)
        devices = tuple(_device(each) for each in new.devices)
        await self._desk.done(device, Listed(account_of(device), new.version, devices, new.signed))
        return schemas.ListSeen(new.version)

    async def unlink(self, request: Request) -> None:
        device = await self._access.device(request)
        await self._desk.done(device, Unlinked(_device(request.path_params["device"])))

    async def relabel(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, schemas.NewLabel, self._limits)
        await self._desk.done(device, Relabelled(_device(request.path_params["device"]), new.label))

    async def block(self, request: Request) -> None:
        await self._block(request, on=True)

    async def unblock(self, request: Request) -> None:
        await self._block(request, on=False)

    async def _block(self, request: Request, *, on: bool) -> None:
        device = await self._access.device(request)
        peer = (await self._handles.name(request.path_params["handle"])).account
        await self._desk.done(device, Blocked(account_of(device), peer, on))

    async def settings(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, schemas.NewSettings, self._limits)
        await self._desk.done(device, ReceiptsSet(account_of(device), new.read_receipts))

    # --- what became of a message -------------------------------------------------------------

    async def message(self, request: Request) -> schemas.MessageSeen:
        device = await self._access.device(request)
        own = account_of(device)
        message = _message(request)
        if account_of(message.device) != own:
            raise problem("forbidden", "only the account that sent a message may ask for its state")
        trace = await self._desk.trace(request.path_params["message_id"])
        if not trace.events:
            raise problem("not_found", "the delivery log knows no such message")
        if trace.group:
            return group_message_seen(trace, own, await self._desk.group_receipts(device, trace.group))
        others = {account_of(device) for device in trace.states} - {own}
        reads = [await self._desk.account(own, lambda row: row.read_receipts)]
        reads += [
            await self._desk.account(each, lambda row: row.read_receipts and own not in row.blocked) for each in others
        ]
        return message_seen(trace, own, reads=all(reads))

    async def trace(self, request: Request) -> schemas.TraceSeen:
        self._access.operator(request)
        _message(request)
        trace = await self._desk.trace(request.path_params["message_id"])
        if not trace.events:
            raise problem("not_found", "the delivery log knows no such message")
        return trace_seen(trace)

    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET", "/v1/accounts/{handle:path}", "device", "Whom a message to an account must be sealed for",
                self.look, None, schemas.AccountSeen, 200, ("not_found", "rate_limited"),
            ),
            ApiRoute("DELETE", "/v1/accounts/me", "device", "End the account and all its devices", self.close),
            ApiRoute("GET", "/v1/devices", "device", "The account's devices", self.devices, None, schemas.DevicesSeen),
            ApiRoute(
                "POST", "/v1/devices", "device", "Link another device", self.link, schemas.NewDevice,
                schemas.DeviceMade, 201, ("too_many_devices", "too_many_linked", "rate_limited"),
            ),
            ApiRoute(
                "PUT", "/v1/devices", "device", "Publish the account's next device list", self.list_devices,
                schemas.NewList, schemas.ListSeen, 200, ("list_conflict",),
            ),
            ApiRoute(
                "PATCH", "/v1/devices/{device}", "device", "Give a device of the account another name", self.relabel,
                schemas.NewLabel, problems=("unknown_device", "not_allowed"),
            ),
            ApiRoute(
                "DELETE", "/v1/devices/{device}", "device", "Revoke a device of the account", self.unlink,
                problems=("unknown_device", "not_allowed"),
            ),
            ApiRoute(
                "PUT", "/v1/blocks/{handle:path}", "device", "Hear no more from an account", self.block,
                problems=("too_many_blocked",),
            ),
            ApiRoute("DELETE", "/v1/blocks/{handle:path}", "device", "Hear from an account again", self.unblock),
            ApiRoute(
                "PUT", "/v1/settings", "device", "Read receipts, in both directions, on or off", self.settings,
                schemas.NewSettings,
            ),
            ApiRoute(
                "GET", "/v1/messages/{message_id}", "device", "What became of a message that this account sent",
                self.message, None, schemas.MessageSeen, 200, ("forbidden", "not_found"),
            ),
            ApiRoute(
                "GET", "/v1/trace/{message_id}", "operator", "A message's whole life", self.trace, None,
                schemas.TraceSeen, 200, ("not_found",),
            ),
        ]  # fmt: skip


def _device(text: str) -> int:
    try:
        return device_number(text)
    except ValueError:
        raise malformed("a device's id is lower-case hex without leading zeros") from None


def _message(request: Request) -> MessageId:
    try:
        return MessageId.parse(request.path_params["message_id"])
    except ValueError as error:
        raise malformed(str(error)) from None
