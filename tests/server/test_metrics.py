"""Figures: every one documented, and those that count messages right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nightmail.gateway.counters import Counters
from nightmail.model.records import Acked
from nightmail.model.words import Lane
from nightmail.server.metrics import GATEWAY
from nightmail.server.process import EXIT_CODES
from tests.server.rig import Town, message, serving

DOCS = Path(__file__).parent.parent.parent / "docs"


def scraped(town: Town) -> dict[str, float]:
    """Plain samples, without those of histograms."""
    return {
        sample.name + "".join(f"{{{value}}}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(town.get("/metrics", town.operator).body.decode())
        for sample in family.samples
    }


def documented(title: str) -> list[tuple[str, ...]]:
    _, _, section = (DOCS / "operating.md").read_text().partition(f"\n## {title}\n")
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [tuple(cell.strip(" `") for cell in line.strip("|").split("|")) for line in lines]


def test_every_metric_is_documented_with_its_kind(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada = town.register("ada")
        town.run(lambda: town.node.heart.loop.save(at_once=True))
        while "nightmail_checkpoint_age_seconds" not in scraped(town):
            assert town.get("/v1/devices", ada).status == 200
        served = {
            (f"{family.name}_total" if family.type == "counter" else family.name, family.type)
            for family in text_string_to_metric_families(town.get("/metrics", town.operator).body.decode())
        }
    assert {row[:2] for row in documented("Metrics")[2:]} == served


def test_every_counter_of_the_gateway_has_its_meaning() -> None:
    assert set(GATEWAY) == set(Counters.__slots__)


def test_every_exit_code_is_documented() -> None:
    told = {row[0] for row in documented("Starting and stopping")}
    assert {str(code) for code in EXIT_CODES.values()} | {"0", "2"} <= told


def test_alerts_name_only_metrics_that_there_are() -> None:
    known = {row[0] for row in documented("Metrics")}
    text = " ".join(cell for row in documented("Alerts") for cell in row)
    for name in set(re.findall(r"nightmail_\w+", text)):
        assert name in known or re.sub("_(bucket|count)$", "", name) in known


def test_messages_are_counted_from_accepted_to_delivered(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada, bob = town.register("ada"), town.register("bob")
        for n in (1, 2, 3):
            town.say(ada.device, message(ada, bob, n))
        town.say(ada.device, message(ada, bob, 3))
        town.say(bob.device, Acked(Lane.NORMAL, 3, (2,)))
        while (found := scraped(town))["nightmail_messages_accepted_total"] < 3:
            pass
    assert {name: found[f"nightmail_{name}_total"] for name in (
        "messages_accepted", "messages_repeated", "entries_filed", "entries_delivered",
    )} == {"messages_accepted": 3, "messages_repeated": 1, "entries_filed": 3, "entries_delivered": 2}  # fmt: skip
    assert found["nightmail_entries_failed_total{undecryptable}"] == 1


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_counted_is_not_counted_again(tmp_path: Path, restart: bool) -> None:
    with serving(tmp_path, data__checkpoint_ms=10_000_000) as town:
        ada, bob = town.register("ada"), town.register("bob")
        town.say(ada.device, message(ada, bob))
        while not scraped(town)["nightmail_messages_accepted_total"]:
            pass
        if not restart:
            town.run(lambda: town.node.heart.loop.save(at_once=True))
            while not scraped(town)["nightmail_checkpoints_total"]:
                pass
            assert scraped(town)["nightmail_messages_accepted_total"] == 1
    if restart:
        with serving(tmp_path) as town:
            assert scraped(town)["nightmail_messages_accepted_total"] == 0
