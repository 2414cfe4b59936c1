"""The newest recorded results as a picture: docs/performance.svg. Drawn by hand, for both light and dark pages.

    make bench BENCH=--record && make bench-plot

Knows:   the goals. Bars are measured values, ticks are goals.
Touches: bench/results.jsonl, read only; the one file it draws.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from bench.figures import RESULTS

from .figures import BENCH

PICTURE = Path(__file__).parent.parent.parent / "docs" / "performance.svg"

AIMS: tuple[tuple[str, str, str, float | None], ...] = (
    ("µs of server CPU per message", "busy", "server_us", 20),
    ("µs of server CPU per message", "crowd", "server_us", None),
    ("µs of server CPU per message", "phone", "server_us", 60),
    ("µs of server CPU per message", "phone_open", "server_us", 130),
    ("µs of server CPU per message", "mosquitto", "server_us", None),
    ("messages per second", "peers", "rate", None),
    ("messages per second", "mosquitto", "rate", None),
    ("messages per second", "mosquitto_grouped", "rate", None),
    ("messages per second", "offline", "stored_per_s", 60_000),
    ("messages per second", "offline", "drained_per_s", 60_000),
    ("p99 until the receipt, ms", "phone_open", "p99_ms", 20),
    ("p99 until the receipt, ms", "storm", "p99_ms", 100),
    ("p99 until the receipt, ms", "busy", "p99_ms", None),
    ("KiB of user memory per idle connection", "idle", "kib_per_connection", 16),
)
"""(group, scenario, field, aim): what is drawn, where it was measured."""

MEANINGS: dict[str, str] = {
    "busy": "50 pairs of devices, 8 messages in flight each",
    "crowd": "500 pairs of devices, 8 messages in flight each",
    "phone": "1,000 devices in pairs, one message in flight each",
    "phone_open": "the same devices, 7,500 messages a second at random moments",
    "peers": "like busy, on the same machine in turn with Mosquitto",
    "mosquitto": "the MQTT broker Mosquitto: QoS 1, persistence, no fsync, a receipt for each message",
    "mosquitto_grouped": "the same, with one receipt for all messages that one read brought",
    "offline": "500 devices are away and 200 messages wait for each: stored while away, drained when back",
    "storm": "all devices reconnect at once; the latency is that of 50 pairs that go on talking",
    "idle": "up to 20,000 connections that only send heartbeats",
}
"""Scenario → what it is, in one line."""

WIDTH, LEFT, BAR, ROW, HEAD, LINE = 760, 210, 430, 24, 38, 16
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.group { font-weight: 600 } .small { fill: #57606a; font-size: 11px }
.bar { fill: #4a7fb5 } .other { fill: #b0b8c1 } .aim { stroke: #d1242f; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #8d96a0 } .bar { fill: #5b9bd5 } .other { fill: #57606a }
}
"""


def newest(lines: Iterable[str]) -> tuple[dict[str, dict[str, Any]], str]:
    """Scenario → its newest results, and when and where the newest of all were measured."""
    found: dict[str, dict[str, Any]] = {}
    when = ""
    for line in map(json.loads, lines):
        if line.get("bench") == BENCH:
            found |= {result["scenario"]: result for result in line["results"] if result.get("rate") is not None
                      or result.get("kib_per_connection") is not None}  # fmt: skip
            when = f"{line['date'][:10]}, {line['commit']}"
    return found, when


def draw(found: dict[str, dict[str, Any]], when: str) -> str:
    parts: list[str] = []
    y = 10
    for group in dict.fromkeys(aim[0] for aim in AIMS):
        rows = [
            (f"{scenario}: {field.removesuffix('_per_s')}" if field.endswith("_per_s") else scenario, value, aim)
            for title, scenario, field, aim in AIMS
            if title == group and (value := found.get(scenario, {}).get(field)) is not None
        ]
        if not rows:
            continue
        y += HEAD - ROW // 2
        parts.append(f'<text class="group" x="10" y="{y}">{escape(group)}</text>')
        most = max(max(value, aim or 0) for _, value, aim in rows)
        for name, value, aim in rows:
            y += ROW
            parts += _bar(name, value, aim, most, y)
        y += ROW // 2
    calibrations = sorted(result["calibration_ns"] for result in found.values() if result.get("calibration_ns"))
    middle = calibrations[len(calibrations) // 2] / 1e6 if calibrations else 0
    y += HEAD - ROW // 2
    for words in (
        *(f"{name}: {MEANINGS[name]}" for name in dict.fromkeys(aim[1] for aim in AIMS) if name in found),
        "A message counts when its sender has the receipt. Red line: the goal. Grey: Mosquitto, for comparison.",
        f"Measured {when}. Calibration {middle:.2f} ms: fixed work that takes 0.56 ms if nothing else runs.",
    ):
        parts.append(f'<text class="small" x="10" y="{y}">{escape(words)}</text>')
        y += LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 14}" viewBox="0 0 {WIDTH} {y + 14}">'
    return "\n".join((head, f"<style>{STYLE}</style>", *parts, "</svg>\n"))


def _bar(name: str, value: float, aim: float | None, most: float, y: int) -> list[str]:
    length = max(1, round(value / most * BAR))
    kind = "other" if name.startswith("mosquitto") else "bar"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    parts = [
        f'<text x="{LEFT - 10}" y="{y}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{y - 12}" width="{length}" height="15" rx="2"/>',
        f'<text x="{LEFT + length + 8}" y="{y}">{shown}</text>',
    ]
    if aim is not None:
        x = LEFT + round(aim / most * BAR)
        parts.append(f'<line class="aim" x1="{x}" y1="{y - 15}" x2="{x}" y2="{y + 6}"/>')
    return parts


def main() -> int:
    found, when = newest(RESULTS.read_text("utf-8").splitlines()) if RESULTS.exists() else ({}, "")
    if not found:
        print("nothing was recorded yet: make bench BENCH=--record", file=sys.stderr)
        return 1
    PICTURE.write_text(draw(found, when), "utf-8")
    print(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
