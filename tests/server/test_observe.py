"""Log lines: whole, in one form, and without what must not be in them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from nightmail.gateway.counters import Counters
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.server.histogram import COMMIT_MS, Histogram
from nightmail.server.observe import Figures, JsonLines, LogWatcher, TextLines, log_refusals
from tests.server.rig import message, serving


def a_line(**extra: object) -> logging.LogRecord:
    record = logging.makeLogRecord(
        {"name": "nightmail", "levelname": "INFO", "msg": "said %s", "args": ("so",), **extra}
    )
    record.created = 0.5
    return record


def test_a_line_is_one_json_object() -> None:
    assert json.loads(JsonLines().format(a_line(why="because\nof this"))) == {
        "at": "1970-01-01T00:00:00.500+00:00",
        "level": "info",
        "where": "nightmail",
        "message": "said so",
        "why": "because\nof this",
    }
    assert "\n" not in JsonLines().format(a_line(why="because\nof this"))


def test_a_line_for_people_has_its_fields_behind_it() -> None:
    assert TextLines().format(a_line(rows=3)) == "1970-01-01T00:00:00.500+00:00 info     said so  rows=3"


def test_a_poisoned_record_is_told_without_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    figures = Figures()
    LogWatcher(figures, lambda: 0).on_poison(7, ValueError("what the record says"))
    assert figures.poisoned == 1
    assert "what the record says" not in JsonLines().format(caplog.records[0])
    assert (caplog.records[0].levelname, vars(caplog.records[0])["offset"]) == ("CRITICAL", 7)


def test_a_clock_that_is_doubted_is_told_with_both_times_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    figures = Figures()
    watcher = LogWatcher(figures, lambda: 0)
    watcher.on_clock(ClockSeen(ClockState.AHEAD, 90_000, 1_000))
    watcher.on_clock(ClockSeen(ClockState.BELIEVED, 91_000, 91_000))
    watcher.on_clock(ClockSeen(ClockState.BEHIND, 2_000, 91_000))
    assert figures.leaps == 1
    one, ninety, two = (f"1970-01-01T00:{at}.000+00:00" for at in ("00:01", "01:31", "00:02"))
    assert [(line.levelname, vars(line)["clock"], vars(line)["time"]) for line in caplog.records] == [
        ("WARNING", "1970-01-01T00:01:30.000+00:00", one),
        ("WARNING", ninety, ninety),
        ("WARNING", two, ninety),
    ]
    assert "nightmail clock set-back" in caplog.records[2].getMessage()


def test_no_line_of_a_whole_life_has_a_token_a_name_or_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(tmp_path) as town:
        operator = town.operator.rpartition(".")[2]
        ada, bob = town.register("ada-the-first"), town.register("bob-the-second")
        town.say(ada.device, message(ada, bob))
        town.get(f"/v1/trace/{message(ada, bob).id}", town.operator)
        town.get("/v1/accounts/bob-the-second", ada)
        town.get("/v1/devices", "Bearer 1.wrongwrong")
    lines = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert "serving" in lines
    for secret in (operator, ada.token.decode(), ada.bearer, "sealed", "ada-the-first", "bob-the-second", "wrongwrong"):
        assert secret not in lines


def test_a_histogram_counts_up_to_each_bound() -> None:
    found = Histogram(COMMIT_MS)
    for value in (0.5, 1, 1.5, 10_000):
        found.add(value)
    buckets = dict(found.buckets())
    assert (buckets["0.001"], buckets["0.002"], buckets["5.0"], buckets["+Inf"]) == (2, 3, 3, 4)


def test_what_is_refused_often_leaves_a_line_and_nothing_else_does(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    counters.refuse("unauthorized", "192.0.2.1")
    counters.refuse("not_admitted", "192.0.2.7", 20)
    log_refusals(counters)
    log_refusals(counters)
    (line,) = caplog.records
    assert (
        TextLines()
        .format(line)
        .endswith("much was refused  kind=not_admitted  count=20  busiest=192.0.2.7  its_count=20")
    )
