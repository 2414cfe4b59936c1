"""Each metric moves when what it tells happens: on a real node, over real sockets."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.server.metric_stories import TOLD
from tests.server.rig import serving
from tests.server.stage import SCRAPES_MAX, Stage, scraped
from tests.server.test_metrics import documented

OVER_STARTS = {"nightmail_log_bytes", "process_start_time_seconds"}
"""Move from one start of a node to another."""


@pytest.mark.parametrize("name", TOLD)
def test_each_metric_moves(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, metrics, settings = TOLD[name]
    with (
        serving(tmp_path, data__checkpoint_ms=10_000_000, server__drain_ms=0, **settings) as town,
        monkeypatch.context() as patch,
        ExitStack() as until_read,
    ):
        on = Stage(town, town.register("ada"), town.register("bob"), patch, until_read)
        before, still = scraped(town), set(metrics)
        story(on)
        for _ in range(SCRAPES_MAX):
            after = scraped(town)
            still -= {each for each in still if after.get(each) != before.get(each)}
            if not still:
                break
        assert still == set()


def test_some_metrics_move_from_one_start_to_another(tmp_path: Path) -> None:
    found: list[list[dict[str, float]]] = []
    for segment_bytes in (4 << 20, 32 << 20):
        with serving(tmp_path / str(segment_bytes), data__segment_bytes=segment_bytes) as town:
            found.append([scraped(town)[name] for name in sorted(OVER_STARTS)])
    assert all(first != second for first, second in zip(*found, strict=True))


def test_every_documented_metric_has_a_story() -> None:
    moved = [name for told in TOLD.values() for name in told.metrics]
    assert sorted([*moved, *OVER_STARTS]) == sorted(row[0] for row in documented("Metrics")[2:])
