"""Apple's service: a background push, with a token that our key has signed.

Knows:   what APNs wants to be asked, and what its answers mean.
Never:   opens a connection: `http2.py` does.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nightmail.model.push_rows import PushSeen

from . import judging
from .jwt import RenewedToken, ec_key, signed_es256
from .ports import PushResult
from .requests import ProviderAnswer, PushRequest

TOKEN_S = 40 * 60
"""Apple takes a token for an hour, and wants no new one within 20 minutes."""
YOUNGEST_S = 20 * 60
LIFE_S = 24 * 60 * 60
"""How long Apple keeps a push for a device that is off. The server repeats it in any case."""
TOKEN_GONE = frozenset({"BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken"})
NOBODY = "0" * 64


class _Reason(Struct):
    reason: str = ""


class Apns:
    def __init__(self, server: str, key_pem: bytes, key_id: str, team: str, topic: str) -> None:
        """Raises BadKey."""
        key = ec_key(key_pem, "push.apns_key_file")
        self._server, self._topic = server.rstrip("/"), topic
        self._token = RenewedToken(lambda now: signed_es256(key, {"iss": team, "iat": now}, key_id), TOKEN_S)

    def request(self, seen: PushSeen, user: str, now_s: int) -> PushRequest:
        body = {"aps": {"content-available": 1}, "user_id": user, "queue_depth": seen.depth}
        return self._request(seen.token, msgspec.json.encode(body), now_s)

    def probe(self, now_s: int) -> PushRequest:
        """A push to nobody: whether our credentials are good."""
        return self._request(NOBODY, b'{"aps":{"content-available":1}}', now_s)

    def _request(self, token: str, body: bytes, now_s: int) -> PushRequest:
        headers = {
            "authorization": f"bearer {self._token.get(now_s)}",
            "apns-topic": self._topic,
            "apns-push-type": "background",
            "apns-priority": "5",
            "apns-expiration": str(now_s + LIFE_S),
            "content-type": "application/json",
        }
        return PushRequest(f"{self._server}/3/device/{token}", headers, body)

    def judge(self, answer: ProviderAnswer, now_s: int) -> PushResult:
        reason = _reason(answer.body)
        if answer.status == 410 or reason in TOKEN_GONE:
            return judging.gone(answer.status)
        if answer.status == 403:
            self._token.refused(now_s, YOUNGEST_S)
            return judging.CREDENTIALS
        return judging.by_status(answer.status, answer.retry_after, now_s * 1_000)


def _reason(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Reason).reason
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
