"""Test vectors of Project Wycheproof, where they are at hand: data of others, not kept in this repository."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "vectors" / "wycheproof"
FOLDER = Path(os.environ.get("WYCHEPROOF", BESIDE))
"""C2SP/wycheproof, testvectors_v1. Beside the project's root, or wherever WYCHEPROOF says."""

needed = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="NOT RUN: Wycheproof vectors are missing; set WYCHEPROOF to a checkout's testvectors_v1 folder",
)


def cases(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(group, test) of one file."""
    for group in json.loads((FOLDER / f"{name}_test.json").read_text())["testGroups"]:
        for test in group["tests"]:
            yield group, test


def raw(value: str) -> bytes:
    return bytes.fromhex(value)
