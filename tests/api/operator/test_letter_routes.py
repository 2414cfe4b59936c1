"""Dead letters, as the operator sees and settles them over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from nightmail.core.state import NEWEST_FOLD
from tests.api.test_schedules import ALLOWED, code, schedule, taken, until
from tests.outlets.hook import Hook, answering
from tests.server.rig import Person, Town, serving


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with serving(tmp_path, NEWEST_FOLD, **ALLOWED) as made:
        yield made


@pytest.fixture
def ada(town: Town) -> Person:
    return town.register("ada")


def failed(town: Town, by: Person, hook: Hook, *statuses: int) -> list[str]:
    """A call that fails with each of these."""
    idents: list[str] = []
    for status in statuses:
        hook.statuses = [status]
        idents.append(taken(schedule(town, by, hook.url, delay_seconds=0)))
        until(town, by, idents[-1], "failed")
    hook.statuses = [204]
    return idents


def listed(town: Town, error: str) -> list[dict[str, Any]]:
    return town.get(f"/v1/dead-letters?error={quote(error)}", town.operator).json["letters"]


def settle(town: Town, what: str, body: Any = None) -> Any:
    return town.ask("POST", f"/v1/dead-letters/{what}", body, auth=town.operator)


def test_letters_are_grouped_by_error_listed_and_shown_whole(town: Town, ada: Person) -> None:
    with answering() as hook:
        first, second, third = failed(town, ada, hook, 404, 410, 404)
    grouped = town.get("/v1/dead-letters/classes", town.operator).json
    assert grouped == {
        "classes": [{"error": "webhook http_404", "count": 2}, {"error": "webhook http_410", "count": 1}],
        "total": 3,
    }
    assert [each["original_message"]["msg_id"] for each in listed(town, "webhook http_404")] == [third, first]
    (letter,) = listed(town, "webhook http_410")
    assert town.get(f"/v1/dead-letters/{letter['id']}", town.operator).json == letter
    original = letter["original_message"]
    assert (original["msg_id"], original["sender"], original["recipient"]) == (second, f"{ada.account:x}", hook.url)
    assert [base64.b64decode(each) for each in original["content"]] == [b'{"a": 1}']
    assert letter["id"] == f"{letter['source_partition']}-{letter['source_offset']}"
    assert letter["first_attempt"] <= letter["last_attempt"] <= letter["dlq_timestamp"]
    assert (letter["status"], letter["retry_count"], letter["source_topic"]) == ("waiting", 0, "log")


def test_a_replayed_letter_is_delivered_once_and_is_settled(town: Town, ada: Person) -> None:
    with answering() as hook:
        (ident,) = failed(town, ada, hook, 404)
        (letter,) = listed(town, "webhook http_404")
        assert settle(town, f"{letter['id']}/replay").json["status"] == "replayed"
        until(town, ada, ident, "delivered")
    assert [call.headers["webhook-id"] for call in hook.calls] == [ident, ident]
    for what in ("replay", "discard"):
        assert code(settle(town, f"{letter['id']}/{what}")) == (409, "letter_settled")
    assert len(hook.calls) == 2


def test_a_discarded_letter_has_lost_its_content_and_cannot_be_replayed(town: Town, ada: Person) -> None:
    with answering() as hook:
        (ident,) = failed(town, ada, hook, 404)
        (letter,) = listed(town, "webhook http_404")
        seen = settle(town, f"{letter['id']}/discard").json
        assert (seen["status"], seen["replayable"], seen["original_message"]["content"]) == ("discarded", False, [])
        assert code(settle(town, f"{letter['id']}/replay")) == (409, "letter_settled")
        assert settle(town, "replay", {"error": "webhook http_404"}).json == {"settled": 0}
    assert len(hook.calls) == 1
    assert town.get(f"/v1/schedule/{ident}", ada).json["state"] == "failed"


def test_those_of_an_error_or_of_a_time_are_settled_together(town: Town, ada: Person) -> None:
    with answering() as hook:
        idents = failed(town, ada, hook, 404, 410, 410, 404)
        assert settle(town, "replay", {"error": "webhook http_410"}).json == {"settled": 2}
        for ident in idents[1:3]:
            until(town, ada, ident, "delivered")
        (last, first) = listed(town, "webhook http_404")
        assert settle(town, "discard", {"before": last["dlq_timestamp"]}).json == {"settled": 1}
        assert settle(town, "replay", {"since": last["dlq_timestamp_rfc3339"]}).json == {"settled": 1}
        until(town, ada, idents[3], "delivered")
    assert {each["id"]: each["status"] for each in listed(town, "webhook http_404")} == {
        first["id"]: "discarded",
        last["id"]: "replayed",
    }


def test_what_is_no_letter_is_refused(town: Town, ada: Person) -> None:
    operator = town.operator
    assert code(town.get("/v1/dead-letters/0-4711", operator)) == (404, "unknown_letter")
    assert code(town.get("/v1/dead-letters/1-4711", operator)) == (404, "not_found")
    for name in ("x", "0-", "-1", "0-1-2", "0-²", "9" * 20):
        assert code(town.get(f"/v1/dead-letters/{quote(name)}", operator)) == (400, "malformed")
    for what in ("replay", "discard"):
        assert code(settle(town, f"0-4711/{what}")) == (404, "unknown_letter")
        assert code(settle(town, what, {})) == (400, "malformed")
        assert code(settle(town, what, {"since": "yesterday"})) == (400, "malformed")
        assert settle(town, what, {"error": "no such error"}).json == {"settled": 0}
    assert code(town.get("/v1/dead-letters", operator)) == (400, "malformed")
    assert code(town.get("/v1/dead-letters?error=x&page=7", operator)) == (400, "malformed")
    assert town.get("/v1/dead-letters?error=x", operator).json == {"letters": []}


def test_letters_are_the_operators_alone(town: Town, ada: Person) -> None:
    for path in ("/v1/dead-letters/classes", "/v1/dead-letters?error=x", "/v1/dead-letters/0-1"):
        assert code(town.get(path, ada)) == (401, "unauthorized")
    for path in ("/v1/dead-letters/0-1/replay", "/v1/dead-letters/replay"):
        assert code(town.ask("POST", path, {"error": "x"}, auth=ada)) == (401, "unauthorized")
