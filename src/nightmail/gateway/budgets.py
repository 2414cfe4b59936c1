"""What accounts, devices and addresses may do over all their connections: a reconnect refills nothing.

Knows:   the recent use of each, which accounts registered recently, and whose keys are few.
Touches: the counters of refusals.
Never:   reads a row: an account's age is known from its registration at this process, and a restart forgets it.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.model.ids import DEVICE_BITS
from nightmail.model.records import Claimed, SaidByDevices
from nightmail.wire.networks import networks

from .counters import Counters
from .limits import GatewayLimits
from .rates import Bucket, NetworkRates, Shares, per_minute

COUNTED = 10_000
"""Accounts, devices or addresses whose use is counted, of each kind: some 2 MB. To be forgotten, one must have used
less than all these."""
REMEMBERED = 100_000
"""Recent registrations, and devices with few keys, that are remembered."""
LOW_MS = 60 * 60_000
"""A device that was low on keys counts as low for this time, in ms."""
LOW_COST = 10
"""A claim from a device that is low costs an address as much as so many others."""


class DeviceBudget(NamedTuple):
    """The buckets that one connection takes from."""

    sends: Bucket
    """Of the account."""
    items: Bucket
    """Of the device."""
    received: Bucket
    """Bytes, of the account."""
    looks: tuple[Bucket, ...]
    """Of the account, and of its address."""


class Budgets:
    def __init__(self, limits: GatewayLimits, counters: Counters) -> None:
        self._limits, self._counters = limits, counters
        self._sends = Shares(limits.sends_per_s, limits.sends_burst, COUNTED)
        self._items = Shares(limits.items_per_s, limits.items_burst, COUNTED)
        self._received = Shares(limits.bytes_per_s, limits.bytes_burst, COUNTED)
        self._looks = Shares(limits.looks_per_s, limits.looks_burst, COUNTED)
        self._address_looks = Shares(limits.address_looks_per_s, limits.address_looks_burst, COUNTED)
        self._links = per_minute(limits.links_per_minute, COUNTED)
        self._claims = per_minute(limits.claims_per_minute, COUNTED)
        self._young_claims = per_minute(min(limits.young_claims_per_minute, limits.claims_per_minute), COUNTED)
        self._address_claims = NetworkRates(limits.address_claims_per_minute / 60, limits.address_claims_per_minute)
        self._device_claims = per_minute(limits.address_device_claims_per_minute, COUNTED)
        self._registered: dict[int, int] = {}
        """Account → when it registered."""
        self._low: dict[int, int] = {}
        """Device → when its keys became few."""

    def of(self, device: int, address: str, now: int) -> DeviceBudget:
        account = device >> DEVICE_BITS
        looks = (self._looks.bucket(account, now),)
        if address:
            looks += (self._address_looks.bucket(networks(address)[0], now),)
        return DeviceBudget(
            self._sends.bucket(account, now),
            self._items.bucket(device, now),
            self._received.bucket(account, now),
            looks,
        )

    def registered(self, account: int, now: int) -> None:
        """The account is new."""
        _remember(self._registered, account, now)

    def low(self, device: int, now: int) -> None:
        """Few of the device's keys are left."""
        _remember(self._low, device, now)

    def wait_ms(self, device: int, address: str, body: SaidByDevices, now: int) -> int:
        """Take one for a record that is counted by itself. Returns 0, or how long to wait for the next one."""
        if type(body) is Claimed:
            if wait_ms := self._claim_wait_ms(device >> DEVICE_BITS, address, body.device, now):
                self._counters.refuse("claims_limited", address)
        elif wait_ms := self._links.wait_ms(device >> DEVICE_BITS, now):
            self._counters.refuse("links_limited", address)
        return wait_ms

    def _claim_wait_ms(self, account: int, address: str, target: int, now: int) -> int:
        if address:
            wide = networks(address)[-1]
            amount = min(LOW_COST, self._limits.address_device_claims_per_minute) if self._is_low(target, now) else 1
            if wait_ms := self._device_claims.wait_ms((wide, target), now, amount):
                return wait_ms
            if wait_ms := self._address_claims.wait_ms(address, now):
                return wait_ms
        shares = self._young_claims if self._is_young(account, now) else self._claims
        return shares.wait_ms(account, now)

    def _is_low(self, device: int, now: int) -> bool:
        return (since := self._low.get(device)) is not None and now - since < LOW_MS

    def _is_young(self, account: int, now: int) -> bool:
        return (since := self._registered.get(account)) is not None and now - since < self._limits.young_ms


def _remember(among: dict[int, int], who: int, now: int) -> None:
    among.pop(who, None)
    among[who] = now
    if len(among) > REMEMBERED:
        del among[next(iter(among))]
