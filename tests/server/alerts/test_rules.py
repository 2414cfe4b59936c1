"""Prometheus and the server judge alike: each alert fires when its cause is there, and not before."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nightmail.server.alerts.rules import rule_file
from nightmail.server.alerts.table import ALERTS, Alert
from nightmail.server.alerts.watch import AlertWatch
from tests.server.alerts.stories import STEP_S, STORIES, Story

ROOT = Path(__file__).parent.parent.parent.parent
BESIDE_PYTHON = Path(sys.executable).parent / "promtool"
PROMTOOL = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("promtool")

with_promtool = pytest.mark.skipif(
    not PROMTOOL, reason="promtool is missing: NO ALERT IS JUDGED BY PROMETHEUS; run make promtool"
)


def promtool(*arguments: str | Path) -> None:
    assert PROMTOOL
    done = subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def named(name: str) -> Alert:
    return next(alert for alert in ALERTS if alert.name == name)


def test_every_alert_has_a_story() -> None:
    assert [alert.name for alert in ALERTS] == list(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_the_server_sees_an_alert_fire_when_its_cause_is_there_and_not_before(name: str) -> None:
    watch, story = AlertWatch(), STORIES[name]
    firing_at: list[int] = []
    for step in range(len(next(iter(story.series.values())))):
        watch.look({series: values[step] for series, values in story.series.items()}, step * STEP_S * 1000, step)
        (standing,) = (each for each in watch.standings if each.alert.name == name)
        if standing.state == "firing":
            firing_at.append(step * STEP_S)
    assert story.quiet_s < firing_at[0] <= story.fires_s


@with_promtool
def test_prometheus_takes_the_rules_and_the_example_of_its_configuration() -> None:
    promtool("check", "rules", ROOT / "deploy" / "prometheus" / "alerts.yml")
    promtool("check", "config", "--syntax-only", ROOT / "deploy" / "prometheus" / "prometheus.yml")


@with_promtool
def test_prometheus_sees_each_alert_fire_when_its_cause_is_there_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "alerts.yml").write_text(rule_file())
    tests = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": f"{STEP_S}s",
        "tests": [_as_test(named(name), story) for name, story in STORIES.items()],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(tests))
    promtool("test", "rules", tmp_path / "tests.yml")


def _as_test(alert: Alert, story: Story) -> Mapping[str, Any]:
    series = next(iter(alert.condition.series()))
    labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
    firing = {
        "exp_labels": {"severity": alert.severity, **labels},
        "exp_annotations": {"summary": alert.text, "runbook": alert.runbook},
    }
    expected: Sequence[tuple[int, list[Any]]] = ((story.quiet_s, []), (story.fires_s, [firing]))
    return {
        "interval": f"{STEP_S}s",
        "input_series": [
            {"series": series, "values": " ".join(f"{value:g}" for value in values)}
            for series, values in story.series.items()
        ],
        "alert_rule_test": [
            {"eval_time": f"{at}s", "alertname": alert.name, "exp_alerts": alerts} for at, alerts in expected
        ],
    }


def test_every_alert_says_on_the_operators_page_what_to_do() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    assert {alert.name for alert in ALERTS} == {
        line.removeprefix("### ") for line in page.partition("\n## Alerts\n")[2].partition("\n## ")[0].splitlines()
        if line.startswith("### ")
    }  # fmt: skip
