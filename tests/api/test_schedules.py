"""Messages for later, over HTTP: what is taken, what is refused, and what a receiver gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Receiver

from nightmail.core.state import NEWEST_FOLD
from tests.outlets.hook import Hook, answering
from tests.server.rig import WAIT_S, Person, Reply, Town, message, serving

FAR = 366 * 24 * 60 * 60
ALLOWED: dict[str, Any] = {"schedule__webhooks": "accounts", "schedule__private_networks": "127.0.0.1"}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folder = tmp_path_factory.mktemp("node")
    with serving(folder, NEWEST_FOLD, http__registrations_per_minute=0, **ALLOWED) as made:
        yield made


@pytest.fixture(scope="module")
def ada(town: Town) -> Person:
    return town.register("ada")


@pytest.fixture(scope="module")
def bob(town: Town) -> Person:
    return town.register("bob")


def schedule(town: Town, by: Person | str, url: str = "http://127.0.0.1:9/", **fields: Any) -> Reply:
    headers = fields.pop("headers", {})
    body = {"content": {"a": 1}, "target": {"type": "webhook", "url": url}, "delay_seconds": 3_600, **fields}
    body = {name: value for name, value in body.items() if value is not None}
    return town.ask("POST", "/v1/schedule", body, auth=by, **headers)


def taken(reply: Reply) -> str:
    assert reply.status == 201, reply
    return reply.json["message_id"]


def until(town: Town, by: Person, ident: str, *states: str) -> dict[str, Any]:
    """What is shown of a schedule once it has one of these states. Asks as a person would: again and again."""
    patience, seen = threading.Event(), dict[str, Any]()
    for _ in range(WAIT_S * 50):
        seen = town.get(f"/v1/schedule/{ident}", by).json
        if seen["state"] in states:
            return seen
        patience.wait(0.02)
    raise AssertionError(seen)


def code(reply: Reply) -> tuple[int, str]:
    assert reply.headers["Content-Type"] == "application/problem+json", reply
    return reply.status, reply.json["code"]


# --- calling ----------------------------------------------------------------------------------


def test_a_receiver_gets_the_content_once_its_time_has_come_signed_with_the_accounts_secret(
    town: Town, ada: Person
) -> None:
    with answering() as hook:
        ident = taken(schedule(town, ada, hook.url, content={"é": [1, 2.5, None]}, delay_seconds=0))
        seen = until(town, ada, ident, "delivered")
    (call,) = hook.calls
    secret = town.get("/v1/webhook-secret", ada).json["secret"]
    assert Receiver(secret).verify(call.body, call.headers) == {"é": [1, 2.5, None]}
    assert call.headers["webhook-id"] == ident
    assert (seen["target"], seen.get("retry_count", 0)) == ({"type": "webhook", "url": hook.url}, 0)
    assert call.headers["content-type"] == "application/json"


def test_what_the_receiver_refuses_has_failed_at_once_and_is_a_dead_letter(town: Town, ada: Person) -> None:
    with answering(404) as hook:
        ident = taken(schedule(town, ada, hook.url, delay_seconds=0))
        seen = until(town, ada, ident, "failed")
    assert (seen["error"], len(hook.calls)) == ("http_404", 1)
    assert code(town.ask("DELETE", f"/v1/cancel/{ident}", auth=ada)) == (409, "already_ended")
    (letter,) = town.get("/v1/dead-letters?error=webhook%20http_404", town.operator).json["letters"]
    assert letter["original_message"]["msg_id"] == ident
    assert (letter["error_class"], letter["status"], letter["replayable"]) == ("webhook http_404", "waiting", True)


def test_what_fails_for_now_is_tried_again_under_the_same_id(town: Town, ada: Person) -> None:
    with answering(503, 204) as hook:
        ident = taken(schedule(town, ada, hook.url, delay_seconds=0))
        seen = until(town, ada, ident, "delivered")
    assert seen["retry_count"] == 1
    assert [call.headers["webhook-id"] for call in hook.calls] == [ident, ident]


def test_a_receiver_that_hangs_slows_nobody_else(town: Town, ada: Person, bob: Person) -> None:
    with answering() as quick, Hanging() as hanging:
        hung = [taken(schedule(town, bob, hanging.url, delay_seconds=0)) for _ in range(5)]
        assert hanging.asked.wait(WAIT_S)
        until(town, ada, taken(schedule(town, ada, quick.url, delay_seconds=0)), "delivered")
        assert town.get(f"/v1/schedule/{hung[0]}", bob).json["state"] == "processing"
        assert code(town.ask("DELETE", f"/v1/cancel/{hung[0]}", auth=bob)) == (409, "in_progress")
        hanging.go_on.set()
        for ident in hung:
            until(town, bob, ident, "delivered")


class Hanging(Hook):
    """It answers nobody until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.asked.set()
        assert self.go_on.wait(WAIT_S)
        super().finish_request(request, client_address)

    def __enter__(self) -> Hanging:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


# --- looking, listing, cancelling -------------------------------------------------------------


def test_a_cancelled_message_stays_cancelled_however_often_one_cancels(town: Town, ada: Person) -> None:
    ident = taken(schedule(town, ada))
    for path in (f"/v1/cancel/{ident}", f"/cancel/{ident}"):
        reply = town.ask("DELETE", path, auth=ada)
        assert (reply.status, reply.json) == (200, {"success": True})
    assert town.get(f"/v1/schedule/{ident}", ada).json["state"] == "cancelled"


def test_what_was_delivered_cannot_be_cancelled(town: Town, ada: Person) -> None:
    with answering() as hook:
        ident = taken(schedule(town, ada, hook.url, delay_seconds=0))
        until(town, ada, ident, "delivered")
    assert code(town.ask("DELETE", f"/v1/cancel/{ident}", auth=ada)) == (409, "already_sent")


def test_nobody_sees_or_cancels_what_is_anothers(town: Town, ada: Person, bob: Person) -> None:
    ident = taken(schedule(town, ada))
    assert code(town.get(f"/v1/schedule/{ident}", bob)) == (404, "unknown_schedule")
    assert code(town.ask("DELETE", f"/v1/cancel/{ident}", auth=bob)) == (404, "unknown_schedule")
    assert code(town.ask("DELETE", f"/v1/cancel/{ident}", auth=None)) == (401, "unauthorized")
    assert town.get(f"/v1/schedule/{ident}", ada).json["state"] == "pending"


def test_one_lists_ones_own_by_state_and_page(town: Town) -> None:
    cleo = town.register("cleo")
    made = [taken(schedule(town, cleo, delay_seconds=3_600 + n)) for n in range(70)]
    for ident in made[:3]:
        town.ask("DELETE", f"/v1/cancel/{ident}", auth=cleo)
    first = town.get("/v1/schedule?state=pending", cleo).json
    second = town.get(f"/v1/schedule?state=pending&page={first['next_page']}", cleo).json
    found = [each["message_id"] for each in first["schedules"] + second["schedules"]]
    assert (found, "next_page" in second) == (made[:2:-1], False)
    cancelled = town.get("/v1/schedule?state=cancelled", cleo).json
    assert [each["message_id"] for each in cancelled["schedules"]] == made[2::-1]
    assert town.get("/v1/schedule?state=delivered", cleo).json == {"schedules": []}


def test_a_repeat_with_its_idempotency_key_is_answered_alike_and_another_request_is_refused(
    town: Town, ada: Person
) -> None:
    key = {"Idempotency_Key": "k1"}
    ident = taken(schedule(town, ada, headers=key))
    assert taken(schedule(town, ada, headers=key)) == ident
    assert code(schedule(town, ada, headers=key, delay_seconds=7_200)) == (422, "key_reused")
    assert taken(schedule(town, ada, headers={"Idempotency_Key": "k2"})) != ident
    assert code(schedule(town, ada, headers={"Idempotency_Key": "k" * 129})) == (400, "malformed")


def test_a_named_id_is_one_message(town: Town, ada: Person, bob: Person) -> None:
    ident = f"{ada.device:x}:1700000000000:00001:abcd"
    assert taken(schedule(town, ada, message_id=ident)) == taken(schedule(town, ada, message_id=ident)) == ident
    assert code(schedule(town, ada, message_id=ident, content=2)) == (409, "id_reused")
    assert code(schedule(town, bob, message_id=ident)) == (400, "malformed")


def test_the_operator_schedules_in_the_name_of_an_account(town: Town, ada: Person) -> None:
    ident = taken(schedule(town, town.operator, account="ada"))
    assert (
        town.get(f"/v1/schedule/{ident}", ada).json == town.get(f"/v1/schedule/{ident}?account=ada", town.operator).json
    )
    assert code(schedule(town, town.operator)) == (400, "malformed")
    assert code(schedule(town, ada, account="bob")) == (400, "malformed")
    assert code(schedule(town, town.operator, account="nobody")) == (404, "unknown_account")
    assert town.ask("DELETE", f"/v1/cancel/{ident}?account=ada", auth=town.operator).json == {"success": True}


# --- into a conversation ----------------------------------------------------------------------


def sealed(by: Person, to: Person, n: int = 1) -> dict[str, Any]:
    envelope = {"device": f"{to.device:x}", "registration": 7, "ciphertext": "c2VhbGVk"}
    return {
        "message_id": f"{by.device:x}:1700000000000:{n:05d}:zz",
        "target": {"type": "conversation", "account": f"{to.account:x}"},
        "content": {"tag": "AAAAAAAAAAAAAAAAAAAAAA==", "list_version": 1, "envelopes": [envelope]},
    }


def test_what_a_device_has_sealed_is_filed_once_its_time_has_come(town: Town, ada: Person, bob: Person) -> None:
    ident = taken(town.ask("POST", "/schedule", {**sealed(ada, bob), "delay_seconds": 0}, auth=ada))
    seen = until(town, ada, ident, "delivered")
    assert seen["n"] > 0
    assert town.get(f"/v1/messages/{ident}", ada).json["state"] == "sent"


def test_what_goes_to_a_conversation_must_be_sealed_and_have_an_id_of_the_device(
    town: Town, ada: Person, bob: Person
) -> None:
    good = {**sealed(ada, bob, 2), "delay_seconds": 60}

    def refused(**changed: Any) -> tuple[int, str]:
        body = {name: value for name, value in {**good, **changed}.items() if value is not None}
        return code(town.ask("POST", "/v1/schedule", body, auth=ada))

    assert refused(message_id=None) == (400, "malformed")
    assert refused(message_id=f"{bob.device:x}:1:1:a") == (400, "malformed")
    assert refused(content="hello") == (400, "malformed")
    assert refused(content={**good["content"], "tag": "AA=="}) == (400, "malformed")
    assert refused(content={**good["content"], "plain": "hello"}) == (400, "malformed")
    assert refused(delay_seconds=15 * 24 * 60 * 60) == (422, "too_far_ahead")
    assert code(town.ask("POST", "/v1/schedule", {**good, "account": "ada"}, auth=town.operator)) == (403, "forbidden")


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"delay_seconds": -1}, (400, "malformed")),
        ({"delay_seconds": "soon"}, (400, "malformed")),
        ({"delay_seconds": True}, (400, "malformed")),
        ({"delay_seconds": None}, (400, "malformed")),
        ({"delay_seconds": 10**12}, (400, "malformed")),
        ({"delay_seconds": FAR}, (422, "too_far_ahead")),
        ({"delay_seconds": 60, "deliver_at": "2099-01-01T00:00:00Z"}, (400, "malformed")),
        ({"delay_seconds": None, "deliver_at": "2020-01-01T00:00:00Z"}, (422, "time_past")),
        ({"delay_seconds": None, "deliver_at": 0}, (422, "time_past")),
        ({"delay_seconds": None, "deliver_at": -1}, (400, "malformed")),
        ({"delay_seconds": None, "deliver_at": "9999-12-31T23:59:59Z"}, (422, "too_far_ahead")),
        ({"delay_seconds": None, "deliver_at": "2027-01-01T00:00:00"}, (400, "malformed")),
        ({"delay_seconds": None, "deliver_at": "2027-02-30T00:00:00Z"}, (400, "malformed")),
        ({"delay_seconds": None, "deliver_at": "tomorrow"}, (400, "malformed")),
        ({"delay_seconds": None, "deliver_at": 10**17}, (400, "malformed")),
        ({"content": None}, (400, "malformed")),
        ({"content": "x" * 70_000}, (400, "malformed")),
        ({"content": "x" * 300_000}, (413, "too_large")),
        ({"target": {"type": "pigeon"}}, (400, "malformed")),
        ({"target": None}, (400, "malformed")),
        ({"extra": 1}, (400, "malformed")),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(
    town: Town, ada: Person, fields: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code(schedule(town, ada, **fields)) == expected


def test_no_number_is_not_a_time(town: Town, ada: Person) -> None:
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = f'{{"content": 1, "target": {{"type": "webhook", "url": "https://x.test/"}}, "delay_seconds": {word}}}'
        assert code(town.ask("POST", "/v1/schedule", body.encode(), auth=ada)) == (400, "malformed")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.2/", "http://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest",
        "https://2130706433/", "ftp://example.org/", "example.org", "https://a:b@example.org/", "https://x.test/#a",
        "https://x.test/" + "x" * 2_048, "",
    ],
)  # fmt: skip
def test_an_address_that_could_never_be_called_is_refused_at_once(town: Town, ada: Person, url: str) -> None:
    assert code(schedule(town, ada, url)) == (422, "webhook_refused")


@pytest.mark.parametrize("path", ["/v1/schedule/x", "/v1/schedule?state=lost", "/v1/schedule?page=-1"])
def test_a_question_that_cannot_be_meant_is_refused(town: Town, ada: Person, path: str) -> None:
    assert code(town.get(path, ada)) == (400, "malformed")


def test_webhooks_are_called_only_where_a_setting_allows_it(tmp_path: Path) -> None:
    with serving(tmp_path / "off", NEWEST_FOLD) as town:
        ada = town.register("ada")
        assert code(schedule(town, ada, "https://x.test/")) == (403, "webhooks_off")
        assert code(schedule(town, town.operator, "https://x.test/", account="ada")) == (403, "webhooks_off")
    with serving(tmp_path / "operator", NEWEST_FOLD, schedule__webhooks="operator") as town:
        ada = town.register("ada")
        assert code(schedule(town, ada, "https://x.test/")) == (403, "webhooks_off")
        taken(schedule(town, town.operator, "https://x.test/", account="ada"))


def test_a_host_that_leads_here_is_refused_when_it_is_called(tmp_path: Path) -> None:
    with serving(tmp_path, NEWEST_FOLD, schedule__webhooks="accounts") as town, answering() as hook:
        ada = town.register("ada")
        assert code(schedule(town, ada, hook.url_at("127.0.0.1"))) == (422, "webhook_refused")
        url = hook.url_at("localhost").replace("http", "https", 1)
        assert (
            until(town, ada, taken(schedule(town, ada, url, delay_seconds=0)), "failed")["error"] == "private_address"
        )
    assert hook.calls == []


def test_a_server_of_an_older_fold_says_not_yet(tmp_path: Path) -> None:
    with serving(tmp_path, 3, schedule__webhooks="accounts") as town:
        assert code(schedule(town, town.register("ada"), "https://x.test/")) == (503, "not_yet")


def test_what_was_scheduled_outlives_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, NEWEST_FOLD, **ALLOWED) as town:
        ada = town.register("ada")
        pending = taken(schedule(town, ada))
        assert town.say(ada.device, message(ada, ada)) is not None
    with serving(tmp_path, NEWEST_FOLD, **ALLOWED) as town:
        assert town.get(f"/v1/schedule/{pending}", ada).json["state"] == "pending"


def test_content_is_nowhere_in_what_is_shown(town: Town, ada: Person) -> None:
    ident = taken(schedule(town, ada, content="a secret of ada's"))
    assert "secret of ada" not in json.dumps(town.get(f"/v1/schedule/{ident}", ada).json)
