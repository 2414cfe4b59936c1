"""How a device says by HTTP that it is to be woken, and what an operator asks of the providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outlets.hook import answering
from tests.server.rig import Person, Town, message, serving

LOOKS_MAX = 20_000
"""More than a minute's worth."""
WAKES = {"push__unifiedpush": True, "push__grace_ms": 1, "schedule__private_networks": "127.0.0.1"}


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with serving(tmp_path, **WAKES) as town:
        yield town


def push_of(town: Town, who: Person) -> object:
    (device,) = town.get("/v1/devices", who).json["devices"]
    return device["push"]


def test_a_device_sets_replaces_and_removes_its_token_and_sees_that_there_is_one(town: Town) -> None:
    ada = town.register("ada")
    assert push_of(town, ada) is None
    for platform, token in (("unifiedpush", "https://push.example/ada"), ("ios", "ab" * 32)):
        assert town.ask("PUT", "/v1/push", {"platform": platform, "token": token}, auth=ada).status == 204
        assert push_of(town, ada) == platform
    assert [town.ask("DELETE", "/v1/push", auth=ada).status for _ in range(2)] == [204, 204]
    assert push_of(town, ada) is None


@pytest.mark.parametrize(
    "body",
    [
        {"platform": "unifiedpush", "token": "x" * 10_000},
        {"platform": "ios", "token": "https://push.example/"},
        {"platform": "android", "token": "abc"},
        {"platform": "web", "token": "abc"},
        {"platform": "unifiedpush", "token": "abc"},
        {"platform": "fax", "token": "abc"},
        {"platform": "ios"},
    ],
)
def test_what_is_no_token_of_its_platform_is_malformed(town: Town, body: dict[str, str]) -> None:
    ada = town.register("ada")
    refused = town.ask("PUT", "/v1/push", body, auth=ada)
    assert refused.status == 400
    assert len(body.get("token", "")) < 4 or body["token"] not in refused.body.decode()


def test_a_stranger_sets_no_token_and_only_an_operator_tests_providers(town: Town) -> None:
    ada = town.register("ada")
    body = {"platform": "unifiedpush", "token": "https://push.example/"}
    assert [town.ask("PUT", "/v1/push", body).status, town.ask("POST", "/v1/push/test", auth=ada).status] == [401, 401]
    tested = town.ask("POST", "/v1/push/test", auth=town.operator)
    assert (tested.status, tested.json) == (200, {"providers": {"unifiedpush": "ok"}})
    assert town.get("/v1/push", ada).json == {"web_key": ""}


def test_a_message_to_a_device_that_sleeps_calls_its_address(town: Town) -> None:
    ada, bob = town.register("ada"), town.register("bob")
    with answering(200) as hook:
        town.ask("PUT", "/v1/push", {"platform": "unifiedpush", "token": hook.url}, auth=bob)
        town.say(ada.device, message(ada, bob))
        for _ in range(LOOKS_MAX):
            if hook.calls:
                break
            town.get("/healthz")
    (call,) = hook.calls
    assert (call.json["type"], call.json["queue_depth"], len(call.json["user_id"])) == ("silent_sync", 1, 32)
    assert f"{bob.device:x}" not in call.body.decode()
