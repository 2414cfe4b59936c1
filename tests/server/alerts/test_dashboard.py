"""The dashboard for Grafana: well-formed, about metrics that there are, and about all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.server.test_metrics import documented

FILE = Path(__file__).parent.parent.parent.parent / "deploy" / "grafana" / "nightmail.json"
LEFT_OUT = {"process_start_time_seconds", "nightmail_clock_seconds"}
"""Nothing that anybody wants to see drawn."""


def board() -> Any:
    return json.loads(FILE.read_text())


def drawn() -> set[str]:
    text = " ".join(target["expr"] for panel in board()["panels"] for target in panel.get("targets", ()))
    return set(re.findall(r"\b(?:nightmail|process)_\w+", text))


def test_the_dashboard_is_well_formed() -> None:
    found = board()
    assert (found["title"], found["uid"], found["schemaVersion"]) == ("Nightmail", "nightmail", 38)
    ids = [panel["id"] for panel in found["panels"]]
    assert len(ids) == len(set(ids))
    variables = {each["name"]: each["type"] for each in found["templating"]["list"]}
    assert variables == {"datasource": "datasource", "instance": "query"}
    for panel in found["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
        if panel["type"] == "row":
            continue
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(references) == len(set(references))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


def test_every_metric_that_is_drawn_exists() -> None:
    known = {row[0] for row in documented("Metrics")[2:]}
    assert {re.sub("_bucket$", "", name) for name in drawn()} <= known


def test_every_metric_is_drawn() -> None:
    known = {row[0] for row in documented("Metrics")[2:]}
    assert known - {re.sub("_bucket$", "", name) for name in drawn()} == LEFT_OUT
