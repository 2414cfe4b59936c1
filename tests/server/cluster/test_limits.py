"""What the settings say about messages and mailboxes decides in a cluster as on a node alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.client import Tick
from nightmail.client.errors import DeliveryFailed
from tests.engines.started import StartedEngines

from .running_cluster import running_cluster

WAIT_S = 120


def test_a_limit_of_the_settings_decides_what_becomes_of_a_message_in_a_cluster(
    engines: StartedEngines, tmp_path: Path
) -> None:
    with running_cluster(engines, tmp_path, 1, "[limits]\nttl_ms = 1000") as cluster:
        (node,) = cluster.nodes
        ada, _ = node.register("ada"), node.register("bob")
        with ada.sync() as sender, pytest.raises(DeliveryFailed, match="expired"):
            sender.wait(sender.send("bob", "nobody is there"), Tick.DELIVERED, WAIT_S)
