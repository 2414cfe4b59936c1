"""Who asks, and how often they may.

    Authorization: Bearer <device id, hex>.<token, base64url without padding>
    Authorization: Bearer operator.<operator's token>

Knows:   the operator's token as a digest; the addresses that registered of late.
Touches: accounts, to compare a token with what is kept of it.
Never:   keeps or shows a token; tells a stranger which half of it was wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from ipaddress import ip_address

from starlette.requests import Request

from nightmail.model.forms import DEVICE_MAX
from nightmail.model.ids import account_of
from nightmail.model.refusals import RateLimited

from .asking import Asking
from .problems import Problem, problem, refused

OPERATOR = "operator"
CREDENTIAL_CHARS = 512
NOBODY = bytes(32)
"""Compared with where there is no device, so that it takes as long."""
MINUTE_MS = 60_000


class Access:
    def __init__(self, asking: Asking, operator_digest: bytes) -> None:
        self._asking, self._operator = asking, operator_digest

    async def device(self, request: Request) -> int:
        """The device that asks. Raises a Problem for anybody else."""
        name, token = _credentials(request)
        try:
            device, secret = int(name, 16), _unpadded(token)
        except ValueError:
            raise _unauthorized() from None
        if not 0 < device <= DEVICE_MAX or f"{device:x}" != name:
            raise _unauthorized()
        kept = await self._asking.account(
            account_of(device), lambda row: row.devices[device].token if device in row.devices else None
        )
        same = hmac.compare_digest(kept or NOBODY, hashlib.sha256(secret).digest())
        if not same or kept is None:
            raise _unauthorized()
        return device

    def operator(self, request: Request) -> None:
        """Nobody but the operator. Raises a Problem for anybody else."""
        name, token = _credentials(request)
        same = hmac.compare_digest(self._operator, hashlib.sha256(token.encode()).digest())
        if name != OPERATOR or not same:
            raise _unauthorized()


def _credentials(request: Request) -> tuple[str, str]:
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    name, dot, token = credential.strip().partition(".")
    if scheme.lower() != "bearer" or not dot or not token or len(credential) > CREDENTIAL_CHARS:
        raise _unauthorized()
    return name, token


def _unpadded(text: str) -> bytes:
    if not text.isascii() or "=" in text:
        raise ValueError("not base64url without padding")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64url") from error


def _unauthorized() -> Problem:
    return problem("unauthorized", "no such device or operator, or another token")


class Registrations:
    """So many per minute from one address, and as many at once. Full buckets need not be remembered."""

    def __init__(self, per_minute: int, addresses: int, pace: Callable[[], int]) -> None:
        self._most, self._addresses, self._pace = per_minute, addresses, pace
        self._used: dict[str, tuple[float, int]] = {}
        """Address → registrations that count at a time; the one that was quiet longest comes first."""

    def take(self, address: str) -> None:
        """Count one. Raises a Problem if there were too many."""
        if not self._most:
            return
        address, now = _network(address), self._pace()
        used, since = self._used.pop(address, (0.0, now))
        used = max(0.0, used - (now - since) * self._most / MINUTE_MS)
        refusal = None
        if used + 1 > self._most:
            refusal = RateLimited(max(1, int((used + 1 - self._most) * MINUTE_MS / self._most)))
        else:
            used += 1
        self._used[address] = used, now
        if len(self._used) > self._addresses:
            del self._used[next(iter(self._used))]
        if refusal:
            raise refused(refusal)


def _network(address: str) -> str:
    """Whoever has one IPv6 address has a whole /64 of them."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(int(parsed) >> 64)
