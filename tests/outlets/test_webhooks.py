from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from nightmail.outlets.addresses import Allowed
from nightmail.outlets.caller import CallerLimits, HttpCaller
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.thread import ThreadOutlet
from nightmail.outlets.webhooks import Outcome, Webhook, WebhookLimits
from tests.outlets.hook import SECRET, answering

NOW = 1_700_000_000_123
QUICK = WebhookLimits(retry_ms=1, wait_ms=120_000)


async def posting(
    url: str, *bodies: bytes, private: bool = True, limits: WebhookLimits = QUICK, timeout_ms: int = 120_000
) -> list[Outcome]:
    """All at the same time, as a node would: the outlet on a thread, the dispatch on the loop."""
    loop = asyncio.get_running_loop()

    def post_back(callback: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(callback)

    caller = CallerLimits(timeout_ms=timeout_ms)
    outlet = ThreadOutlet(lambda: HttpCaller(Allowed(), caller, lambda: NOW), post_back)
    try:
        webhook = Webhook(url, SECRET, Dispatch(outlet, PlaceLimits(), lambda: 0), private=private, limits=limits)
        return await asyncio.gather(*(webhook.post(body) for body in bodies))
    finally:
        outlet.close()


def post(
    url: str, body: bytes = b"{}", *, private: bool = True, limits: WebhookLimits = QUICK, timeout_ms: int = 120_000
) -> Outcome:
    (outcome,) = asyncio.run(posting(url, body, private=private, limits=limits, timeout_ms=timeout_ms))
    return outcome


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
        ((307,), "failed", 1),
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
        limits = WebhookLimits(retries=0, wait_ms=120_000)
        assert post(f"http://127.0.0.1:{silent.getsockname()[1]}/", limits=limits, timeout_ms=20) == "failed"


def test_nobody_waits_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        limits = WebhookLimits(wait_ms=20)
        assert post(f"http://127.0.0.1:{silent.getsockname()[1]}/", limits=limits) == "failed"


def test_a_crowd_fails_at_once() -> None:
    with answering() as hook:
        crowd = posting(hook.url, b"{}", b"{}", b"{}", limits=WebhookLimits(waiting=2, wait_ms=120_000))
        assert asyncio.run(crowd) == ["sent", "sent", "failed"]
