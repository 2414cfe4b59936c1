"""Requests over HTTP: accounts, devices, the state of a message, scheduled messages, dead letters.

Knows:   the paths below `/v1`, and the form of a problem.
Never:   puts a token into an error. Each request runs in a thread, on a connection of its own.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import ssl
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from nightmail.client.errors import HttpError, Refused, Unreachable, Untrusted
from nightmail.client.limits import ClientLimits
from nightmail.client.own_devices.link_request import token_digest
from nightmail.client.store.rows import Identity
from nightmail.model.words import Platform

from .failures import failure_text


class JoinedDevice(msgspec.Struct, frozen=True):
    device: str
    list_version: int
    account: str = ""


class RegisteredAccount(msgspec.Struct, frozen=True):
    account: str
    handle: str
    list_version: int
    devices: dict[str, int]


class SentCode(msgspec.Struct, frozen=True):
    expires_at: int


class ProblemDetails(msgspec.Struct, frozen=True):
    title: str = ""
    detail: str = ""
    code: str = ""


def bearer(identity: Identity) -> str:
    token = base64.urlsafe_b64encode(identity.token).rstrip(b"=").decode()
    return f"Bearer {identity.device:x}.{token}"


class Http:
    """Asks the first address that answers."""

    def __init__(
        self, addresses: Sequence[str], *, authorization: str = "", tls: ssl.SSLContext | None = None,
        limits: ClientLimits | None = None,
    ) -> None:  # fmt: skip
        self._addresses, self._tls, self._limits = addresses, tls, limits or ClientLimits()
        self._authorization = authorization

    def __repr__(self) -> str:
        return f"<Http to {', '.join(self._addresses)}>"

    # --- accounts -------------------------------------------------------------------------------

    async def verify(self, handle: str) -> int:
        """Have a code sent to the owner of a handle. When it expires, in milliseconds since 1970."""
        said = await self._ask("POST", "/v1/verifications", {"handle": handle}, SentCode)
        return said.expires_at

    async def register(
        self, identity: Identity, label: str, platform: Platform, *, code: str = "", pin_token: bytes = b""
    ) -> JoinedDevice:
        """Register an account and its first device. The same identity again gives the same device.

        With what the server asks for, `code` or `pin_token` or both, this takes over an account that exists, and
        becomes its only device.
        """
        asked = {
            "handle": identity.handle, "label": label, "platform": platform.name.lower(),
            "registration": identity.registration, "token_digest": token_digest(identity),
        }  # fmt: skip
        if code:
            asked["code"] = code
        if pin_token:
            asked["pin_token"] = pin_token.hex()
        return await self._ask("POST", "/v1/accounts", asked, JoinedDevice)

    async def account(self, handle: str) -> RegisteredAccount:
        return await self._ask("GET", f"/v1/accounts/{quote(handle, safe='')}", None, RegisteredAccount)

    async def set_lock(self, pin_token: bytes) -> None:
        """From now on, registering this handle again needs this PIN; see `nightmail.client.profile.pin`."""
        await self._ask("PUT", "/v1/lock", {"pin_token": pin_token.hex()}, Any)

    async def remove_lock(self) -> None:
        await self._ask("DELETE", "/v1/lock", None, Any)

    async def close_account(self) -> None:
        await self._ask("DELETE", "/v1/accounts/me", None, Any)

    # --- devices --------------------------------------------------------------------------------

    async def link(self, registration: int, token_digest: str, label: str, platform: Platform) -> JoinedDevice:
        """Link another device, whose token only that device knows. No one seals for it before it is listed."""
        asked = {
            "registration": registration, "token_digest": token_digest,
            "label": label, "platform": platform.name.lower(),
        }  # fmt: skip
        return await self._ask("POST", "/v1/devices", asked, JoinedDevice)

    async def devices(self) -> dict[str, Any]:
        return await self._ask("GET", "/v1/devices", None, dict[str, Any])

    async def list_devices(self, version: int, devices: Sequence[int], signed: bytes) -> None:
        """Publish the account's next device list. Devices that it no longer names are removed."""
        asked = {
            "version": version, "devices": [f"{device:x}" for device in devices],
            "signed": base64.b64encode(signed).decode(),
        }  # fmt: skip
        await self._ask("PUT", "/v1/devices", asked, Any)

    async def find_device(self, handle: str, registration: int, token_digest: str) -> JoinedDevice | None:
        """The device that was linked for this token; None: none yet. Needs no credentials."""
        asked = {"handle": handle, "registration": registration, "token_digest": token_digest}
        try:
            return await self._ask("POST", "/v1/devices/find", asked, JoinedDevice)
        except Refused as refused:
            if refused.code == "not_found":
                return None
            raise

    async def relabel(self, device: int, label: str) -> None:
        await self._ask("PATCH", f"/v1/devices/{device:x}", {"label": label}, Any)

    async def unlink(self, device: int) -> None:
        """Revoke a device of this account: it is cut off at once."""
        await self._ask("DELETE", f"/v1/devices/{device:x}", None, Any)

    async def set_push(self, platform: str, token: str) -> None:
        """Have this device woken by a push. `platform`: ios, android, web or unifiedpush."""
        await self._ask("PUT", "/v1/push", {"platform": platform, "token": token}, Any)

    async def remove_push(self) -> None:
        await self._ask("DELETE", "/v1/push", None, Any)

    async def test_push(self) -> dict[str, str]:
        """Platform → `ok`, or what is wrong. For operators."""
        return (await self._ask("POST", "/v1/push/test", None, dict[str, dict[str, str]]))["providers"]

    # --- settings -------------------------------------------------------------------------------

    async def block(self, handle: str, *, on: bool = True) -> None:
        await self._ask("PUT" if on else "DELETE", f"/v1/blocks/{quote(handle, safe='')}", None, Any)

    async def set_read_receipts(self, on: bool) -> None:
        await self._ask("PUT", "/v1/settings", {"read_receipts": on}, Any)

    # --- looking --------------------------------------------------------------------------------

    async def message_state(self, message_id: str) -> dict[str, Any]:
        return await self._ask("GET", f"/v1/messages/{quote(message_id, safe='')}", None, dict[str, Any])

    async def trace(self, message_id: str) -> dict[str, Any]:
        """Everything that happened to a message; for operators."""
        return await self._ask("GET", f"/v1/trace/{quote(message_id, safe='')}", None, dict[str, Any])

    async def clock(self) -> dict[str, Any]:
        """The machine's clock and the time that the server goes by; for operators."""
        return await self._ask("GET", "/v1/clock", None, dict[str, Any])

    async def set_clock_back(self) -> dict[str, Any]:
        return await self._ask("POST", "/v1/clock/set-back", None, dict[str, Any])

    # --- scheduled messages -----------------------------------------------------------------------

    async def schedule(self, asked: dict[str, Any], idempotency_key: str) -> dict[str, Any]:
        """Have a message delivered later. A repeat with the same key is answered alike."""
        headers = {"Idempotency-Key": idempotency_key}
        return await self._ask("POST", "/v1/schedule", asked, dict[str, Any], headers)

    async def scheduled(self, message_id: str) -> dict[str, Any]:
        return await self._ask("GET", f"/v1/schedule/{quote(message_id, safe='')}", None, dict[str, Any])

    async def list_scheduled(self, state: str = "", page: str = "") -> dict[str, Any]:
        query = urlencode({name: value for name, value in (("state", state), ("page", page)) if value})
        return await self._ask("GET", f"/v1/schedule?{query}", None, dict[str, Any])

    async def cancel(self, message_id: str) -> None:
        await self._ask("DELETE", f"/v1/cancel/{quote(message_id, safe='')}", None, Any)

    # --- dead letters; for operators --------------------------------------------------------------

    async def letter_classes(self) -> dict[str, Any]:
        return await self._ask("GET", "/v1/dead-letters/classes", None, dict[str, Any])

    async def letters(self, error: str, page: str = "") -> dict[str, Any]:
        query = urlencode({"error": error} | ({"page": page} if page else {}))
        return await self._ask("GET", f"/v1/dead-letters?{query}", None, dict[str, Any])

    async def letter(self, letter: str) -> dict[str, Any]:
        return await self._ask("GET", f"/v1/dead-letters/{quote(letter, safe='')}", None, dict[str, Any])

    async def settle_letter(self, letter: str, how: Literal["replay", "discard"]) -> dict[str, Any]:
        return await self._ask("POST", f"/v1/dead-letters/{quote(letter, safe='')}/{how}", None, dict[str, Any])

    async def settle_letters(self, wanted: dict[str, Any], how: Literal["replay", "discard"]) -> int:
        """Those of an error, of a time, or both. How many it were."""
        return (await self._ask("POST", f"/v1/dead-letters/{how}", wanted, dict[str, Any]))["settled"]

    # --- one request ----------------------------------------------------------------------------

    async def _ask(
        self, method: str, path: str, asked: Any, answer_type: Any, headers: dict[str, str] | None = None
    ) -> Any:
        body = None if asked is None else msgspec.json.encode(asked)
        failure: HttpError = Unreachable("no server address is known")
        for address in self._addresses:
            try:
                status, answer = await asyncio.to_thread(self._exchange, address, method, path, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                failure = unreachable(address, error)
                continue
            if status == http.client.SERVICE_UNAVAILABLE:
                failure = refusal_in(status, answer)
                continue
            if status >= http.client.BAD_REQUEST:
                raise refusal_in(status, answer)
            if answer_type is Any or not answer:
                return None
            try:
                return msgspec.json.decode(answer, type=answer_type)
            except msgspec.DecodeError:
                raise HttpError(f"{address} answered {method} {path} with something else than was agreed") from None
        raise failure

    def _exchange(
        self, address: str, method: str, path: str, body: bytes | None, more_headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection, path = connection_to(address, path, self._tls, self._limits.http_ms)
        headers = {"Accept": "application/json", **more_headers}
        if self._authorization:
            headers["Authorization"] = self._authorization
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read(self._limits.http_bytes + 1)
            if len(answer) > self._limits.http_bytes:
                raise http.client.HTTPException("an answer above the limit")
            return response.status, answer
        finally:
            connection.close()


def connection_to(
    address: str, path: str, tls: ssl.SSLContext | None, ms: int
) -> tuple[http.client.HTTPConnection, str]:
    """A connection that is not open yet, on which nothing takes longer than `ms`; and the path as this address has
    it."""
    parts = urlsplit(address)
    assert parts.hostname
    if parts.scheme == "https":
        context = tls or ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=ms / 1_000, context=context), (
            parts.path + path
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=ms / 1_000), parts.path + path


def unreachable(address: str, error: Exception) -> Unreachable:
    kind = Untrusted if isinstance(error, ssl.SSLCertVerificationError) else Unreachable
    return kind(f"{address} cannot be reached: {failure_text(error)}")


def refusal_in(status: int, answer: bytes) -> Refused:
    """What an answer with an error says."""
    try:
        problem = msgspec.json.decode(answer, type=ProblemDetails)
    except msgspec.DecodeError:
        problem = ProblemDetails()
    title = problem.title or http.client.responses.get(status, "refused")
    return Refused(status, title, problem.detail, problem.code)
