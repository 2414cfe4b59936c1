"""`make run-cluster`: one Kafka, one Cassandra, one Redis and three Nightmail nodes on loopback, until Ctrl-C.

Knows:   the settings of a cluster to try.
Touches: the folder of the engines, which keeps the data; the processes it started. All have ended when it returns.
"""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .engines import Engines
from .jars import NoEngine
from .plans import HOST

NODES = 3
FIRST_PORT = 8641
SHARDS = 8
USED = ("kafka", "cassandra", "redis")


def settings(ports: Mapping[str, int], secret: str) -> str:
    """`ports`: where nodes reach each engine. Without that of Redis, nodes ask each other who is connected."""
    redis = f'redis_url = "redis://{HOST}:{ports["redis"]}/0"' if "redis" in ports else ""
    return f"""# Written by a program. Every node reads it.
[cluster]
enabled = true
shards = {SHARDS}
brokers = "{HOST}:{ports["kafka"]}"
replicas = 1
hosts = "{HOST}"
cql_port = {ports["cassandra"]}
copies = 1
{redis}
[accounts]
secret = "{secret}"
[schedule]
secret = "{secret}"
[operator]
token = "{secret}"
"""


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".engines").absolute()
    engines, file = Engines(folder), folder / "cluster.toml"
    nodes: list[subprocess.Popen[bytes]] = []
    nightmail = [sys.executable, "-m", "nightmail"]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        engines.up(USED)
        if not file.exists():
            file.touch(mode=0o600)
            ports = {kind: plan.port for kind, plan in engines.plans.items()}
            file.write_text(settings(ports, secrets.token_urlsafe(32)))
        subprocess.run([*nightmail, "cluster", "init", "--config", str(file)], check=True)
        for n in range(1, NODES + 1):
            words = ["--server-node", f"node{n}", "--port", str(FIRST_PORT + n - 1), "--data", str(folder / f"node{n}")]
            command = [*nightmail, "serve", "--config", str(file), "--log-level", "warning", *words]
            # In a group of its own: Ctrl-C ends this program, which then stops each node once.
            nodes.append(subprocess.Popen(command, process_group=0))
        print(f"\nHow it is: {' '.join(nightmail)} cluster status --config {file}", flush=True)
        print("Kill any node with kill -9, and go on sending. Ctrl-C ends everything; the data stays.", flush=True)
        for node in nodes:
            node.wait()
    except NoEngine as why:
        print(f"run-cluster: {why}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1
    except KeyboardInterrupt:
        pass
    finally:
        for node in nodes:
            if node.poll() is None:
                node.terminate()
        for node in nodes:
            node.wait()
        for kind in USED:
            engines.kill(kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
