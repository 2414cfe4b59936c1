"""How long a node takes to restart after `kill -9`, and whether all data is there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .crash import DEVICES
from .figures import Figures
from .measured_node import Broken, Rig
from .meter import rss_mib
from .scenario_setup import Settings, data_folder


def recovery(settings: Settings) -> Iterator[Figures]:
    """Once with nothing saved, once with checkpoints as usual."""
    yield _crash_and_recover("recovery-unsaved", settings, saves=False)
    yield _crash_and_recover("recovery-saved", settings, saves=True)


def _crash_and_recover(name: str, settings: Settings, *, saves: bool) -> Figures:
    with data_folder(settings) as folder:
        promised = _work_and_die(folder, settings.recovery, saves=saves)
        began, spent = time.monotonic(), time.process_time()
        rig = Rig(folder)
        try:
            opened = time.monotonic()
            pointer = rig.pointer
            rig.loop.recover()
            while not rig.loop.ready:
                rig.turn(())
            ready = time.monotonic()
            state = rig.loop.state
            replayed = state.offset - pointer
            if state.offset < promised["last"]:
                raise Broken(f"{promised['last']} records were durable, {state.offset} were recovered")
            filed = sum(stream.lanes[0].last for stream in state.streams.values() if stream)
            if not saves and filed < promised["answered"]:
                raise Broken(f"{promised['answered']} messages were answered, {filed} were recovered")
            return Figures(
                scenario=name,
                messages=promised["delivered"],
                devices=DEVICES,
                recovery_s=round(ready - began, 3),
                rss_mib=rss_mib(),
                more={
                    "opening_s": round(opened - began, 3),
                    "replay_s": round(ready - opened, 3),
                    "cpu_s": round(time.process_time() - spent, 3),
                    "replayed_records": replayed,
                    "records_per_s": round(replayed / max(ready - opened, 1e-9)),
                },
            )
        finally:
            rig.close()


def _work_and_die(folder: Path, messages: int, *, saves: bool) -> dict[str, int]:
    command = (sys.executable, "-m", "bench.crash", str(folder), str(messages), "1" if saves else "0")
    died = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False)
    if died.returncode != -9:
        raise Broken(f"the node was to be killed, but ended with {died.returncode}: {died.stderr.strip()[-400:]}")
    return json.loads(died.stdout)
