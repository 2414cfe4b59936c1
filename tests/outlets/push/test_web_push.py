from __future__ import annotations

import json
from base64 import urlsafe_b64decode

import http_ece
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from nightmail.model.words import PushPlatform
from nightmail.outlets.push.jwt import b64url
from nightmail.outlets.push.web_push import BadSubscription, WebPush

from .rig import APPLE_KEY, pem, seen

NOW_S = 1_750_000_000
BROWSER, AUTH = ec.generate_private_key(ec.SECP256R1()), b"0123456789abcdef"
POINT = BROWSER.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def subscription(point: bytes = POINT, auth: bytes = AUTH) -> str:
    keys = {"p256dh": b64url(point), "auth": b64url(auth)}
    return json.dumps({"endpoint": "https://push.example:8443/send/abc", "expirationTime": None, "keys": keys})


def test_a_browser_alone_can_open_what_is_pushed_to_it() -> None:
    web = WebPush(pem(APPLE_KEY), "mailto:operator@example.org")
    request = web.request(seen(PushPlatform.WEB, subscription(), depth=5), "pseudonym", NOW_S)
    assert request.url == "https://push.example:8443/send/abc"
    opened = http_ece.decrypt(request.body, private_key=BROWSER, auth_secret=AUTH, version="aes128gcm")
    assert json.loads(opened) == {"type": "silent_sync", "user_id": "pseudonym", "queue_depth": 5}
    assert len(request.body) <= 4_096


def test_no_two_pushes_are_sealed_alike() -> None:
    web = WebPush(pem(APPLE_KEY), "mailto:operator@example.org")
    bodies = {web.request(seen(PushPlatform.WEB, subscription()), "p", NOW_S).body for _ in range(3)}
    assert len({body[:16] for body in bodies}) == len({body[21:86] for body in bodies}) == 3


def test_a_push_service_can_tell_who_we_are() -> None:
    web = WebPush(pem(APPLE_KEY), "mailto:operator@example.org")
    headers = web.request(seen(PushPlatform.WEB, subscription()), "pseudonym", NOW_S).headers
    token, key = headers["Authorization"].removeprefix("vapid ").split(", ")
    assert key == f"k={web.public}"
    head, claims, signature = token.removeprefix("t=").split(".")
    assert json.loads(urlsafe_b64decode(claims + "==")) == {
        "aud": "https://push.example:8443", "exp": NOW_S + 43_200, "sub": "mailto:operator@example.org"
    }  # fmt: skip
    raw = urlsafe_b64decode(signature + "==")
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), urlsafe_b64decode(web.public + "=="))
    public.verify(encode_dss_signature(r, s), f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    wanted = {"Content-Encoding": "aes128gcm", "TTL": "86400", "Urgency": "normal", "Topic": "pseudonym"}
    assert wanted.items() <= headers.items()


@pytest.mark.parametrize(
    "token",
    [
        "{}", "{not json}", subscription(point=b"\4" + bytes(64)), subscription(point=POINT[:-1]),
        subscription(auth=b"short"), '{"endpoint":"nowhere","keys":{"p256dh":"!","auth":"?"}}',
    ],
)  # fmt: skip
def test_what_is_no_subscription_is_refused(token: str) -> None:
    with pytest.raises(BadSubscription):
        WebPush(pem(APPLE_KEY), "mailto:x@example.org").request(seen(PushPlatform.WEB, token), "p", NOW_S)
