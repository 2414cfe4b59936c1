"""Who may import whom: the table of rooms in ARCHITECTURE.md, and what the pure rooms may never touch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "nightmail"

OUTSIDE = ("sim", "bench", "attacks", "pictures", "engines", "web")
"""In the table, but nothing in `src` imports them."""


def table_of_rooms(page: str) -> dict[str, tuple[str, ...]]:
    """Room → what of ours it may import besides itself, from the table in ARCHITECTURE.md."""
    _, _, section = page.partition("\n## The rooms\n")
    rows = [line.strip("|").split("|") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    rooms = {
        re.findall(r"`(\w+)/`", room)[0]: allowed for room, _, allowed in rows if "/`" in room and room.count("/") == 1
    }
    return {room: tuple(re.findall(r"`([\w.]+)`", allowed)) for room, allowed in rooms.items() if room not in OUTSIDE}


MAY_IMPORT = table_of_rooms((ROOT / "ARCHITECTURE.md").read_text())

PURE = ("model", "core")

IMPURE = {
    "apsw", "asyncio", "datetime", "logging", "os", "random", "secrets", "socket", "threading", "time", "uuid",
}  # fmt: skip
"""Clocks, chance, the machine, drivers: nothing that could make two folds of one log differ."""

SERVER_SIDE = ("model", "core", "wire", "engine", "outlets", "gateway", "api", "server")


class Import(NamedTuple):
    where: str
    room: str
    target: str

    def __str__(self) -> str:
        return f"{self.where} imports {self.target}"


def imports_in(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of everything a module imports, anywhere in it, also for typing only.

    `from a import b` is `a.b`, since b may be a module.
    """
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield node.lineno, name.name
            case ast.ImportFrom(module=base, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                start = ".".join([*above, *([base] if base else [])])
                for name in names:
                    yield node.lineno, f"{start}.{name.name}"
            case _:
                pass


def imports_of(path: Path) -> Iterator[Import]:
    inside = path.relative_to(ROOT / "src").with_suffix("")
    is_package = inside.name == "__init__"
    parts = inside.parent.parts if is_package else inside.parts
    room = parts[1] if len(parts) > 1 else ""
    for line, target in imports_in(path.read_text(), ".".join(parts), is_package):
        yield Import(f"{path.relative_to(ROOT)}:{line}", room, target)


def all_imports() -> list[Import]:
    return [found for path in sorted(PACKAGE.rglob("*.py")) for found in imports_of(path)]


def is_within(target: str, name: str) -> bool:
    return target == name or target.startswith(name + ".")


def is_open(room: str, target: str) -> bool:
    """Whether the door from `room` to `target` (a name below nightmail) is open."""
    return any(is_within(target, open_to) for open_to in (room, *MAY_IMPORT[room]))


def ours(target: str) -> str | None:
    """The part of a name below `nightmail.`; None if it is not ours."""
    return target.removeprefix("nightmail.") if target.startswith("nightmail.") else None


def test_every_room_is_in_the_table() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert rooms == MAY_IMPORT.keys()
    assert set(PURE) <= rooms


def test_rooms_import_only_through_open_doors() -> None:
    closed = [
        str(found)
        for found in all_imports()
        if found.room in MAY_IMPORT and (target := ours(found.target)) and not is_open(found.room, target)
    ]
    assert closed == []


def test_the_pure_rooms_import_no_clock_no_chance_no_machine_and_no_driver() -> None:
    impure = [str(found) for found in all_imports() if found.room in PURE and found.target.partition(".")[0] in IMPURE]
    assert impure == []


def test_no_server_side_room_imports_e2ee() -> None:
    reaching = [
        str(found) for found in all_imports() if found.room in SERVER_SIDE and is_within(found.target, "nightmail.e2ee")
    ]
    assert reaching == []


def test_nothing_that_is_shipped_imports_the_simulator_the_benchmarks_or_the_tests() -> None:
    workshop = [str(found) for found in all_imports() if found.target.partition(".")[0] in {*OUTSIDE, "tests"}]
    assert workshop == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import time", ["time"]),
        ("import os.path as p", ["os.path"]),
        ("from time import monotonic", ["time.monotonic"]),
        ("def f():\n    import random", ["random"]),
        ("from .rows import Stream", ["nightmail.core.rows.Stream"]),
        ("from . import send", ["nightmail.core.send"]),
        ("from ..engine import ports", ["nightmail.engine.ports"]),
        ("from nightmail import e2ee", ["nightmail.e2ee"]),
        ("if TYPE_CHECKING:\n    from nightmail.e2ee.x import Y", ["nightmail.e2ee.x.Y"]),
    ],
)
def test_every_way_of_importing_is_seen(source: str, names: list[str]) -> None:
    assert [name for _, name in imports_in(source, "nightmail.core.step", is_package=False)] == names


def test_a_package_resolves_its_relative_imports_from_itself() -> None:
    assert list(imports_in("from . import send", "nightmail.core", is_package=True)) == [(1, "nightmail.core.send")]


@pytest.mark.parametrize(
    ("room", "target", "may"),
    [
        ("gateway", "engine.ports.Log", True),
        ("gateway", "engine.ports", True),
        ("gateway", "engine.loop", False),
        ("gateway", "engine.portside", False),
        ("core", "core.send", True),
        ("core", "engine.ports", False),
        ("client", "e2ee.ratchet", True),
        ("server", "e2ee", False),
    ],
)
def test_a_door_is_as_wide_as_the_table_says(room: str, target: str, may: bool) -> None:
    assert is_open(room, target) is may
