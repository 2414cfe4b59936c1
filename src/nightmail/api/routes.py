"""The routes under /v1, and what each of them does.

Knows:   which record each request is, and who may say it.
Touches: the desk, by `Asking`.
"""

from __future__ import annotations

from starlette.requests import Request

from nightmail.model.ids import MessageId, account_id, account_of
from nightmail.model.records import Blocked, Closed, Linked, Listed, ReceiptsSet, Relabelled, Unlinked

from . import shapes
from .access import Access
from .asking import Asking
from .bodies import read_json
from .limits import HttpLimits
from .problems import malformed, problem
from .rates import Rate
from .registering import checked_handle
from .route import Route
from .shapes import account_seen, devices_seen, message_seen, trace_seen


class Accounts:
    """Requests of devices, and of the operator."""

    def __init__(self, asking: Asking, access: Access, links: Rate, limits: HttpLimits) -> None:
        self._asking, self._access, self._links, self._limits = asking, access, links, limits

    async def look(self, request: Request) -> shapes.AccountSeen:
        await self._access.device(request)
        account = account_id(checked_handle(request.path_params["handle"]))
        if seen := await self._asking.account(account, lambda row: account_seen(account, row)):
            return seen
        raise problem("not_found", "there is no account of that name")

    async def close(self, request: Request) -> None:
        device = await self._access.device(request)
        await self._asking.done(device, Closed(account_of(device)))

    async def link(self, request: Request) -> shapes.DeviceMade:
        device = await self._access.device(request)
        new = await read_json(request, shapes.NewDevice, self._limits)
        self._links.take(f"{account_of(device):x}")
        joined = await self._asking.join(
            device,
            Linked(
                account_of(device), new.registration, bytes.fromhex(new.token_digest), new.label,
                shapes.PLATFORMS[new.platform],
            ),
        )  # fmt: skip
        return shapes.DeviceMade(f"{joined.device:x}", joined.list_version)

    async def devices(self, request: Request) -> shapes.DevicesSeen:
        device = await self._access.device(request)
        account = account_of(device)
        if seen := await self._asking.account(account, lambda row: devices_seen(account, row)):
            return seen
        raise problem("not_found", "the account has ended")

    async def list_devices(self, request: Request) -> shapes.ListSeen:
        device = await self._access.device(request)
        new = await read_json(request, shapes.NewList, self._limits)
        devices = tuple(int(each, 16) for each in new.devices)
        await self._asking.done(device, Listed(account_of(device), new.version, devices, new.signed))
        return shapes.ListSeen(new.version)

    async def unlink(self, request: Request) -> None:
        device = await self._access.device(request)
        await self._asking.done(device, Unlinked(_device(request)))

    async def relabel(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, shapes.NewLabel, self._limits)
        await self._asking.done(device, Relabelled(_device(request), new.label))

    async def block(self, request: Request) -> None:
        await self._block(request, on=True)

    async def unblock(self, request: Request) -> None:
        await self._block(request, on=False)

    async def _block(self, request: Request, *, on: bool) -> None:
        device = await self._access.device(request)
        peer = account_id(checked_handle(request.path_params["handle"]))
        await self._asking.done(device, Blocked(account_of(device), peer, on))

    async def settings(self, request: Request) -> None:
        device = await self._access.device(request)
        new = await read_json(request, shapes.NewSettings, self._limits)
        await self._asking.done(device, ReceiptsSet(account_of(device), new.read_receipts))

    # --- what became of a message -------------------------------------------------------------

    async def message(self, request: Request) -> shapes.MessageSeen:
        own = account_of(await self._access.device(request))
        message = _message(request)
        if account_of(message.device) != own:
            raise problem("forbidden", "only the account that sent a message may ask for its state")
        trace = await self._asking.trace(request.path_params["message_id"])
        if not trace.events:
            raise problem("not_found", "the delivery log knows no such message")
        others = {account_of(device) for device in trace.states} - {own}
        reads = [await self._asking.account(each, lambda row: row.read_receipts) for each in (own, *others)]
        return message_seen(trace, own, reads=all(reads))

    async def trace(self, request: Request) -> shapes.TraceSeen:
        self._access.operator(request)
        _message(request)
        trace = await self._asking.trace(request.path_params["message_id"])
        if not trace.events:
            raise problem("not_found", "the delivery log knows no such message")
        return trace_seen(trace)

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/v1/accounts/{handle:path}", "device", "Whom a message to an account must be sealed for",
                self.look, None, shapes.AccountSeen, 200, ("not_found",),
            ),
            Route("DELETE", "/v1/accounts/me", "device", "End the account and all its devices", self.close),
            Route("GET", "/v1/devices", "device", "The account's devices", self.devices, None, shapes.DevicesSeen),
            Route(
                "POST", "/v1/devices", "device", "Link a further device", self.link, shapes.NewDevice,
                shapes.DeviceMade, 201, ("too_many_devices", "too_many_linked", "rate_limited"),
            ),
            Route(
                "PUT", "/v1/devices", "device", "Publish the account's next device list", self.list_devices,
                shapes.NewList, shapes.ListSeen, 200, ("list_conflict",),
            ),
            Route(
                "PATCH", "/v1/devices/{device}", "device", "Give a device of the account another name", self.relabel,
                shapes.NewLabel, problems=("unknown_device", "not_allowed"),
            ),
            Route(
                "DELETE", "/v1/devices/{device}", "device", "Revoke a device of the account", self.unlink,
                problems=("unknown_device", "not_allowed"),
            ),
            Route(
                "PUT", "/v1/blocks/{handle:path}", "device", "Hear no more from an account", self.block,
                problems=("too_many_blocked",),
            ),
            Route("DELETE", "/v1/blocks/{handle:path}", "device", "Hear from an account again", self.unblock),
            Route(
                "PUT", "/v1/settings", "device", "Read receipts, in both directions, on or off", self.settings,
                shapes.NewSettings,
            ),
            Route(
                "GET", "/v1/messages/{message_id}", "device", "What became of a message that this account sent",
                self.message, None, shapes.MessageSeen, 200, ("forbidden", "not_found"),
            ),
            Route(
                "GET", "/v1/trace/{message_id}", "operator", "A message's whole life", self.trace, None,
                shapes.TraceSeen, 200, ("not_found",),
            ),
        ]  # fmt: skip


def _device(request: Request) -> int:
    try:
        return int(request.path_params["device"], 16)
    except ValueError:
        raise malformed("a device's id is hex") from None


def _message(request: Request) -> MessageId:
    try:
        return MessageId.parse(request.path_params["message_id"])
    except ValueError as error:
        raise malformed(str(error)) from None
