"""`make faults N=50`: real nodes on real engines, and one fault after the other while people write.

    python -m engines.faults --faults 50 --seed 1

Nodes are killed, paused beyond their session, stopped, and cut off from each other and from the engines; Kafka and
Cassandra are killed and paused, Cassandra refuses writes, clocks are set, messages reach two nodes at once. The clients
are real and live through all of it. At the end everything heals, and what they saw is judged. What nodes wrote to
Cassandra is compared as it passes: the same key and version must always mean the same bytes.

The last line on standard output is one JSON object. Exit code 0: nothing was lost, doubled or reordered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from engines.jars import NoEngine
from nightmail.verify.run import Progress, Result

from .cluster import FaultyCluster
from .plan import faults
from .run import FaultRun, NodeFell


async def campaign(
    count: int, seed: int, nodes: int, folder: Path, look: Callable[[Progress], None], say: Callable[[str], None]
) -> tuple[FaultRun, FaultyCluster, Result]:
    async with FaultyCluster(folder, nodes) as cluster:
        run = FaultRun(cluster, faults(seed, count, nodes), seed, look, say)
        try:
            return run, cluster, await run()
        finally:
            for node in cluster.nodes:
                (folder / f"{node.name}.log").write_text(node.log)


def summary(run: FaultRun, cluster: FaultyCluster, result: Result, seconds: float) -> dict[str, object]:
    took_s, verdict, watch = cluster.takeovers.took_s, result.verdict, cluster.watch
    return {
        "campaign": "faults", "faults": sum(run.kinds.values()), "messages": verdict.sent, "lost": verdict.lost,
        "doubled": verdict.doubled, "reordered": verdict.reordered, "takeovers": len(took_s),
        "takeover_p50_s": round(median(took_s), 2) if took_s else None,
        "takeover_max_s": round(max(took_s), 2) if took_s else None,
        "silence_max_s": round(run.silences.longest_s, 2), "sent_max_s": round(run.silences.slowest_s, 2),
        "unticked": verdict.unticked, "failed": verdict.failed, "to_group": verdict.to_group,
        "redelivered": result.redelivered, "repeated_sends": result.repeated_sends, "unexplained": result.unexplained,
        "rows_compared": watch.compared, "rows_different": watch.different, "writes_refused": watch.refused,
        "kinds": dict(sorted(run.kinds.items())), "seed": run.plan.seed, "seconds": round(seconds, 1),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m engines.faults", description="Faults of a real cluster, judged by clients."
    )
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder that keeps the logs of nodes and engines")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Whatever ends it, the processes it started end, too.
    page, began = Console(stderr=True, highlight=False), time.monotonic()
    columns = (
        TextColumn("{task.description:20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[sent]} sent"),
    )
    with (
        tempfile.TemporaryDirectory(prefix="nightmail-faults-", ignore_cleanup_errors=True) as made,
        Bar(*columns, TimeElapsedColumn(), console=page, transient=True) as bar,
    ):
        folder = given.keep.absolute() if given.keep else Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        task = bar.add_task("setting up", total=given.faults, sent=0)

        def look(progress: Progress) -> None:
            bar.update(task, completed=progress.kills, description=progress.stage, sent=progress.sent)

        try:
            run, cluster, result = asyncio.run(
                campaign(given.faults, given.seed, given.nodes, folder, look, page.print)
            )
        except NoEngine as why:
            print(f"faults: NOT RUN: {why}", file=sys.stderr)
            return 1
        except NodeFell as who:
            print(f"faults: BROKEN: {who} ended by itself", file=sys.stderr)
            return 1
    for note in (*result.notes, *cluster.watch.notes):
        page.print(note, style="red", markup=False)
    print(json.dumps(summary(run, cluster, result, time.monotonic() - began)))
    return 1 if result.verdict.broken or cluster.watch.different else 0


if __name__ == "__main__":
    sys.exit(main())
