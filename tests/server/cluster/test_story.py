"""The promise on real engines, with real processes: nothing lost, doubled or reordered when a node is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from nightmail.client import Client, Receipt, SyncClient, Tick
from nightmail.server.cluster.admin import ClusterStanding, look_at_cluster
from nightmail.testing.registered_device import RegisteredDevice
from tests.engines.started import StartedEngines

from .running_cluster import SHARDS, RunningCluster, running_cluster

WAIT_S = 120
MESSAGES = 60
LOOKS = 100


def sync(device: RegisteredDevice, cluster: RunningCluster, first: int) -> SyncClient:
    """A client that knows of every node, and tries this one first."""
    return SyncClient(device.profile, [*cluster.urls[first:], *cluster.urls[:first]])


def looked_at(cluster: RunningCluster, owners: set[str]) -> ClusterStanding:
    """The cluster, once these own its shards, and no others."""
    seen = asyncio.run(look_at_cluster(cluster.config))
    for _ in range(LOOKS):
        if {shard.owner for shard in seen.shards} == owners:
            return seen
        seen = asyncio.run(look_at_cluster(cluster.config))
    raise AssertionError(f"{owners} do not own every shard: {seen}")


def test_a_node_that_is_killed_loses_doubles_and_reorders_nothing(engines: StartedEngines, tmp_path: Path) -> None:
    with running_cluster(engines, tmp_path, 3) as cluster:
        one, two, _ = cluster.nodes
        ada, bob, cleo = one.register("ada"), two.register("bob"), one.register("cleo")

        async def story() -> list[list[str]]:
            urls = cluster.urls
            async with (
                Client(ada.profile, urls) as sender,
                Client(bob.profile, [urls[1], urls[2]]) as at_two,
                Client(cleo.profile, [urls[2], urls[0]]) as at_three,
                asyncio.timeout(WAIT_S),
            ):
                receipts: list[Receipt] = []
                for n in range(MESSAGES):
                    receipts += [await sender.send(to, f"{to} {n}") for to in ("bob", "cleo")]
                    if n == MESSAGES // 3:
                        await receipts[-1].sent()
                        await asyncio.to_thread(two.kill)
                    if n == 2 * MESSAGES // 3:
                        await receipts[-1].sent()
                        await asyncio.to_thread(two.start)
                for receipt in receipts:
                    await receipt.delivered()
                return [
                    [message.text for message in client.history("ada") if not message.own]
                    for client in (at_two, at_three)
                ]

        shown = asyncio.run(story())
        assert shown == [[f"{to} {n}" for n in range(MESSAGES)] for to in ("bob", "cleo")]


def test_a_node_that_stops_hands_its_shards_over_and_what_was_sent_is_kept(
    engines: StartedEngines, tmp_path: Path
) -> None:
    with running_cluster(engines, tmp_path, 2) as cluster:
        one, two = cluster.nodes
        ada, bob = one.register("ada"), two.register("bob")
        with sync(ada, cluster, 0) as sender:
            sender.wait(sender.send("bob", "before"), Tick.SENT, WAIT_S)
            one.stop()
            assert "stopped" in one.log
            sender.wait(sender.send("bob", "after"), Tick.SENT, WAIT_S)
            seen = looked_at(cluster, {"node2"})
            assert ([node.name for node in seen.nodes], len(seen.shards)) == (["node2"], SHARDS)
            with sync(bob, cluster, 1) as recipient:
                assert [recipient.receive(timeout=WAIT_S).text for _ in range(2)] == ["before", "after"]
        two.stop()
        # Everything is in the engines: a cluster of new nodes goes on from there.
        one.start()
        with sync(ada, cluster, 0) as sender, sync(bob, cluster, 0) as recipient:
            sender.send("bob", "next day")
            assert recipient.receive(timeout=WAIT_S).text == "next day"


def test_a_node_that_was_paused_wakes_as_a_zombie_and_does_no_harm(engines: StartedEngines, tmp_path: Path) -> None:
    with running_cluster(engines, tmp_path, 2) as cluster:
        one, two = cluster.nodes
        ada, bob = one.register("ada"), two.register("bob")
        looked_at(cluster, {"node1", "node2"})
        with sync(ada, cluster, 0) as sender, sync(bob, cluster, 1) as recipient:
            sender.wait(sender.send("bob", "before"), Tick.SENT, WAIT_S)
            assert one.pid is not None
            os.kill(one.pid, signal.SIGSTOP)
            try:
                # Written while the one who appended it cannot say what became of it.
                sender.send("bob", "meanwhile")
                looked_at(cluster, {"node2"})
            finally:
                os.kill(one.pid, signal.SIGCONT)
            looked_at(cluster, {"node1", "node2"})
            sender.wait(sender.send("bob", "after"), Tick.SENT, WAIT_S)
            assert [recipient.receive(timeout=WAIT_S).text for _ in range(3)] == ["before", "meanwhile", "after"]
        assert "shards lost" in one.log
        assert [node.pid is not None for node in cluster.nodes] == [True, True]
