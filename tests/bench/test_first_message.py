"""The benchmark of the first message to a group runs, and says all of its figures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import structs

from bench.first_message import measure


def test_every_figure_is_measured(tmp_path: Path) -> None:
    figures = asyncio.run(measure(tmp_path, 4))
    assert figures.members == 4
    assert all(value > 0 for value in structs.astuple(figures))
