"""Google's service: a data message, with access that a service account was granted (OAuth 2.0, RFC 7523).

Knows:   what FCM wants to be asked, and what its answers mean.
Never:   opens a connection: `http2.py` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from nightmail.model.push_rows import PushSeen
from nightmail.model.records.pushes import PushOutcome

from . import judging
from .jwt import BadKey, rsa_key, signed_rs256
from .payload import SYNC
from .ports import PushResult
from .requests import ProviderAnswer, PushRequest

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_S = 3_600
EARLY_S = 300
"""Access is renewed so long before it ends."""
NOBODY = "x" * 140


class ServiceAccount(Struct):
    """What Google's console gives as a file."""

    project_id: str
    private_key: str
    client_email: str
    token_uri: str


class _Access(Struct):
    access_token: str
    expires_in: int = 3_600


class _Violation(Struct):
    field: str = ""


class _Detail(Struct, rename="camel"):
    error_code: str = ""
    field_violations: list[_Violation] = []


class _Error(Struct):
    status: str = ""
    details: list[_Detail] = []


class _Errors(Struct):
    error: _Error = msgspec.field(default_factory=_Error)


class NoAccess(Exception):
    """No access was granted."""

    def __init__(self, result: PushResult) -> None:
        self.result = result
        super().__init__(result.error)


class Fcm:
    def __init__(self, server: str, account_file: bytes) -> None:
        """Raises BadKey."""
        try:
            self._account = account = msgspec.json.decode(account_file, type=ServiceAccount)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise BadKey("push.fcm_account_file is no service account in JSON") from None
        self._key = rsa_key(account.private_key.encode(), "the private_key in push.fcm_account_file")
        self._url = f"{server.rstrip('/')}/v1/projects/{account.project_id}/messages:send"
        self._access, self._ends_s = "", 0

    def wants_access(self, now_s: int) -> bool:
        return not self._access or now_s >= self._ends_s - EARLY_S

    async def renew(self, ask: Callable[[PushRequest], Awaitable[ProviderAnswer]], now_s: int) -> None:
        """Raises NoAccess."""
        account = self._account
        claims = {
            "iss": account.client_email, "scope": SCOPE, "aud": account.token_uri, "iat": now_s,
            "exp": now_s + ASSERTION_S,
        }  # fmt: skip
        body = urlencode({"grant_type": GRANT, "assertion": signed_rs256(self._key, claims)}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = await ask(PushRequest(account.token_uri, headers, body))
        if answer.status in (400, 401, 403):
            raise NoAccess(judging.CREDENTIALS)
        result = judging.by_status(answer.status, answer.retry_after, now_s * 1_000)
        if result is not judging.TAKEN:
            raise NoAccess(PushResult(PushOutcome.FAILED, result.error, result.retry_after_ms))
        try:
            access = msgspec.json.decode(answer.body, type=_Access)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NoAccess(judging.GARBAGE) from None
        self._access, self._ends_s = access.access_token, now_s + access.expires_in

    def request(self, seen: PushSeen, user: str) -> PushRequest:
        data = {"type": SYNC, "user_id": user, "queue_depth": str(seen.depth)}
        return self._request({"token": seen.token, "data": data, "android": {"priority": "NORMAL"}})

    def probe(self) -> PushRequest:
        """A push to nobody, to be validated only: whether our credentials are good."""
        return self._request({"token": NOBODY, "data": {"type": SYNC}}, validate_only=True)

    def _request(self, message: dict[str, object], *, validate_only: bool = False) -> PushRequest:
        body: dict[str, object] = {"validate_only": True, "message": message} if validate_only else {"message": message}
        headers = {"authorization": f"Bearer {self._access}", "content-type": "application/json"}
        return PushRequest(self._url, headers, msgspec.json.encode(body))

    def judge(self, answer: ProviderAnswer, now_s: int) -> PushResult:
        error = _error(answer.body) if answer.status >= 400 else _Error()
        codes = {detail.error_code for detail in error.details}
        fields = {violation.field for detail in error.details for violation in detail.field_violations}
        if answer.status == 404 or codes & {"UNREGISTERED", "SENDER_ID_MISMATCH"}:
            return judging.gone(answer.status)
        if answer.status == 400 and "message.token" in fields:
            return judging.gone(answer.status)
        if answer.status in (401, 403):
            self._access = ""
            return judging.CREDENTIALS
        return judging.by_status(answer.status, answer.retry_after, now_s * 1_000)


def _error(body: bytes) -> _Error:
    try:
        return msgspec.json.decode(body, type=_Errors).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Error()
