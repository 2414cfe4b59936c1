from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook as Receiver
from standardwebhooks import WebhookVerificationError

from nightmail.outlets.signing import account_secret, secret_bytes, secret_text, signed
from tests.outlets.hook import SECRET, WRITTEN


def test_a_signature_is_that_of_the_schemes_own_example() -> None:
    secret = secret_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert signed(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_schemes_own_library_takes_a_signature_and_refuses_another_body() -> None:
    headers = signed(SECRET, "d7f3a2b1:1706745600000:00042:x9k2", int(datetime.now(UTC).timestamp()), b'{"a": 1}')
    receiver = Receiver(secret_text(SECRET))
    assert receiver.verify(b'{"a": 1}', headers) == {"a": 1}
    with pytest.raises(WebhookVerificationError):
        receiver.verify(b'{"a": 2}', headers)


def test_a_secret_is_written_with_and_without_its_prefix() -> None:
    assert secret_bytes(WRITTEN) == secret_bytes(WRITTEN.removeprefix("whsec_")) == SECRET
    assert secret_text(SECRET) == WRITTEN
    for bad in (
        "",
        "whsec_",
        "not base64!",
        base64.b64encode(bytes(23)).decode(),
        base64.b64encode(bytes(65)).decode(),
    ):
        with pytest.raises(ValueError):
            secret_bytes(bad)


def test_every_account_has_a_secret_of_its_own() -> None:
    assert account_secret(b"pepper", 1) == account_secret(b"pepper", 1)
    assert len({account_secret(b"pepper", 1), account_secret(b"pepper", 2), account_secret(b"other", 1)}) == 3
