from __future__ import annotations

import asyncio
import base64
import socket

import pytest

from nightmail.outlets.webhooks import Outcome, Webhook, WebhookLimits, secret_bytes, signed
from tests.outlets.hook import SECRET, WRITTEN, answering

NOW = 1_700_000_000_123
QUICK = WebhookLimits(timeout_ms=2_000, retry_ms=1)


def post(url: str, body: bytes = b"{}", *, private: bool = True, limits: WebhookLimits = QUICK) -> Outcome:
    webhook = Webhook(url, SECRET, lambda: NOW, private=private, limits=limits)
    try:
        return asyncio.run(webhook.post(body))
    finally:
        webhook.close()


def test_a_signature_is_that_of_the_schemes_own_example() -> None:
    secret = secret_bytes("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert signed(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_call_is_signed_and_dated() -> None:
    with answering() as hook:
        assert post(hook.url, b'{"a": 1}') == "sent"
    (call,) = hook.calls
    assert call.is_signed
    assert (call.path, call.json) == ("/codes?to=sms", {"a": 1})
    assert call.headers["webhook-timestamp"] == str(NOW // 1000)
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == f"127.0.0.1:{hook.server_address[1]}"


@pytest.mark.parametrize(
    ("statuses", "outcome", "calls"),
    [
        ((200,), "sent", 1),
        ((503, 204), "sent", 2),
        ((429, 204), "sent", 2),
        ((500, 500), "failed", 2),
        ((404,), "refused", 1),
        ((307,), "failed", 2),
    ],
)
def test_what_may_pass_is_said_once_more_under_the_same_id(
    statuses: tuple[int, ...], outcome: Outcome, calls: int
) -> None:
    with answering(*statuses) as hook:
        assert post(hook.url) == outcome
    assert len(hook.calls) == calls
    assert len({call.headers["webhook-id"] for call in hook.calls}) == 1


def test_an_address_of_this_machine_is_not_called_unless_it_is_allowed() -> None:
    with answering() as hook:
        assert post(hook.url, private=False) == "failed"
    assert hook.calls == []


def test_nobody_there_has_failed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert post(f"http://127.0.0.1:{taken.getsockname()[1]}/") == "failed"


def test_somebody_who_never_answers_has_failed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limits = WebhookLimits(timeout_ms=20, retries=0)
        assert post(f"http://127.0.0.1:{silent.getsockname()[1]}/", limits=limits) == "failed"


def test_a_crowd_fails_at_once() -> None:
    async def crowd(url: str) -> list[Outcome]:
        webhook = Webhook(url, SECRET, lambda: NOW, private=True, limits=WebhookLimits(waiting=2))
        try:
            return await asyncio.gather(*(webhook.post(b"{}") for _ in range(3)))
        finally:
            webhook.close()

    with answering() as hook:
        assert asyncio.run(crowd(hook.url)) == ["sent", "sent", "failed"]


def test_a_secret_is_written_with_and_without_its_prefix() -> None:
    assert secret_bytes(WRITTEN) == secret_bytes(WRITTEN.removeprefix("whsec_")) == SECRET
    for bad in (
        "",
        "whsec_",
        "not base64!",
        base64.b64encode(bytes(23)).decode(),
        base64.b64encode(bytes(65)).decode(),
    ):
        with pytest.raises(ValueError):
            secret_bytes(bad)
