"""`make bench-cluster`: two nodes on one Kafka and one Cassandra, against a node alone, in turns within one run.

    python -m bench.cluster --rate 1000 --seconds 5 --turns 2

Two scenarios: *lifecycle*, in which messages fall due at a fixed rate, and *saturation*, in which every pair has eight
on the way. CPU is that of Nightmail's own processes; that of the engines, warm-up included, is told beside it. Half of
the devices are on each node, and half of the shards: what one node takes in, the other one often folds.

Each line on standard output is a scenario as JSON: `ratio_to_embedded` compares CPU per message with the node alone.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from engines.engines import Engines
from engines.jars import NoEngine
from engines.plans import HOST
from nightmail.server.cluster_settings import SHARED_SECRETS

from .node import people
from .node.checks import add_up, quantile_ms
from .node.load_messages import Order, Seen
from .node.machine import Calibration, cpu_ns
from .node.server import ADMIT_ALL, Server
from .node.workers import Load

USED = ("kafka", "cassandra")
NODES, SHARDS = 2, 8
IN_FLIGHT = 8


class Side(Struct):
    """What one of the two has shown so far, over all its turns."""

    messages: int = 0
    seconds: float = 0.0
    own_ns: int = 0
    engines_ns: int = 0
    waited_ns: int = 0
    latency: dict[int, int] = {}
    answer: dict[int, int] = {}
    broken: int = 0
    """Messages that were lost, doubled, reordered or changed."""
    why: str = ""

    def add(self, parts: Sequence[Seen], engines_ns: int) -> None:
        self.messages += sum(part.messages for part in parts)
        self.seconds += max(part.seconds for part in parts)
        self.engines_ns += engines_ns
        self.waited_ns += max(part.waited_ns for part in parts)
        self.latency = add_up([self.latency, *(part.latency for part in parts)])
        self.answer = add_up([self.answer, *(part.answer for part in parts)])
        for part in parts:
            tally = part.tally
            self.broken += tally.lost + tally.doubled + tally.reordered + tally.changed
            self.why = self.why or part.why

    @property
    def own_us(self) -> float:
        return self.own_ns / 1_000 / max(self.messages, 1)


class Bench:
    def __init__(self, pairs: int, seconds: float, turns: int) -> None:
        self._pairs, self._seconds, self._turns = pairs, seconds, turns
        self._calibration = Calibration()
        self._met = 0
        """Persons who have talked: a load begins to number its messages at 1, so each has people of its own."""

    def start(self, folder: Path, stack: ExitStack) -> None:
        """Raises NoEngine."""
        self._engines = engines = Engines(folder / "engines")
        stack.callback(engines.down)
        engines.up(USED)
        settings = self._settings()
        words = [sys.executable, "-m", "nightmail", "cluster", "init"]
        subprocess.run(words, check=True, env={**os.environ, **settings}, stdout=subprocess.DEVNULL)
        self._nodes = [
            Server(folder / f"node{n}", {**ADMIT_ALL, **settings, "NIGHTMAIL_SERVER__NODE": f"node{n}"})
            for n in range(1, NODES + 1)
        ]
        self._alone = Server(folder / "alone", ADMIT_ALL)
        for server in (*self._nodes, self._alone):
            stack.enter_context(server)
        for server in (self._nodes[0], self._alone):
            people.register_by_http(server.port, range(2 * self._pairs * 2 * self._turns))

    def _settings(self) -> dict[str, str]:
        plans = self._engines.plans
        cluster = {
            "ENABLED": "true", "SHARDS": str(SHARDS), "BROKERS": f"{HOST}:{plans['kafka'].port}", "REPLICAS": "1",
            "HOSTS": HOST, "CQL_PORT": str(plans["cassandra"].port), "COPIES": "1",
        }  # fmt: skip
        shared = secrets.token_urlsafe(32)
        secret = {f"NIGHTMAIL_{name.upper().replace('.', '__')}": shared for name in SHARED_SECRETS}
        return {f"NIGHTMAIL_CLUSTER__{name}": value for name, value in cluster.items()} | secret

    def measure(self, scenario: str, rate: float) -> dict[str, object]:
        cluster, alone = Side(), Side()
        for _ in range(self._turns):
            self._turn(cluster, self._nodes, rate)
            self._turn(alone, [self._alone], rate)
            self._met += 2 * self._pairs
        return {
            "scenario": scenario, "rate": round(cluster.messages / cluster.seconds),
            "p50_ms": quantile_ms(cluster.latency, 0.5), "p99_ms": quantile_ms(cluster.latency, 0.99),
            "sent_p99_ms": quantile_ms(cluster.answer, 0.99),
            "server_us": round(cluster.own_us, 1), "embedded_us": round(alone.own_us, 1),
            "ratio_to_embedded": round(cluster.own_us / alone.own_us, 2),
            "embedded_rate": round(alone.messages / alone.seconds),
            "embedded_p99_ms": quantile_ms(alone.latency, 0.99),
            "engines_us_at_most": round(cluster.engines_ns / 1_000 / max(cluster.messages, 1), 1),
            "waited_share": round(cluster.waited_ns / 1e9 / cluster.seconds, 3),
            "messages": cluster.messages, "broken": cluster.broken + alone.broken, "why": cluster.why or alone.why,
        }  # fmt: skip

    def _turn(self, side: Side, servers: Sequence[Server], rate: float) -> None:
        """Two load processes against either side: the load itself costs both the same."""
        share = self._pairs // 2 * 2
        orders = [
            Order(
                job="talk", port=servers[n % len(servers)].port, server=servers[n % len(servers)].pid,
                first=self._met + n * share, count=share, window=1 if rate else IN_FLIGHT, both_ways=bool(rate),
                rate=rate / 2,
            )
            for n in range(2)
        ]  # fmt: skip
        pids = [pid for kind in USED if (pid := self._engines.pid(kind))]
        with Load(orders, self._calibration) as load:
            before = sum(map(cpu_ns, pids))
            load.begin(self._seconds)
            parts = [worker.hear() for worker in load.workers]
            side.add(parts, sum(map(cpu_ns, pids)) - before if len(servers) > 1 else 0)
        # One server has both loads before it: its clock is read by both.
        own = [part.server_ns for part in parts]
        side.own_ns += sum(own) if len(servers) > 1 else max(own)
        for server in servers:
            server.check()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description="A cluster against a node alone.")
    parser.add_argument("--rate", type=float, default=1_000.0)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    bench, is_broken = Bench(given.pairs, given.seconds, given.turns), False
    with tempfile.TemporaryDirectory(prefix="nightmail-bench-") as folder, ExitStack() as stack:
        try:
            bench.start(Path(folder), stack)
        except NoEngine as why:
            print(f"bench-cluster: NOT RUN: {why}", file=sys.stderr)
            return 1
        for scenario, rate in (("lifecycle", given.rate), ("saturation", 0.0)):
            found = bench.measure(scenario, rate)
            print(json.dumps(found), flush=True)
            is_broken |= bool(found["broken"] or found["why"])
    return 1 if is_broken else 0


if __name__ == "__main__":
    sys.exit(main())
