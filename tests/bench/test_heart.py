"""The benchmark itself: it runs, it checks its promises, and what it prints can be read by machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import figures, heart
from bench.clients import Clients
from bench.measured_node import Broken, Rig
from bench.scenario_setup import TINY
from bench.scenarios import SCENARIOS
from nightmail.model.effects import Answer
from nightmail.model.refusals import Overloaded

ALWAYS = {"scenario", "fold_us", "store_us", "bytes_per_message", "recovery_s", "rate", "rss_mib", "calibration_ns"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_runs_and_says_what_it_found(name: str) -> None:
    results = heart.run([name], TINY)
    assert results
    for found in json.loads(figures.as_json(results)):
        assert found["scenario"].startswith(name)
        assert found.keys() >= ALWAYS
        recovers = name == "recovery"
        assert (found["recovery_s"] is None, found["fold_us"] is None) == (not recovers, recovers)
        assert found["messages"] > 0
        assert found["broken"] is None


def test_what_is_spent_adds_up() -> None:
    (busy,) = heart.run(["busy"], TINY)
    named = (busy.fold_us, busy.store_us, busy.submit_us, busy.offer_us, busy.client_us, busy.bench_us)
    parts = (busy.log_us, busy.writer_us, busy.checkpoint_us, busy.saver_us, busy.load_us)
    assert sum(part or 0 for part in named) == pytest.approx(busy.total_us, abs=0.01)
    assert sum(part or 0 for part in parts) == pytest.approx(busy.store_us, abs=0.01)


def test_the_last_line_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(heart, "QUICK", TINY)
    assert heart.main(["--quick", "--scenarios", "busy,single"]) == 0
    output = capsys.readouterr()
    assert [found["scenario"] for found in json.loads(output.out.splitlines()[-1])] == ["busy", "single"]
    assert "busy" in output.err


def test_results_are_appended_only_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(heart, "QUICK", TINY)
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results.jsonl")
    heart.main(["--quick", "--scenarios", "busy"])
    assert not figures.RESULTS.exists()
    for _ in range(2):
        heart.main(["--quick", "--scenarios", "busy", "--record"])
    lines = [json.loads(line) for line in figures.RESULTS.read_text().splitlines()]
    assert [line.keys() for line in lines] == [{"date", "commit", "options", "results"}] * 2
    assert lines[0]["results"][0]["scenario"] == "busy"


def test_a_broken_promise_fails_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def lies(_clients: Clients, _answer: Answer) -> None:
        raise Broken("it was not answered")

    monkeypatch.setattr(heart, "QUICK", TINY)
    monkeypatch.setattr(Clients, "_hear_answer", lies)
    assert heart.main(["--quick", "--scenarios", "busy"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["scenario"], found["broken"], found["fold_us"]) == ("busy", "it was not answered", None)


def test_a_client_that_is_refused_does_not_go_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data")
    try:
        rig.loop.recover()
        rig.effects.append(Answer(1, Overloaded()))
        with pytest.raises(Broken, match="Overloaded"):
            Clients(rig).turn()
    finally:
        rig.close()
