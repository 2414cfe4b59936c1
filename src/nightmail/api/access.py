"""Authentication: which device asks, or the operator.

    Authorization: Bearer <device id, hex>.<token, base64url without padding>
    Authorization: Bearer operator.<operator's token>

Knows:   the operator's token as a digest; how many requests of each account are under way.
Touches: accounts, to compare a token with its stored digest.
Never:   keeps or shows a token; tells which half of a credential was wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import Counter

from starlette.requests import Request

from nightmail.model.forms import DEVICE_MAX
from nightmail.model.ids import SERVER, account_of
from nightmail.model.refusals import RateLimited

from .desk_client import DeskClient
from .problems import Problem, problem, refused
from .schemas import device_number

OPERATOR = "operator"
CREDENTIAL_CHARS = 512
BUSY_MS = 1_000
"""An account that asks too much at once is told to wait this long."""
NOBODY = bytes(32)
"""Compared with if there is no such device, so that the answer takes as long."""


class Access:
    def __init__(self, desk: DeskClient, operator_digest: bytes, account_requests: int) -> None:
        self._desk, self._operator, self._most = desk, operator_digest, account_requests
        self._under_way: Counter[int] = Counter()
        """Account → its requests that are not answered yet."""

    async def device(self, request: Request) -> int:
        """The device that asks. Raises a Problem for anybody else, and if its account asks too much at once."""
        name, token = _credentials(request)
        try:
            device, secret = device_number(name), _unpadded(token)
        except ValueError:
            raise _unauthorized() from None
        if not 0 < device <= DEVICE_MAX:
            raise _unauthorized()
        kept = await self._desk.account(
            account_of(device), lambda row: row.devices[device].token if device in row.devices else None
        )
        same = hmac.compare_digest(kept or NOBODY, hashlib.sha256(secret).digest())
        if not same or kept is None:
            raise _unauthorized()
        account = account_of(device)
        if self._under_way[account] >= self._most:
            raise refused(RateLimited(BUSY_MS))
        self._under_way[account] += 1
        request.state.account = account
        return device

    async def device_or_operator(self, request: Request) -> int:
        """The device that asks; SERVER: the operator. Raises a Problem for anybody else."""
        if _credentials(request)[0] == OPERATOR:
            self.operator(request)
            return SERVER
        return await self.device(request)

    def leave(self, request: Request) -> None:
        """The request is answered."""
        if (account := getattr(request.state, "account", None)) is not None:
            self._under_way[account] -= 1
            if not self._under_way[account]:
                del self._under_way[account]

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
