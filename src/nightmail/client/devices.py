"""The devices of the own account: linking, renaming and revoking them.

Knows:   that only the primary device vouches for another, and that the server is asked first.
Touches: the machine, which does the rest of the linking by itself (`own_devices/device_linking.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nightmail.client.link.driver import Driver
from nightmail.client.link.http import Http
from nightmail.client.own_devices.device_linking import NOT_PRIMARY, PendingLink
from nightmail.client.own_devices.link_request import LinkRequest
from nightmail.model.handles import spelled

from .errors import Misused
from .waiters import Waiters


class OwnDevice(Struct, frozen=True):
    """A device of this account, as the server describes it."""

    device: int
    label: str
    platform: str
    listed: bool
    """Messages are sealed for it."""
    push: str | None = None
    """By whose service it is woken: ios, android, web or unifiedpush; None: it has no push token."""
    last_seen: int | None = None
    """When it was last connected, in milliseconds since 1970, to half a minute while it is; None: not known."""

    @classmethod
    def of(cls, seen: Mapping[str, Any]) -> OwnDevice:
        return cls(
            int(seen["device"], 16), seen["label"], seen["platform"], seen["listed"], seen.get("push"),
            seen.get("last_seen"),
        )  # fmt: skip


class OwnDevices:
    def __init__(self, handle: str, driver: Driver, http: Http, waiters: Waiters) -> None:
        self._handle, self._driver, self._http, self._waiters = handle, driver, http, waiters

    async def all(self) -> list[OwnDevice]:
        return [OwnDevice.of(each) for each in (await self._http.devices())["devices"]]

    async def link(self, request: LinkRequest | str, *, hand_over: bool = False) -> int:
        """Vouch for a device, and wait until it is provisioned; its number."""
        device = await self.vouch(request, hand_over=hand_over)
        await self._waiters.linked(device)
        return device

    async def vouch(self, request: LinkRequest | str, *, hand_over: bool) -> int:
        request = LinkRequest.parse(request) if isinstance(request, str) else request
        if spelled(request.handle) != spelled(self._handle):
            raise Misused(f"the device asks for {request.handle!r}, not for {self._handle!r}")
        self.check_may_link()
        driver = self._driver
        joined = await self._http.link(request.registration, request.token_digest, request.label, request.platform)
        device = int(joined.device, 16)
        self._waiters.expect(device)
        with driver.working() as machine:
            pending = PendingLink(device, request.registration, request.identity, request.secret, hand_over)
            machine.link(pending, driver.clock())
        await driver.committed()
        return device

    def check_may_link(self) -> None:
        """Raises Misused, with the reason, if this device cannot link others. Nothing was asked of the server then."""
        if not self._driver.is_primary:
            raise Misused(NOT_PRIMARY)

    async def revoke(self, device: int) -> None:
        await self._http.unlink(device)
        driver = self._driver
        with driver.working() as machine:
            machine.forget_own_devices()
            machine.dismiss(device, driver.clock())
            machine.sign_again(driver.clock())

    async def rename(self, device: int, label: str) -> None:
        await self._http.relabel(device, label)
