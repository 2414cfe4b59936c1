from __future__ import annotations

import json
import socket
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from urllib.parse import parse_qs

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from nightmail.model.records import PushOutcome
from nightmail.model.words import PushPlatform
from nightmail.outlets.push.apns import Apns
from nightmail.outlets.push.fcm import Fcm
from nightmail.outlets.push.http2 import Http2Limits
from nightmail.outlets.push.jwt import BadKey
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.providers import ProviderSetup

from .rig import APPLE_KEY, GOOGLE_KEY, USER, Provider, pem, probe, push_all, running, seen

IOS, ANDROID = PushPlatform.IOS, PushPlatform.ANDROID
DELIVERED = PushResult(PushOutcome.DELIVERED)
NOW_MS = 1_750_000_000_000


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with running(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


def apple(provider: Provider, limits: Http2Limits | None = None) -> ProviderSetup:
    apns = Apns(provider.url, pem(APPLE_KEY), "KEY4567890", "TEAM567890", "org.example.chat")
    return ProviderSetup(apns=apns, limits=limits or Http2Limits(), ca_pem=provider.ca_pem)


def service_account(provider: Provider, token_path: str = "/token") -> bytes:
    return msgspec.json.encode({
        "type": "service_account", "project_id": "night", "private_key": pem(GOOGLE_KEY).decode(),
        "client_email": "push@night.example", "token_uri": provider.url + token_path,
    })  # fmt: skip


def google(provider: Provider, token_path: str = "/token") -> ProviderSetup:
    return ProviderSetup(fcm=Fcm(provider.url, service_account(provider, token_path)), ca_pem=provider.ca_pem)


def parts(jwt: str) -> tuple[dict[str, object], dict[str, object], bytes, bytes]:
    """Header, claims, what is signed, and the signature."""
    head, claims, signature = jwt.split(".")
    read = [json.loads(urlsafe_b64decode(part + "==")) for part in (head, claims)]
    return read[0], read[1], f"{head}.{claims}".encode(), urlsafe_b64decode(signature + "==")


def test_apple_is_asked_as_it_wants_to_be(provider: Provider) -> None:
    token = "ab12" * 15 + "c0de"
    assert push_all(apple(provider), seen(IOS, token), now_ms=NOW_MS) == [DELIVERED]
    (asked,) = provider.asked(f"/3/device/{token}")
    body, headers = bytes.fromhex(asked["body"]), asked["headers"]
    assert (asked["method"], asked["version"]) == ("POST", "2")
    assert json.loads(body) == {"aps": {"content-available": 1}, "user_id": USER, "queue_depth": 3}
    assert len(body) <= 4_096
    wanted = {"apns-push-type": "background", "apns-priority": "5", "apns-topic": "org.example.chat"}
    assert wanted.items() <= headers.items()
    assert headers["apns-expiration"] == str(NOW_MS // 1_000 + 86_400)
    head, claims, signed, signature = parts(headers["authorization"].removeprefix("bearer "))
    assert (head, claims) == ({"alg": "ES256", "kid": "KEY4567890"}, {"iss": "TEAM567890", "iat": NOW_MS // 1_000})
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    APPLE_KEY.public_key().verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize(
    ("token", "result"),
    [
        ("a410", PushResult(PushOutcome.GONE, "http_410")),
        ("a400", PushResult(PushOutcome.GONE, "http_400")),
        ("a4000", PushResult(PushOutcome.REFUSED, "http_400")),
        ("a403", PushResult(PushOutcome.FAILED, "bad_credentials")),
        ("a429", PushResult(PushOutcome.FAILED, "http_429", 7_000)),
        ("a503", PushResult(PushOutcome.FAILED, "http_503")),
    ],
)
def test_what_apple_answers_means_what_it_should(provider: Provider, token: str, result: PushResult) -> None:
    assert push_all(apple(provider), seen(IOS, token)) == [result]


def test_a_provider_that_hangs_is_given_up(provider: Provider) -> None:
    hasty = apple(provider, Http2Limits(timeout_ms=300))
    assert push_all(hasty, seen(IOS, "dead")) == [PushResult(PushOutcome.FAILED, "timeout")]


def test_a_provider_that_answers_garbage_and_one_that_is_not_there_have_failed(provider: Provider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rubbish:

        def answer() -> None:
            connection, _ = rubbish.accept()
            with connection:
                connection.sendall(b"\x00rubbish" * 100)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        elsewhere = Provider(rubbish.getsockname()[1], provider.ca_pem, provider._log)
        (result,) = push_all(apple(elsewhere), seen(IOS, "ab12"))
        thread.join()
    assert result == PushResult(PushOutcome.FAILED, "unreachable")
    (result,) = push_all(apple(elsewhere), seen(IOS, "ab12"))
    assert result == PushResult(PushOutcome.FAILED, "unreachable")


def test_a_certificate_that_nobody_vouches_for_is_not_believed(provider: Provider) -> None:
    setup = msgspec.structs.replace(apple(provider), ca_pem=b"")
    assert push_all(setup, seen(IOS, "ab12")) == [PushResult(PushOutcome.FAILED, "unreachable")]


def test_google_is_asked_as_it_wants_to_be_with_access_that_is_granted_once(provider: Provider) -> None:
    tokens = ["android-token-" + "z" * 30 + str(n) for n in range(2)]
    assert push_all(google(provider), *(seen(ANDROID, token) for token in tokens), now_ms=NOW_MS) == [DELIVERED] * 2
    assertions = [parse_qs(bytes.fromhex(asked["body"]).decode()) for asked in provider.asked("/token")]
    (granted,) = [each for each in assertions if parts(each["assertion"][0])[1]["iat"] == NOW_MS // 1_000]
    assert granted["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    head, claims, signed, signature = parts(granted["assertion"][0])
    assert head == {"alg": "RS256", "typ": "JWT"}
    assert claims == {
        "iss": "push@night.example", "scope": "https://www.googleapis.com/auth/firebase.messaging",
        "aud": f"{provider.url}/token", "iat": NOW_MS // 1_000, "exp": NOW_MS // 1_000 + 3_600,
    }  # fmt: skip
    GOOGLE_KEY.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    (asked,) = provider.asked(tokens[0])
    assert (asked["path"], asked["version"]) == ("/v1/projects/night/messages:send", "2")
    assert asked["headers"]["authorization"] == "Bearer granted"
    assert json.loads(bytes.fromhex(asked["body"])) == {
        "message": {
            "token": tokens[0], "data": {"type": "silent_sync", "user_id": USER, "queue_depth": "3"},
            "android": {"priority": "NORMAL"},
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("token", "result"),
    [
        ("x404", PushResult(PushOutcome.GONE, "http_404")),
        ("x400", PushResult(PushOutcome.GONE, "http_400")),
        ("x4000", PushResult(PushOutcome.REFUSED, "http_400")),
        ("x401", PushResult(PushOutcome.FAILED, "bad_credentials")),
        ("x429", PushResult(PushOutcome.FAILED, "http_429", 9_000)),
    ],
)
def test_what_google_answers_means_what_it_should(provider: Provider, token: str, result: PushResult) -> None:
    assert push_all(google(provider), seen(ANDROID, token)) == [result]


def test_an_account_that_google_does_not_know_any_more_is_said_so(provider: Provider) -> None:
    setup = google(provider, "/refusing-token")
    assert push_all(setup, seen(ANDROID, "x" * 40)) == [PushResult(PushOutcome.FAILED, "bad_credentials")]
    assert probe(setup) == {"android": "bad_credentials"}


def test_the_self_test_says_whether_credentials_are_taken(provider: Provider) -> None:
    both = msgspec.structs.replace(google(provider), apns=apple(provider).apns)
    assert probe(both) == {"ios": "ok", "android": "ok"}


def test_a_platform_that_is_not_set_up_is_said_to_be_so() -> None:
    for platform in PushPlatform:
        assert push_all(ProviderSetup(), seen(platform, "x")) == [PushResult(PushOutcome.REFUSED, "not_set_up")]


def test_a_file_that_is_no_key_is_refused_in_a_sentence_without_its_content(provider: Provider) -> None:
    with pytest.raises(BadKey, match=r"^push\.apns_key_file is no private key in PEM"):
        Apns(provider.url, b"very secret", "k", "t", "x")
    with pytest.raises(BadKey, match=r"^push\.apns_key_file is no private key of the curve P-256"):
        Apns(provider.url, pem(GOOGLE_KEY), "k", "t", "x")
    with pytest.raises(BadKey, match=r"^push\.fcm_account_file is no service account in JSON"):
        Fcm(provider.url, b"very secret")
