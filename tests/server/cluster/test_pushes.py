"""Push over nodes, with real processes: who sleeps is woken, who is connected to another node is not, whatever becomes
of Redis."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nightmail.client import Client
from nightmail.testing.registered_device import RegisteredDevice
from tests.engines.own_redis import PASSWORD, OwnRedis, own_redis
from tests.engines.started import StartedEngines
from tests.outlets.hook import Call, answering

from .running_cluster import RunningCluster, running_cluster

__all__ = ["own_redis"]

WAIT_S = 120
WAKES = {
    "push.unifiedpush": True, "push.grace_ms": 1, "push.again_ms": 1, "schedule.private_networks": "127.0.0.1",
    "gateway.silence_ms": 60_000,
}  # fmt: skip
SLEEPERS = "cleo", "dan", "eve", "finn"


class Calls(list[Call]):
    """Those that a hook has got, for another thread that waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self._more = threading.Condition()

    def append(self, call: Call) -> None:
        with self._more:
            super().append(call)
            self._more.notify_all()

    @property
    def woken(self) -> set[str]:
        return {call.path.rpartition("=")[2] for call in list(self)}

    async def until_woken(self, handles: Sequence[str]) -> None:
        def wait() -> bool:
            with self._more:
                return self._more.wait_for(lambda: self.woken >= set(handles), timeout=WAIT_S)

        assert await asyncio.to_thread(wait), f"{handles} sleep, and only {self.woken} are woken"


async def story(
    cluster: RunningCluster,
    url: str,
    calls: Calls,
    people: Mapping[str, RegisteredDevice],
    stages: Sequence[Callable[[], None]],
) -> None:
    """Ada writes at the first node to Bob, who is connected to the second, and at each stage to one more who sleeps."""
    first, second = cluster.urls
    for handle, device in people.items():
        async with Client(device.profile, [second]) as client:
            await client.http.set_push("unifiedpush", f"{url}&who={handle}")
    async with asyncio.timeout(WAIT_S), Client(people["ada"].profile, [first]) as ada:
        async with Client(people["bob"].profile, [second]) as bob:
            for n, stage in enumerate(stages):
                await asyncio.to_thread(stage)
                await (await ada.send("bob", f"{n}")).delivered()
                await (await ada.send(SLEEPERS[n], f"{n}")).sent()
                await calls.until_woken(SLEEPERS[: n + 1])
            assert [message.text for message in bob.history("ada")] == [f"{n}" for n in range(len(stages))]
        # Who was told something since would have been woken before the sleeper.
        assert calls.woken == set(SLEEPERS[: len(stages)])
        await (await ada.send("bob", "asleep")).sent()
        await calls.until_woken(["bob"])


def live(engines: StartedEngines, folder: Path, settings: str, stages: Sequence[Callable[[], None]]) -> list[str]:
    """Returns what the nodes logged."""
    with running_cluster(engines, folder, 2, cluster=settings, flags=WAKES) as cluster, answering() as hook:
        people = {handle: cluster.nodes[0].register(handle) for handle in ("ada", "bob", *SLEEPERS[: len(stages)])}
        hook.calls = calls = Calls()
        asyncio.run(story(cluster, hook.url, calls, people, stages))
        return [node.log for node in cluster.nodes]


def test_who_is_connected_to_another_node_is_not_woken_while_redis_is_killed_emptied_and_paused(
    engines: StartedEngines, tmp_path: Path, redis: OwnRedis
) -> None:
    settings = f'redis_url = "{redis.url}"\nredis_password = "{PASSWORD}"'
    stages = [lambda: None, redis.kill, redis.start, redis.pause]
    logs = live(engines, tmp_path, settings, stages)
    assert all("Redis does not answer" in log and PASSWORD not in log for log in logs)


def test_without_redis_the_nodes_ask_each_other(engines: StartedEngines, tmp_path: Path) -> None:
    assert all("cluster.redis_url is not set" in log for log in live(engines, tmp_path, "", [lambda: None]))
