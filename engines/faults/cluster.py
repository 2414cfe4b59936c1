"""A cluster that faults can happen to: one Kafka, one Cassandra, nodes, and a relay before each of them.

Knows:   how each fault is made, and how it is ended.
Touches: the processes that it started. All have ended when it is left.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from engines.cluster import settings
from engines.engines import Engines
from nightmail.testing.running import RunningServer, ServerFailed, free_port

from .cql import CqlWatch
from .plan import Fault, Kind
from .relays import Relay, RelayThread, process_behind
from .skewed_node import write_skew
from .timing import NodeLog, Outages, Takeovers

USED = ("kafka", "cassandra")
STARTS = 20
"""How often a node is started before it is given up: it does not start while an engine is away."""


class Node(RunningServer):
    """One of the cluster's, with a clock that can be set."""

    def __init__(self, name: str, file: Path, folder: Path, port: int, seen_at: int) -> None:
        self.name, self.skew_file = name, folder / f"{name}.skew"
        write_skew(self.skew_file, 0)
        super().__init__(
            {
                "config": file, "server.node": name, "log.level": "info", "log.format": "json",
                "cluster.node_port": port, "cluster.node_address": f"127.0.0.1:{seen_at}",
            },
            folder / name,
        )  # fmt: skip
        self.program = ("-m", "engines.faults.skewed_node", str(self.skew_file))

    @property
    def fell(self) -> bool:
        """It has ended, and nobody has ended it."""
        return self._process is not None and self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        if self.pid:
            os.kill(self.pid, number)

    def start_at_last(self) -> None:
        """Raises ServerFailed."""
        for _ in range(STARTS):
            with suppress(ServerFailed):
                self.start()
                return
        self.start()


class FaultyCluster:
    def __init__(self, folder: Path, nodes: int) -> None:
        self._folder, self._count = folder, nodes
        self.nodes: list[Node] = []
        self.watch, self.outages = CqlWatch(), Outages()
        self.takeovers = Takeovers(self.outages)
        self._logs: list[NodeLog] = []
        self._before_nodes: list[Relay] = []
        self._before: dict[str, Relay] = {}
        self._stack = AsyncExitStack()
        self._busy = {name: asyncio.Lock() for name in (*USED, "writes", "devices", *map(str, range(nodes)))}

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        self._relays = RelayThread()
        self._stack.callback(self._relays.close)
        who, file = self._who, self._folder / "cluster.toml"
        self._before = {"kafka": Relay(0, who), "cassandra": Relay(0, who, self.watch.filters)}
        for relay in self._before.values():
            await self._relay(relay)
        self.engines = Engines(self._folder / "engines", {"kafka": self._before["kafka"].port})
        self._stack.callback(self.engines.down)
        await asyncio.to_thread(self.engines.up, USED)
        for kind, relay in self._before.items():
            relay.upstream = self.engines.plans[kind].port
        ports = {kind: relay.port for kind, relay in self._before.items()}
        file.write_text(settings(ports, secrets.token_urlsafe(32)) + "[data]\ncheckpoint_ms = 1000\n")
        making = [sys.executable, "-m", "nightmail", "cluster", "init", "--config", str(file)]
        await asyncio.to_thread(subprocess.run, making, check=True, stdout=subprocess.DEVNULL)
        for number in range(self._count):
            relay = Relay(free_port(), who)
            await self._relay(relay)
            node = Node(f"node{number + 1}", file, self._folder, relay.upstream, relay.port)
            self._before_nodes.append(relay)
            self.nodes.append(node)
            self._stack.push_async_exit(node)
        await asyncio.gather(*(node.__aenter__() for node in self.nodes))
        self._logs = [NodeLog(node.home / "server.log") for node in self.nodes]

    async def _relay(self, relay: Relay) -> None:
        await self._relays.do(relay.start(free_port()))
        self._stack.push_async_callback(lambda: self._relays.do(relay.close()))

    def _who(self, port: int, relay: int) -> str:
        return process_behind(port, relay, [(node.name, node.pid) for node in self.nodes if node.pid])

    def read_logs(self) -> None:
        for node, log in zip(self.nodes, self._logs, strict=True):
            for line in log.lines():
                self.takeovers.said(node.name, line)

    @property
    def fallen(self) -> list[str]:
        return [node.name for node in self.nodes if node.fell]

    # --- faults ---------------------------------------------------------------------------------

    def concerned(self, fault: Fault) -> list[str]:
        """What no second fault may happen to meanwhile."""
        match fault.kind:
            case Kind.KILL_KAFKA | Kind.PAUSE_KAFKA:
                return ["kafka"]
            case Kind.KILL_CASSANDRA | Kind.PAUSE_CASSANDRA:
                return ["cassandra"]
            case Kind.REFUSE_WRITES:
                return ["writes"]
            case Kind.CUT_NODES:
                return sorted([str(fault.node), str(fault.other)])
            case Kind.TWO_NODES:
                return ["devices"]
            case _:
                return [str(fault.node)]

    async def suffer(self, fault: Fault) -> None:
        """Returns when it is over, and what it concerned serves again."""
        async with AsyncExitStack() as held:
            for name in self.concerned(fault):
                await held.enter_async_context(self._busy[name])
            await self._suffer(fault)

    async def _suffer(self, fault: Fault) -> None:
        node, other = self.nodes[fault.node], self.nodes[fault.other]
        match fault.kind:
            case Kind.KILL_NODE | Kind.STOP_NODE:
                self.read_logs()
                if fault.kind is Kind.KILL_NODE:
                    self.takeovers.gone(node.name, is_dead=True)
                else:
                    self.takeovers.forget(node.name)
                await asyncio.to_thread(node.kill if fault.kind is Kind.KILL_NODE else node.stop)
                await asyncio.sleep(fault.lasts_s)
                await asyncio.to_thread(node.start_at_last)
            case Kind.PAUSE_NODE:
                self.read_logs()
                node.signal(signal.SIGSTOP)
                self.takeovers.gone(node.name, is_dead=False)
                try:
                    await asyncio.sleep(fault.lasts_s)
                finally:
                    node.signal(signal.SIGCONT)
            case Kind.CUT_NODES:
                await self._cut(
                    [(self._before_nodes[fault.node], other.name), (self._before_nodes[fault.other], node.name)],
                    fault.lasts_s,
                )
            case Kind.CUT_KAFKA:
                self.read_logs()
                self.takeovers.gone(node.name, is_dead=False)
                await self._cut([(self._before["kafka"], node.name)], fault.lasts_s)
            case Kind.CUT_CASSANDRA:
                await self._cut([(self._before["cassandra"], node.name)], fault.lasts_s)
            case Kind.KILL_KAFKA | Kind.PAUSE_KAFKA:
                await self._lose("kafka", fault.lasts_s, is_killed=fault.kind is Kind.KILL_KAFKA)
            case Kind.KILL_CASSANDRA | Kind.PAUSE_CASSANDRA:
                await self._lose("cassandra", fault.lasts_s, is_killed=fault.kind is Kind.KILL_CASSANDRA)
            case Kind.REFUSE_WRITES:
                self.watch.refusing = True
                await asyncio.sleep(fault.lasts_s)
                self.watch.refusing = False
            case Kind.CLOCK:
                write_skew(node.skew_file, fault.skew_ms)
            case Kind.TWO_NODES:
                raise AssertionError("the run's devices do so, not the cluster")

    async def _cut(self, links: list[tuple[Relay, str]], lasts_s: float) -> None:
        for relay, name in links:
            relay.cut(name)
        await asyncio.sleep(lasts_s)
        for relay, name in links:
            relay.heal(name)

    async def _lose(self, engine: str, lasts_s: float, *, is_killed: bool) -> None:
        self.outages.begin(engine)
        if is_killed:
            await asyncio.to_thread(self.engines.kill, engine)
            await asyncio.sleep(lasts_s)
            await asyncio.to_thread(partial(self.engines.up, [engine]))
        elif pid := self.engines.pid(engine):
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(lasts_s)
            os.kill(pid, signal.SIGCONT)
        self.outages.end(engine)
