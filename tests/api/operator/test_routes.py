"""What the operator asks about a node: at a glance, over time, its storage, the schedules of all accounts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightmail.server.sampling import COLUMNS
from tests.api.test_schedules import ALLOWED, code, schedule, taken
from tests.server.rig import WAIT_S, Town, message, serving

PATHS = ("overview", "history", "storage", "schedules", "schedules/counts", "alerts")


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with serving(tmp_path, **ALLOWED) as made:
        yield made


def asked(town: Town, path: str) -> Any:
    reply = town.get(f"/v1/operator/{path}", town.operator)
    assert reply.status == 200, reply
    return reply.json


def until(town: Town, path: str, is_so: Any) -> Any:
    """What is answered once it is so. Asks again and again, as the page does."""
    patience, found = threading.Event(), dict[str, Any]()
    for _ in range(WAIT_S * 20):
        if is_so(found := asked(town, path)):
            return found
        patience.wait(0.1)
    raise AssertionError(found)


def test_the_overview_tells_what_was_accepted_and_brings_only_newer_samples(town: Town) -> None:
    ada, bob = town.register("ada"), town.register("bob")
    for n in range(1, 4):
        town.say(ada.device, message(ada, bob, n))
    seen = until(town, "overview", lambda found: found["totals"]["accepted"] == 3 and found["recent"]["times"])
    assert seen["totals"] == {"accepted": 3, "delivered": 0, "failed": 0, "refused": 0}
    assert (seen["ready"], seen["not_ready"], seen["dead_letters"]) == (True, [], 0)
    recent = seen["recent"]
    assert list(recent["columns"]) == [column.name for column in COLUMNS]
    assert {len(values) for values in recent["columns"].values()} == {len(recent["times"])}
    newer = until(town, f"overview?after={recent['last']}", lambda found: found["recent"]["times"])["recent"]
    assert len(newer["times"]) == newer["last"] - recent["last"]
    assert newer["times"][0] > recent["times"][-1]
    rates = [*recent["columns"]["messages_per_s"], *newer["columns"]["messages_per_s"]]
    assert max(rates) > 0


def test_a_history_is_empty_until_its_first_minute_is_over(town: Town) -> None:
    for span in ("6h", "24h", "7d"):
        found = asked(town, f"history?span={span}")
        assert (found["last"], found["times"]) == (0, [])
        assert list(found["columns"]) == [column.name for column in COLUMNS]
    assert until(town, "history", lambda found: found["times"])["last"] > 0


def test_a_week_of_minutes_is_answered_in_720_points(town: Town) -> None:
    def fill() -> None:
        for minute in range(8 * 24 * 60):
            town.node.sampling.history.minutes.add(minute * 60_000, [minute] * len(COLUMNS))

    town.run(fill)
    found = asked(town, "history?span=7d")
    assert (len(found["times"]), found["last"]) == (720, 8 * 24 * 60)
    assert (found["times"][0], found["times"][-1]) == ((24 * 60 + 13) * 60_000, (8 * 24 * 60 - 1) * 60_000)
    assert len(asked(town, "history?span=6h")["times"]) == 360
    assert len(asked(town, "history?span=24h")["times"]) == 720


def test_storage_tells_of_space_log_rows_and_the_check_before_the_start(town: Town) -> None:
    found = asked(town, "storage")
    heart = town.node.heart
    assert found["folder"] == str(heart.folder)
    assert found["log_segments"] == len(list(heart.folder.glob("log-*")))
    assert found["rows_bytes"] == sum(path.stat().st_size for path in heart.folder.glob("rows.db*"))
    assert 0 < found["disk_free_bytes"] < found["disk_total_bytes"]
    assert found["checked_at"] == heart.checked_at > 0
    assert (found["tight"], found["why_tight"], found["clock"]["state"]) == (False, "", "believed")


def test_schedules_of_all_accounts_are_counted_and_listed_without_content(town: Town) -> None:
    people = [town.register(name) for name in ("ada", "bob", "carol")]
    idents = {taken(schedule(town, person, content={"secret": "word"})): person for person in people for _ in range(2)}
    town.run(lambda: town.node.heart.loop.save(at_once=True))
    counts = until(town, "schedules/counts", lambda found: found["counts"]["pending"] == 6)
    assert counts["complete"] is True
    assert sum(counts["counts"].values()) == 6
    reply = town.get("/v1/operator/schedules?state=pending", town.operator)
    assert b"word" not in reply.body
    shown = {each["schedule"]["message_id"]: (each["account"], each["handle"]) for each in reply.json["schedules"]}
    assert shown == {ident: (f"{person.account:x}", person.handle) for ident, person in idents.items()}
    assert "next_page" not in reply.json
    assert asked(town, "schedules?state=failed") == {"schedules": []}
    last = reply.json["schedules"][-1]
    assert asked(town, f"schedules?page={last['account']}.2") == {"schedules": []}


def test_all_of_it_is_the_operators_alone_and_is_kept_by_no_cache(town: Town) -> None:
    ada = town.register("ada")
    for path in PATHS:
        for auth in (None, ada, "Bearer operator.nonsense", "Basic nonsense"):
            refused = town.get(f"/v1/operator/{path}", auth)
            assert (*code(refused), refused.headers["cache-control"]) == (401, "unauthorized", "no-store")
        assert town.get(f"/v1/operator/{path}", town.operator).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "wrong",
    [
        "overview?after=x", "overview?after=-1", "overview?after=" + "9" * 16, "history?span=1y", "schedules?state=x",
        "schedules?page=1", "schedules?page=.", "schedules?page=zz.1", "schedules?page=1.x", "schedules?page=-1.1",
        "schedules?page=" + "f" * 16 + ".1",
    ],
)  # fmt: skip
def test_nonsense_in_a_question_is_malformed(town: Town, wrong: str) -> None:
    assert code(town.get(f"/v1/operator/{wrong}", town.operator)) == (400, "malformed")
