"""A cluster of real processes on real engines, one of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nightmail.server.cluster.admin import make_cluster
from nightmail.server.config import Config, load
from nightmail.testing import RunningServer
from tests.engines.started import StartedEngines

SECRET = "not a secret: every test of a cluster knows it"
SHARDS = 6


class RunningCluster:
    def __init__(self, file: Path, nodes: list[RunningServer]) -> None:
        self.file, self.nodes = file, nodes
        self.config: Config = load(file).config

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]


def write_settings(file: Path, engines: StartedEngines, more: str = "", cluster: str = "") -> None:
    """`more`: further sections; `cluster`: further settings of that section."""
    host, port = engines.address("cassandra").split(":")
    file.write_text(f"""
[cluster]
enabled = true
brokers = "{engines.address("kafka")}"
topic = "{engines.new_name("log")}"
replicas = 1
hosts = "{host}"
cql_port = {port}
keyspace = "{engines.new_name("keyspace")}"
copies = 1
shards = {SHARDS}
buckets = 16
{cluster}
[accounts]
secret = "{SECRET}"
[schedule]
secret = "{SECRET}"
[operator]
token = "{SECRET}"
[data]
checkpoint_ms = 1000
{more}
""")


@contextmanager
def running_cluster(
    engines: StartedEngines, folder: Path, count: int, more: str = "", cluster: str = "",
    flags: Mapping[str, object] | None = None,
) -> Iterator[RunningCluster]:  # fmt: skip
    file = folder / "cluster.toml"
    write_settings(file, engines, more, cluster)
    asyncio.run(make_cluster(load(file).config))
    with ExitStack() as running:
        nodes = [
            running.enter_context(
                RunningServer(
                    {"config": file, "server.node": f"node{n}", "log.level": "info", **(flags or {})},
                    folder / f"node{n}",
                )
            )
            for n in range(1, count + 1)
        ]
        yield RunningCluster(file, nodes)
