"""Reads the test vectors of Project Wycheproof (vectors/wycheproof/)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "vectors" / "wycheproof"


def cases(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(group, test) of one file."""
    for group in json.loads((FOLDER / f"{name}_test.json").read_text())["testGroups"]:
        for test in group["tests"]:
            yield group, test


def raw(value: str) -> bytes:
    return bytes.fromhex(value)
