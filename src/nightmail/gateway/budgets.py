"""What accounts, devices and addresses may do over all their connections: a reconnect refills nothing.

Knows:   the recent use of each, which accounts registered recently, and whose keys are few.
Touches: the counters of refusals.
Never:   reads a row: an account's age is known from its registration at this process. One that was registered before
         counts as registered when the process started, so a restart makes nobody older.
"""

from __future__ import annotations

from nightmail.model.ids import DEVICE_BITS
from nightmail.model.records import Claimed, FellowClaimed, KeysAsked, SaidByDevices
from nightmail.wire.networks import networks

from .counters import Counters
from .limits import GatewayLimits
from .rates import Bucket, NetworkRates, Shares, per_minute

COUNTED = 10_000
"""Accounts, devices or addresses whose use is counted, of each kind: some 2 MB. To be forgotten, one must have used
less than others (`rates.py`)."""
REMEMBERED = 100_000
"""Recent registrations, and devices with few keys, that are remembered."""
LOW_MS = 60 * 60_000
"""A device that was low on keys counts as low for this time, in ms."""
LOW_COST = 10
"""A claim from a device that is low costs an address as much as so many others."""


class Budgets:
    def __init__(self, limits: GatewayLimits, counters: Counters, now: int) -> None:
        self._limits, self._counters, self._started = limits, counters, now
        self._sends = Shares(limits.sends_per_s, limits.sends_burst, COUNTED)
        self._items = Shares(limits.items_per_s, limits.items_burst, COUNTED)
        self._received = Shares(limits.bytes_per_s, limits.bytes_burst, COUNTED)
        self._looks = Shares(limits.looks_per_s, limits.looks_burst, COUNTED)
        self._address_looks = Shares(limits.address_looks_per_s, limits.address_looks_burst, COUNTED)
        self._links = per_minute(limits.links_per_minute, COUNTED)
        self._claims = per_minute(limits.claims_per_minute, COUNTED)
        self._young_claims = per_minute(min(limits.young_claims_per_minute, limits.claims_per_minute), COUNTED)
        self._address_claims = NetworkRates(limits.address_claims_per_minute / 60, limits.address_claims_per_minute)
        fellow = limits.address_fellow_claims_per_minute
        self._address_fellow_claims = NetworkRates(fellow / 60, fellow)
        self._fellow_claims = per_minute(limits.fellow_claims_per_minute, COUNTED)
        self._device_claims = per_minute(limits.address_device_claims_per_minute, COUNTED)
        self._registered: dict[int, int] = {}
        """Account → when it registered."""
        self._low: dict[int, int] = {}
        """Device → when its keys became few."""

    # A connection asks for each of its buckets when it first needs it: one that is idle needs only that of its items.

    def sends(self, device: int, now: int) -> Bucket:
        """Messages, of the account."""
        return self._sends.bucket(device >> DEVICE_BITS, now)

    def items(self, device: int, now: int) -> Bucket:
        """Other items, of the device."""
        return self._items.bucket(device, now)

    def received(self, device: int, now: int) -> Bucket:
        """Bytes, of the account."""
        return self._received.bucket(device >> DEVICE_BITS, now)

    def looks(self, device: int, address: str, now: int) -> tuple[Bucket, ...]:
        """Device lists, of the account and of its address."""
        looks = (self._looks.bucket(device >> DEVICE_BITS, now),)
        if address:
            looks += (self._address_looks.bucket(networks(address)[0], now),)
        return looks

    def registered(self, account: int, now: int) -> None:
        """The account is new."""
        _remember(self._registered, account, now)

    def low(self, device: int, now: int) -> None:
        """Few of the device's keys are left."""
        _remember(self._low, device, now)

    def wait_ms(self, device: int, address: str, body: SaidByDevices, now: int) -> int:
        """Take one for a record that is counted by itself. Returns 0, or how long to wait for the next one."""
        if isinstance(body, FellowClaimed):
            if wait_ms := self._fellow_wait_ms(device >> DEVICE_BITS, address, body.device, now):
                self._counters.refuse("claims_limited", address)
        elif type(body) is Claimed:
            if wait_ms := self._claim_wait_ms(device >> DEVICE_BITS, address, body.device, now):
                self._counters.refuse("claims_limited", address)
        elif isinstance(body, KeysAsked):
            if wait_ms := self._many_claims_wait_ms(device >> DEVICE_BITS, address, now):
                self._counters.refuse("claims_limited", address)
        elif wait_ms := self._links.wait_ms(device >> DEVICE_BITS, now):
            self._counters.refuse("links_limited", address)
        return wait_ms

    def _claim_wait_ms(self, account: int, address: str, target: int, now: int) -> int:
        if address:
            if wait_ms := self._target_wait_ms(address, target, now):
                return wait_ms
            if wait_ms := self._address_claims.wait_ms(address, now):
                return wait_ms
        shares = self._young_claims if self._is_young(account, now) else self._claims
        return shares.wait_ms(account, now)

    def _fellow_wait_ms(self, account: int, address: str, target: int, now: int) -> int:
        """A large group has many devices, so there may be many claims; but no more of one device than ever."""
        if address and (wait_ms := self._target_wait_ms(address, target, now)):
            return wait_ms
        return self._many_claims_wait_ms(account, address, now)

    def _many_claims_wait_ms(self, account: int, address: str, now: int) -> int:
        if address and (wait_ms := self._address_fellow_claims.wait_ms(address, now)):
            return wait_ms
        return self._fellow_claims.wait_ms(account, now)

    def _target_wait_ms(self, address: str, target: int, now: int) -> int:
        wide = networks(address)[-1]
        amount = min(LOW_COST, self._limits.address_device_claims_per_minute) if self._is_low(target, now) else 1
        return self._device_claims.wait_ms((wide, target), now, amount)

    def _is_low(self, device: int, now: int) -> bool:
        return (since := self._low.get(device)) is not None and now - since < LOW_MS

    def _is_young(self, account: int, now: int) -> bool:
        return now - self._registered.get(account, self._started) < self._limits.young_ms


def _remember(among: dict[int, int], who: int, now: int) -> None:
    among.pop(who, None)
    among[who] = now
    if len(among) > REMEMBERED:
        del among[next(iter(among))]
