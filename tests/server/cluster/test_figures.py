"""What a node of a cluster tells its operator: the metrics of a node alone, and those of a cluster."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from nightmail.client import Tick
from nightmail.testing import RunningServer
from tests.engines.started import StartedEngines
from tests.server.test_metrics import DOCS, documented

from .running_cluster import SECRET, SHARDS, running_cluster

WAIT_S = 120
OF_A_FOLDER = {
    "nightmail_accounts_online", "nightmail_accounts_watched", "nightmail_disk_tight", "nightmail_entries_lost",
    "nightmail_log_bytes", "nightmail_presence_saves_failed_total", "nightmail_rows_bytes",
}  # fmt: skip
"""What a node has that is alone, or has presence."""


def asked(node: RunningServer, path: str) -> bytes:
    request = urllib.request.Request(node.url + path, headers={"Authorization": f"Bearer operator.{SECRET}"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
        return reply.read()


def scraped(node: RunningServer) -> dict[str, float]:
    """Sums over labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(asked(node, "/metrics").decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def together(nodes: list[RunningServer]) -> dict[str, float]:
    each = [scraped(node) for node in nodes]
    return {name: sum(found.get(name, 0) for found in each) for name in each[0]}


def of_a_cluster() -> set[str]:
    """Those that docs/cluster.md tells of."""
    rows = [line.split("|")[1].strip(" `") for line in (DOCS / "cluster.md").read_text().splitlines() if "|" in line]
    return {row for row in rows if row.startswith("nightmail_cluster_")}


def test_nodes_serve_the_metrics_of_a_node_alone_and_their_sums_are_the_clusters(
    engines: StartedEngines, tmp_path: Path
) -> None:
    with running_cluster(engines, tmp_path, 2) as cluster:
        one, two = cluster.nodes
        ada, bob = one.register("ada"), two.register("bob")
        with ada.sync() as sender, bob.sync() as recipient:
            for text in ("one", "two", "three"):
                message = sender.send("bob", text)
                assert recipient.receive(timeout=WAIT_S).text == text
                sender.wait(message, Tick.DELIVERED, WAIT_S)
            while (found := together(cluster.nodes))["nightmail_entries_delivered_total"] < 3 or not found[
                "nightmail_checkpoints_total"
            ]:
                pass  # Counted with the next tick, saved within a second.
            served = {
                f"{family.name}_total" if family.type == "counter" else family.name
                for node in cluster.nodes
                for family in text_string_to_metric_families(asked(node, "/metrics").decode())
            }
            assert served == {row[0] for row in documented("Metrics")[2:]} - OF_A_FOLDER | of_a_cluster()
            assert found["nightmail_messages_accepted_total"] == found["nightmail_entries_delivered_total"] >= 3
            assert found["nightmail_delivery_seconds_count"] >= 1
            assert found["nightmail_commit_seconds_count"] >= found["nightmail_records_total"] / 100 > 0
            assert (found["nightmail_cluster_shards_owned"], found["nightmail_cluster_nodes"]) == (SHARDS, 4)
            assert found["nightmail_cluster_entries_balance"] == 0
            assert found["nightmail_devices_online"] == 2
            while not any(json.loads(asked(one, "/v1/operator/history?span=15m"))["columns"]["connections"]):
                pass  # A sample is taken every second.
            assert {alert["name"] for alert in json.loads(asked(two, "/v1/operator/alerts"))["alerts"]} >= {"NotReady"}
