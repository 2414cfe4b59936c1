"""The benchmark of a whole server: it runs against a real process, and a broken promise does not escape it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench import figures as heart
from bench.node import __main__ as node
from bench.node.checks import BODY, Inbox, Tally, add_up, histogram, quantile_ms
from bench.node.figures import Figures, as_object, row
from bench.node.group_load import Author, Conversation, GroupInbox
from bench.node.load_messages import Known, Order, Seen
from bench.node.phone import Hub
from bench.node.plot import AIMS, MEANINGS, draw, newest
from bench.node.scenario_setup import TINY
from bench.node.workers import put_together, split
from nightmail.model.rows import Entry
from nightmail.model.words import Kind

ALWAYS = {"scenario", "rate", "server_us", "load_us", "p50_ms", "p99_ms", "p999_ms", "calibration_ns"}
PROMISES = ("lost", "doubled", "reordered")


def found(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


# --- against a real server ----------------------------------------------------------------------


def test_talking_and_being_away_are_measured_and_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.main(["--tiny", "--scenarios", "busy,offline"]) == 0
    busy, offline = found(capsys)
    for each in (busy, offline):
        assert each.keys() >= ALWAYS
        assert {name: each[name] for name in PROMISES} == dict.fromkeys(PROMISES, 0)
    assert (busy["scenario"], busy["connections"]) == ("busy", 2 * TINY.pairs)
    assert offline["messages"] == TINY.away * TINY.away_each
    assert offline["second_drain"] == 0


def test_a_message_that_is_overlooked_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.main(["--tiny", "--plant", "--scenarios", "busy"]) == 1
    assert [each["lost"] for each in found(capsys)] == [1]


def test_groups_are_measured_on_write_and_by_their_log_and_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.main(["--tiny", "--scenarios", "groups"]) == 0
    results = found(capsys)
    assert [each["scenario"] for each in results] == [
        "groups_10",
        "groups_10_single",
        "groups_110",
        "groups_110_single",
    ]
    for each in results:
        assert each.keys() >= ALWAYS | {"delivery_us", "members", "online"}
        assert {name: each[name] for name in PROMISES} == dict.fromkeys(PROMISES, 0)
        assert each["messages"]


def test_a_message_that_one_member_overlooks_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert node.main(["--tiny", "--plant", "--scenarios", "groups"]) == 1
    assert {each["lost"] for each in found(capsys)} == {1}


def test_a_peer_that_is_not_installed_is_skipped_with_words_and_recorded_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(heart, "RESULTS", tmp_path / "results.jsonl")
    monkeypatch.setattr(shutil, "which", lambda *_args, **_named: None)
    assert node.main(["--tiny", "--scenarios", "peers", "--record"]) == 0
    (peers,) = found(capsys)
    assert "apt-get install mosquitto" in str(peers["skipped"])
    (line,) = map(json.loads, heart.RESULTS.read_text().splitlines())
    assert (line["bench"], line["results"]) == ("node", [peers])


# --- the checker --------------------------------------------------------------------------------


def entry(n: int, at: int, body: bytes = BODY) -> Entry:
    return Entry(7, 9, n, "7:1:00001:a", b"", Kind.TEXT, None, at, 0, body)


def counts(*frames: tuple[int, tuple[Entry, ...]], of: int) -> tuple[int, int, int, int, int]:
    """(lost, doubled, reordered, changed, repeated) of what came, where `of` were sent."""
    tally = Tally()
    inbox = Inbox(7, tally)
    for first, entries in frames:
        inbox.take(first, entries)
    inbox.finish(of)
    return tally.lost, tally.doubled, tally.reordered, tally.changed, tally.repeated


def test_what_comes_in_order_is_right() -> None:
    assert counts((1, (entry(1, 10), entry(2, 11))), (3, (entry(3, 12),)), of=3) == (0, 0, 0, 0, 0)


def test_a_message_that_never_comes_is_lost() -> None:
    assert counts((1, (entry(1, 10), entry(3, 12))), of=3) == (1, 0, 0, 0, 0)
    assert counts((1, (entry(1, 10),)), of=3) == (2, 0, 0, 0, 0)


def test_a_message_under_two_numbers_is_doubled() -> None:
    lost, doubled, *_ = counts((1, (entry(1, 10), entry(1, 11), entry(2, 12))), of=2)
    assert (lost, doubled) == (0, 1)


def test_a_message_that_comes_late_is_reordered() -> None:
    lost, doubled, reordered, *_ = counts((1, (entry(2, 11), entry(1, 12), entry(3, 13))), of=3)
    assert (lost, doubled, reordered) == (0, 0, 1)


def test_a_stamp_that_does_not_grow_is_reordered() -> None:
    assert counts((1, (entry(1, 10), entry(2, 10))), of=2) == (0, 0, 1, 0, 0)


def test_another_body_is_noticed() -> None:
    assert counts((1, (entry(1, 10, b"other"),)), of=1) == (0, 0, 0, 1, 0)


def test_an_entry_offered_again_is_shown_once_and_harms_nobody() -> None:
    assert counts((1, (entry(1, 10), entry(2, 11))), (2, (entry(2, 11), entry(3, 12))), of=3) == (0, 0, 0, 0, 1)


def shown(*entries: tuple[int, int, int], of: int, to: int = 6) -> tuple[int, int, int, int]:
    """(lost, doubled, reordered, changed) of what one member of group 6 was shown, of `of` messages by device 7."""
    conversation = Conversation(Hub(), Known(6, 1, b"", has_log=False), online=3)
    Author(conversation, 0, 1)
    conversation.authors = {by: author for by in (7, 8) for author in conversation.authors.values()}
    inbox = GroupInbox(conversation, plant=False)
    for by, n, at in entries:
        conversation.authors[by].unseen[n] = 9
        inbox.take(Entry(by, to, n, "", b"", Kind.TEXT, None, at, 0, BODY))
    inbox.finish(7, of)
    tally = conversation.hub.tally
    return tally.lost, tally.doubled, tally.reordered, tally.changed


def test_in_a_group_every_author_counts_for_itself() -> None:
    assert shown((7, 1, 10), (8, 1, 11), (7, 2, 12), (8, 2, 13), of=2) == (0, 0, 0, 0)


def test_in_a_group_too_what_is_lost_doubled_late_or_elsewhere_is_noticed() -> None:
    assert shown((7, 1, 10), (7, 3, 12), of=4) == (2, 0, 0, 0)
    assert shown((7, 1, 10), (7, 1, 12), of=1) == (0, 1, 0, 0)
    assert shown((7, 1, 10), (8, 1, 10), of=1) == (0, 0, 1, 0)
    assert shown((7, 1, 10), of=1, to=4) == (0, 0, 0, 1)


# --- figures ------------------------------------------------------------------------------------


def test_quantiles_are_within_one_percent_and_can_be_added_up() -> None:
    low, high = histogram([0.001] * 99), histogram([0.1])
    both = add_up([low, high])
    assert quantile_ms(both, 0.5) == pytest.approx(1, rel=0.01)
    assert quantile_ms(both, 0.999) == pytest.approx(100, rel=0.01)
    assert quantile_ms({}, 0.5) is None


def test_a_load_that_is_split_is_the_same_load() -> None:
    order = Order(job="talk", port=1, server=1, first=10, count=10, rate=100.0)
    shares = split(order, 2)
    assert [(share.first, share.count) for share in shares] == [(10, 4), (14, 6)]
    assert sum(share.rate for share in shares) == pytest.approx(order.rate)


def test_what_two_loads_saw_is_put_together() -> None:
    parts = [Seen(messages=3, seconds=1.0, server_ns=5, load_ns=7, tally=Tally(lost=n)) for n in (1, 2)]
    whole = put_together(parts)
    assert (whole.messages, whole.server_ns, whole.load_ns, whole.tally.lost) == (6, 5, 14, 3)


def test_a_row_names_what_broke() -> None:
    figures = Figures(scenario="busy", rate=10, lost=1, more={"connections": 2})
    assert "BROKEN" in row(figures)
    assert as_object(figures)["connections"] == 2
    assert as_object(figures).keys() >= ALWAYS


def test_the_newest_results_are_drawn() -> None:
    def recorded(**results: float) -> str:
        rows = [
            {"scenario": name, "rate": 1, "server_us": value, "calibration_ns": 560_000}
            for name, value in results.items()
        ]
        return json.dumps({"bench": "node", "date": "2026-01-01T00:00:00", "commit": "abc", "results": rows})

    heart_line = json.dumps({"date": "", "commit": "", "results": [{"scenario": "busy", "rate": 1, "server_us": 3}]})
    found, when = newest([recorded(busy=50.0, crowd=60.5), heart_line, recorded(busy=19.5)])
    picture = draw(found, when)
    assert picture.startswith("<svg")
    assert picture.endswith("</svg>\n")
    assert [figure in picture for figure in (">19.5<", ">60.5<", ">50.0<")] == [True, True, False]


def test_the_picture_explains_every_label_that_it_shows() -> None:
    assert MEANINGS.keys() == {scenario for _, scenario, _, _ in AIMS}
    picture = draw({"busy": {"rate": 1.0, "server_us": 20.0}}, "today")
    assert f"busy: {MEANINGS['busy']}" in picture
    assert MEANINGS["storm"] not in picture
