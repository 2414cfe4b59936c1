"""Run every attack against a server, each while a calm pair talks:  make attacks

Knows:   the bounds that a calm pair and a newcomer are promised (docs/threats.md).
Touches: a server process for each attack, on a temporary folder; a process for the attackers.

Standard error gets a table; the last line of standard output is a JSON list, one object for each attack.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from pathlib import Path

from msgspec import Struct, structs

from bench.node.machine import usage
from nightmail.server.config import SETTINGS
from nightmail.testing import RunningServer, running_server
from nightmail.testing.running import SMALL

from .calm import make_pair, quantile_ms, slowest_newcomer_s
from .connection import register
from .hostile import ATTACKS

SECONDS = 6.0
"""Of calm, and then of each attack."""
TIMES_CALM, ENOUGH_MS, CONNECT_MS = 5, 50.0, 1_000.0
"""The pair's p99 stays under so many times its calm value, or under so many ms; a newcomer is let in within this."""

TRIES = 3
"""An attack that misses its bounds is tried again. A machine that others use stands still now and then, also in calm
moments; what the server does wrong, it does each time."""

DEFAULTS = {name: SETTINGS[name].default for name in SMALL if name.startswith(("gateway.address", "http."))}
"""A server for tests has no such limits; this one is like any other."""


class Result(Struct, frozen=True):
    attack: str
    calm_p99_ms: float | None
    """None, here and below: a message never arrived, or a newcomer was refused."""
    p99_ms: float | None
    connect_ms: float | None
    """The slowest newcomer."""
    refused: int
    """Connections, requests and records of the attackers that the server refused or ended."""
    rss_mib: float
    """Memory of the server at the end of the attack."""
    cpu_share: float = 0.0
    """Of one core, that the server used during the attack."""
    waited_share: float = 0.0
    """Of the attack's time, that its event loop stood ready while something else had the core. A bound that is missed
    with much of it says more about the machine than about the server."""
    tries: int = 1
    """How many times the attack was run. The other figures are those of the last one."""

    def is_within_bounds(self) -> bool:
        calm, p99, connect = (
            math.inf if each is None else each for each in (self.calm_p99_ms, self.p99_ms, self.connect_ms)
        )
        return p99 < max(TIMES_CALM * min(calm, CONNECT_MS), ENOUGH_MS) and connect < CONNECT_MS


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def finite(value: float) -> float | None:
    return round(value, 1) if math.isfinite(value) else None


async def run(name: str, seconds: float, server: RunningServer) -> Result:
    port, pid = server.port, server.pid
    assert pid is not None
    pair, newcomer = await make_pair(port), await register(port, "calm-carol")
    calm = await pair.talk(seconds)
    attackers = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "attacks.hostile", name, str(port), str(seconds + 1), str(pair.bob.device),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    # The attackers need a moment to start; what they do before the pair talks again hurts nobody less.
    await asyncio.sleep(1.0)
    began, before = time.monotonic_ns(), usage(pid)
    waits, connect_s = await asyncio.gather(pair.talk(seconds), slowest_newcomer_s(port, newcomer, seconds))
    elapsed, used, memory = time.monotonic_ns() - began, usage(pid).since(before), rss_mib(pid)
    said, _ = await attackers.communicate()
    return Result(
        name, finite(quantile_ms(calm, 0.99)), finite(quantile_ms(waits, 0.99)), finite(connect_s * 1_000),
        json.loads(said)["refused"] if said else 0, memory,
        round(used.cpu / elapsed, 2), round(used.waited / elapsed, 2),
    )  # fmt: skip


def attack(name: str, seconds: float, tries: int) -> Result:
    """Run an attack against a new server, and print how it went."""
    with running_server(DEFAULTS) as server:
        result = structs.replace(asyncio.run(run(name, seconds, server)), tries=tries)
    cells = "".join(f"{each!s:>10}" for each in structs.astuple(result)[1:])
    print(f"{name:28}{cells}  {'' if result.is_within_bounds() else 'MISSED'}", file=sys.stderr, flush=True)
    return result


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="attacks")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of calm, and of each attack")
    parser.add_argument("--only", default="", help="names with commas between")
    options = parser.parse_args(words)
    names: list[str] = options.only.split(",") if options.only else list(ATTACKS)
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"no such attack: {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    titles = ("calm p99", "p99", "connect", "refused", "RSS MiB", "CPU", "waited", "tries")
    print(f"{'attack':28}{''.join(f'{title:>10}' for title in titles)}", file=sys.stderr)
    results: list[Result] = []
    for name in names:
        result = attack(name, options.seconds, 1)
        while not result.is_within_bounds() and result.tries < TRIES:
            result = attack(name, options.seconds, result.tries + 1)
        results.append(result)
    print(json.dumps([structs.asdict(result) for result in results]))
    return 0 if all(result.is_within_bounds() for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
