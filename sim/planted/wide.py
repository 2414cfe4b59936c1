# pyright: reportPrivateUsage=false
"""Bugs in rows that several owners write: versions, the pointer, what is removed when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from nightmail.engine.cluster.wide import WideRows
from nightmail.engine.ports import Checkpoint
from sim.runs.owners import PLANTED

from .tools import Bug, Plant, all_of, method

WIDE = ("tests/engine/cluster", "tests/conformance")


def _methods(changed: dict[str, Callable[..., Any]]) -> Plant:
    return all_of([partial(method, WideRows, name, wrong) for name, wrong in changed.items()])


def _owe_the_newest() -> Any:
    """The version that was just written is removed with those below it."""
    right: Callable[[WideRows, Checkpoint], None] = vars(WideRows)["_owe"]

    def owe(rows: WideRows, checkpoint: Checkpoint) -> None:
        newer = [(kind, a, b, version + 1, value) for kind, a, b, version, value in checkpoint.rows]
        right(rows, replace(checkpoint, rows=newer))

    return method(WideRows, "_owe", owe)


BUGS = (
    *(Bug(name, _methods(dict(changed)), ("owners", "cluster"), WIDE) for name, changed in PLANTED.items()),
    Bug("the newest version is trimmed", _owe_the_newest, ("owners", "cluster"), WIDE),
)
