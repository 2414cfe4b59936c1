"""Every refusal has its status, and every problem its line in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from nightmail.api.openapi import STATUS_OF_CODE
from nightmail.api.problems import STATUSES, refused
from nightmail.model.refusals import AnyRefusal, RateLimited, StaleDevices, Unavailable

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_every_refusal_has_a_status() -> None:
    assert set(STATUSES) == set(get_args(AnyRefusal))
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_what_may_pass_by_itself_says_when() -> None:
    assert refused(Unavailable()).response().headers["Retry-After"] == "2"
    assert refused(RateLimited(1_500)).response().headers["Retry-After"] == "2"


def test_ids_are_hex_in_problems_too() -> None:
    fields = refused(StaleDevices(3, (255,), (), (16,))).fields
    assert fields == {"version": 3, "missing": ["ff"], "extra": [], "rekeyed": ["10"], "refusal": 0x14}


def test_every_problem_can_be_looked_up() -> None:
    text = (DOCS / "operating.md").read_text()
    _, _, section = text.partition("\n## Errors\n")
    lines = [line.split("|") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert {cells[1].strip(" `"): cells[2].strip() for cells in lines} == {
        code: str(status) for code, status in STATUS_OF_CODE.items()
    }
