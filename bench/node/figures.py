"""What a scenario found: a row for people, an object for machines, and a line in the book of results."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from bench import figures as heart

from .checks import quantile_ms
from .load_messages import Seen

BUSY_LOAD = 0.8
"""A load process that uses more of a core than this may be what is measured."""
BENCH = "node"


class Figures(Struct, kw_only=True):
    """One scenario. `_us`: microseconds of CPU per message, from sending to the receipt."""

    scenario: str
    rate: float | None = None
    """Messages per second of wall time."""
    server_us: float | None = None
    load_us: float | None = None
    p50_ms: float | None = None
    """From the (scheduled) sending until the sender has the receipt."""
    p99_ms: float | None = None
    p999_ms: float | None = None
    calibration_ns: int | None = None
    lost: int | None = None
    doubled: int | None = None
    reordered: int | None = None
    changed: int | None = None
    broken: str | None = None
    """The promise that was not kept."""
    skipped: str | None = None
    """Why it could not be measured here."""
    more: dict[str, object] = {}
    """What applies to this scenario only; in JSON beside the others."""

    @property
    def is_broken(self) -> bool:
        return bool(self.broken or self.lost or self.doubled or self.reordered or self.changed)


ALWAYS = ("scenario", "rate", "server_us", "load_us", "p50_ms", "p99_ms", "p999_ms", "calibration_ns")


def from_seen(scenario: str, seen: Seen, calibration_ns: int, loads: int = 1, **more: object) -> Figures:
    """A window's figures."""
    messages, seconds = max(seen.messages, 1), max(seen.seconds, 1e-9)
    tally = seen.tally
    load_share = round(seen.load_ns / seconds / 1e9 / loads, 3)
    figures = Figures(
        scenario=scenario,
        rate=round(seen.messages / seconds),
        server_us=round(seen.server_ns / 1_000 / messages, 2),
        load_us=round(seen.load_ns / 1_000 / messages, 2),
        p50_ms=quantile_ms(seen.latency, 0.5),
        p99_ms=quantile_ms(seen.latency, 0.99),
        p999_ms=quantile_ms(seen.latency, 0.999),
        calibration_ns=calibration_ns,
        lost=tally.lost,
        doubled=tally.doubled,
        reordered=tally.reordered,
        changed=tally.changed,
        broken=seen.why or None,
        more={
            "messages": seen.messages,
            "seconds": round(seconds, 2),
            "cpu_share": round(seen.server_ns / seconds / 1e9, 4),
            "load_share": load_share,
            "waited_share": round(seen.waited_ns / seconds / 1e9, 4),
            "loads": loads,
            "repeated": tally.repeated,
            **more,
        },
    )
    if seen.loop_ns:
        figures.more["loop_us"] = round(seen.loop_ns / 1_000 / messages, 2)
        figures.more["system_us"] = round(seen.system_ns / 1_000 / messages, 2)
    if seen.answer:
        figures.more["answer_p50_ms"] = quantile_ms(seen.answer, 0.5)
        figures.more["answer_p99_ms"] = quantile_ms(seen.answer, 0.99)
    if load_share > BUSY_LOAD:
        figures.more["warning"] = f"a load process used {load_share:.0%} of a core: it may be what was measured"
    return figures


def as_object(figures: Figures) -> dict[str, object]:
    """With everything that applies, and nothing that does not."""
    fields = msgspec.to_builtins(figures)
    more = fields.pop("more")
    return {name: value for name, value in fields.items() if value is not None or name in ALWAYS} | more


# --- showing them -----------------------------------------------------------------------------

COLUMNS = (
    ("rate/s", "rate", 9), ("server µs", "server_us", 11), ("load µs", "load_us", 9), ("server", "cpu_share", 8),
    ("load", "load_share", 8), ("waited", "waited_share", 8), ("p50 ms", "p50_ms", 9), ("p99 ms", "p99_ms", 9),
    ("p99.9 ms", "p999_ms", 10),
    ("lost", "lost", 6), ("doubled", "doubled", 9), ("reord.", "reordered", 8), ("calib ms", "calibration_ns", 10),
)  # fmt: skip
NAME = 26
IN_COLUMNS = {"messages", "seconds", "loads", "repeated", *(name for _, name, _ in COLUMNS)}


def heading() -> str:
    return "".ljust(NAME) + "".join(title.rjust(width) for title, _, width in COLUMNS)


def row(figures: Figures) -> str:
    """A scenario's line, and one for all that has no column."""
    if figures.skipped:
        return f"{figures.scenario:<{NAME}}skipped: {figures.skipped}"
    values = as_object(figures)
    cells = [_cell(name, values.get(name)).rjust(width) for _, name, width in COLUMNS]
    others = [f"{name} {_plain(value)}" for name, value in figures.more.items() if name not in IN_COLUMNS]
    lines = [figures.scenario.ljust(NAME) + "".join(cells)]
    if others:
        lines.append("    " + ", ".join(others))
    if figures.is_broken:
        lines.append(f"    BROKEN: {figures.broken or 'see lost, doubled, reordered, changed'}")
    return "\n".join(lines)


def _cell(name: str, value: object) -> str:
    match value:
        case float() | int() if name == "calibration_ns":
            return f"{value / 1e6:.2f}"
        case float() | int() if name in {"cpu_share", "load_share", "waited_share"}:
            return f"{value:.1%}"
        case _:
            return _plain(value)


def _plain(value: object) -> str:
    match value:
        case None:
            return "·"
        case float():
            return f"{value:.2f}" if value < 1_000 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


# --- keeping them -----------------------------------------------------------------------------


def as_json(results: Sequence[Figures]) -> str:
    return json.dumps([as_object(figures) for figures in results])


def record(results: Sequence[Figures], options: dict[str, object]) -> None:
    """Append to the results that are kept beside the code."""
    commit = subprocess.run(
        ("git", "describe", "--always", "--dirty"),
        cwd=heart.RESULTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    line = {
        "bench": BENCH,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "options": options,
        "results": [as_object(figures) for figures in results],
    }
    with heart.RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
