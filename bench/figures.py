"""From two samples to what one message costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from .meter import Meter, Sample, rss_mib

RESULTS = Path(__file__).parent / "results.jsonl"


class Figures(Struct, kw_only=True):
    """One scenario. `_us`: microseconds of CPU per message, from sending to the acknowledged receipt."""

    scenario: str
    messages: int
    devices: int
    fold_us: float | None = None
    store_us: float | None = None
    """log + checkpoint + load, on the loop's thread, and all of the writer's and the saver's."""
    bytes_per_message: float | None = None
    recovery_s: float | None = None
    rate: float | None = None
    """Messages per second of wall time, the clients' work included."""
    rss_mib: float | None = None
    calibration_ns: int | None = None
    """CPU time of a fixed piece of work, done between the others."""

    submit_us: float | None = None
    offer_us: float | None = None
    log_us: float | None = None
    checkpoint_us: float | None = None
    load_us: float | None = None
    writer_us: float | None = None
    saver_us: float | None = None
    gc_us: float | None = None
    """Of the loop's thread; part of the others."""
    client_us: float | None = None
    bench_us: float | None = None
    """The bench's own loop and clocks: what is left of `total_us` when all others are taken away."""
    total_us: float | None = None
    disk_bytes_per_message: float | None = None
    batch: float | None = None
    records_per_message: float | None = None
    rows_per_message: float | None = None
    broken: str | None = None
    """The promise that was not kept. Then there are no figures."""
    more: dict[str, object] = {}


def compare(scenario: str, devices: int, messages: int, before: Sample, after: Sample, meter: Meter) -> Figures:
    """What happened between two samples, per message."""

    def us(ns: float) -> float:
        return round(ns / 1_000 / max(messages, 1), 3)

    def per_message(count: float) -> float:
        return round(count / max(messages, 1), 3)

    spent = {name: after.spent[name] - before.spent[name] for name in after.spent}
    writer, saver = (after.threads[name] - before.threads[name] for name in ("log writer", "saver"))
    store = spent["log"] + spent["checkpoint"] + spent["load"] + writer + saver
    total = after.process - before.process
    named = store + sum(spent[name] for name in ("fold", "submit", "offer", "client"))
    batches = after.batches - before.batches
    return Figures(
        scenario=scenario,
        messages=messages,
        devices=devices,
        fold_us=us(spent["fold"]),
        store_us=us(store),
        bytes_per_message=per_message(after.written - before.written),
        rate=round(messages / max(after.wall - before.wall, 1) * 1e9),
        rss_mib=rss_mib(),
        calibration_ns=meter.take_calibration(),
        submit_us=us(spent["submit"]),
        offer_us=us(spent["offer"]),
        log_us=us(spent["log"]),
        checkpoint_us=us(spent["checkpoint"]),
        load_us=us(spent["load"]),
        writer_us=us(writer),
        saver_us=us(saver),
        gc_us=us(spent["gc"]),
        client_us=us(spent["client"]),
        bench_us=us(total - named),
        total_us=us(total),
        disk_bytes_per_message=per_message(after.to_disk - before.to_disk),
        batch=round((after.records - before.records) / max(batches, 1), 1),
        records_per_message=per_message(after.records - before.records),
        rows_per_message=per_message(after.rows_saved - before.rows_saved),
    )


# --- showing them -----------------------------------------------------------------------------

COLUMNS = (
    ("fold", "fold_us"), ("store", "store_us"), ("log", "log_us"), ("writer", "writer_us"),
    ("checkpt", "checkpoint_us"), ("saver", "saver_us"), ("load", "load_us"),
    ("submit", "submit_us"), ("offer", "offer_us"), ("gc", "gc_us"),
    ("client", "client_us"), ("bench", "bench_us"), ("total", "total_us"), ("bytes", "bytes_per_message"),
    ("batch", "batch"), ("rate/s", "rate"), ("MiB", "rss_mib"),
    ("recov s", "recovery_s"), ("calib ns", "calibration_ns"),
)  # fmt: skip
WIDTHS = (22, *(9 if title in ("rate/s", "calib ns") else 8 for title, _ in COLUMNS))


def heading() -> str:
    """The first line of the table."""
    return _line(["µs CPU per message", *(title for title, _ in COLUMNS)])


def row(figures: Figures) -> str:
    """A scenario's line, and one for each thing that has no column."""
    if figures.broken:
        return f"{figures.scenario}: BROKEN: {figures.broken}"
    cells = [figures.scenario, *(_cell(getattr(figures, name)) for _, name in COLUMNS)]
    more = "".join(f"\n{'':4}{name}: {value}" for name, value in figures.more.items())
    return _line(cells) + more


def _cell(value: float | None) -> str:
    if value is None:
        return "·"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _line(cells: Sequence[str]) -> str:
    first, *others = cells
    return first.ljust(WIDTHS[0]) + "".join(cell.rjust(width) for cell, width in zip(others, WIDTHS[1:], strict=True))


def say(text: str, *, passing: bool = False) -> None:
    """To people. `passing`: progress that the next line may overwrite."""
    if passing and not sys.stderr.isatty():
        return
    print(text.ljust(100) if passing else text, end="\r" if passing else "\n", file=sys.stderr, flush=True)


# --- keeping them -----------------------------------------------------------------------------


def as_json(results: Sequence[Figures]) -> str:
    """One line: a list of objects, one per scenario."""
    return msgspec.json.encode(results).decode()


def record(results: Sequence[Figures], options: dict[str, object]) -> None:
    """Append to the results that are kept beside the code."""
    commit = subprocess.run(
        ("git", "describe", "--always", "--dirty"), cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "options": options,
        "results": msgspec.to_builtins(results),
    }
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
