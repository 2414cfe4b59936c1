"""The rules of the house that no linter knows, run as tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from docs import tables
from nightmail.engine.clock import ClockLimits
from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import SqliteSettings
from nightmail.model import limits, refusals
from nightmail.server.alerts.rules import rule_file

ROOT = Path(__file__).parent.parent
LINES_MAX = 500
"""Past this, ask which second idea moved in."""

LATER = re.compile(r"\b(?:TO[D]O|FIXM[E]|XX[X])\b")
"""Written so that it does not find itself."""

CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "sleep"}


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- code -------------------------------------------------------------------------------------


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name(p)
        for p in modules("src", "sim", "bench", "attacks", "pictures", "engines")
        if ast.get_docstring(ast.parse(p.read_text())) is None
    ]
    assert silent == []


def test_no_file_holds_a_second_idea() -> None:
    long = {
        name(p): lines
        for p in modules("src", "sim", "bench", "attacks", "pictures", "engines")
        if (lines := len(p.read_text().splitlines())) > LINES_MAX
    }
    assert long == {}


def test_nothing_is_left_for_later() -> None:
    left = [
        f"{name(p)}:{number}"
        for p in modules("src", "sim", "bench", "attacks", "pictures", "engines", "tests")
        for number, line in enumerate(p.read_text().splitlines(), 1)
        if LATER.search(line)
    ]
    assert left == []


SETS_THE_CLOCK = "tests/compatibility/clock/"
"""Sets the clock of processes that tests start, and reads it for that."""


def waits_and_stopwatches(source: str) -> Iterator[int]:
    """Lines that sleep or read a clock. A time limit on a wait (`timeout=`) is neither."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=attr) if attr in CLOCKS:
                yield node.lineno
            case ast.ImportFrom(module="time", names=names) if CLOCKS & {alias.name for alias in names}:
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="sleep"), args=[delay, *_]):
                # sleep(0) only lets the others run
                if not (isinstance(delay, ast.Constant) and delay.value == 0):
                    yield node.lineno
            case _:
                pass


def test_no_test_sleeps_or_holds_a_stopwatch() -> None:
    timed = [f"{name(p)}:{line}" for p in modules("tests") for line in waits_and_stopwatches(p.read_text())]
    assert [place for place in timed if not place.startswith(SETS_THE_CLOCK)] == []


def test_sleeping_and_measuring_are_noticed() -> None:
    assert list(waits_and_stopwatches("time.sleep(1)")) == [1]
    assert list(waits_and_stopwatches("from time import monotonic")) == [1]
    assert list(waits_and_stopwatches("assert time.perf_counter() < 3")) == [1]
    assert list(waits_and_stopwatches("asyncio.sleep(0.1)")) == [1]
    assert list(waits_and_stopwatches("asyncio.sleep(0)\nevent.wait(timeout=5)\ntime = 3")) == []


# --- words ------------------------------------------------------------------------------------

SHARED_NAMES = {
    "Gap": "the event tells the app of the row",
    "Group": "what an app sees of the row",
    **dict.fromkeys(
        ("AlreadyMember", "GroupFull", "LastAdmin", "NotGroupAdmin", "RemovesItself", "StaleGroup", "UnknownMember"),
        "the client raises the refusal",
    ),
}
"""Name → why two public classes have it."""


def test_a_name_means_one_class() -> None:
    found = Counter(
        node.name
        for path in modules("src")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in found.items() if count > 1} == set(SHARED_NAMES)


OLD_WORDS = re.compile(r"\b(?:whoever|anew|of late)\b", re.IGNORECASE)
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")


def test_sentences_name_their_actor() -> None:
    code = modules("src", "sim", "bench", "attacks", "docs")
    texts = [*code, *(ROOT / "docs").rglob("*.md"), *(ROOT / page for page in PAGES)]
    old = [
        f"{name(path)}:{number}"
        for path in texts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OLD_WORDS.search(line)
    ]
    assert old == []


# --- docs/reference.md ------------------------------------------------------------------------


def table(title: str) -> list[tuple[str, ...]]:
    """The rows of the table under a heading, without code marks."""
    text = (ROOT / "docs" / "reference.md").read_text()
    _, heading, section = text.partition(f"\n## {title}\n")
    assert heading, f"docs/reference.md has no section {title!r}"
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")) for line in lines[2:]]


def test_the_tables_that_follow_from_the_code_are_what_make_docs_writes() -> None:
    for name, written in tables.TABLES.items():
        page = (ROOT / "docs" / name).read_text()
        assert page == tables.rewritten(page, written), f"docs/{name}: run make docs"
    assert tables.RULES.read_text() == rule_file(), "deploy/prometheus/alerts.yml: run make docs"


def test_every_refusal_is_among_those_that_can_be_said() -> None:
    assert set(refusals.Refusal.__subclasses__()) == set(get_args(refusals.AnyRefusal))


def test_every_limit_can_be_looked_up() -> None:
    for title, kind in (("Limits of the fold", limits.FoldLimits), ("Limits of form", limits.FormLimits)):
        defaults = kind()
        assert [(row[0], row[2]) for row in table(title)] == [
            (field, f"{getattr(defaults, field):,}") for field in kind.__struct_fields__
        ]


def test_every_limit_of_the_engine_can_be_looked_up() -> None:
    defaults = {
        field: getattr(kind(), field)
        for kind in (LoopLimits, SaverLimits, SqliteSettings, ClockLimits)
        for field in kind.__struct_fields__
        if field not in ("saver", "clock")
    }
    shown = {
        field: ", ".join(f"{value:,}" for value in (default if isinstance(default, tuple) else (default,)))
        for field, default in defaults.items()
    }
    assert {row[0]: row[2] for row in table("Limits of the engine")} == shown


def test_every_test_that_the_guarantees_cite_exists() -> None:
    cited = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "guarantees.md").read_text()))
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert cited
    assert {name for name in cited if f"def {name}(" not in written} == set()
