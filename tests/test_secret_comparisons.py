"""Secrets are compared in constant time: how long a comparison takes must not tell how much of a guess was right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SECRET = re.compile(
    r"(?:^|_)(?:token|digest|pin|mac|hmac|secret|signature|password|passphrase|code|salt)s?$", re.IGNORECASE
)

ALLOWED = {
    "src/nightmail/cli/pins.py": "a person repeats their own PIN",
    "src/nightmail/client/link/liveness.py": "a close code",
    "src/nightmail/core/devices.py": "digests of random tokens, while a record is folded: the sync hides the time",
    "src/nightmail/core/lock.py": "digests with a pepper, while a record is folded",
}
"""File → why the time of its comparison tells nobody anything."""


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return name_of(func)
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def is_open_value(node: ast.expr) -> bool:
    """A constant is in the source for everybody to read; a number or a member of an enumeration is no secret."""
    return isinstance(node, ast.Constant | ast.Set | ast.Tuple) or name_of(node).isupper() or (
        isinstance(node, ast.Call) and name_of(node) == "len"
    )  # fmt: skip


def leaky_comparisons(source: str) -> Iterator[int]:
    """Lines that compare a secret with == or !=."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            sides = [node.left, *node.comparators]
            if any(SECRET.search(name_of(side)) for side in sides) and not any(map(is_open_value, sides)):
                yield node.lineno


def test_no_secret_is_compared_with_equals() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "src").rglob("*.py"))
        if (lines := list(leaky_comparisons(path.read_text())))
    }
    assert {place: len(lines) for place, lines in found.items()} == dict.fromkeys(ALLOWED, 1)


@pytest.mark.parametrize(
    "source",
    [
        "token == given", "row.token != given", "given == device.token", "sha256(x).digest() == kept",
        "pin == lock.digest", "new_pin == old", "row['mac'] == made", "if a.signature != b: pass", "code == right",
    ],
)  # fmt: skip
def test_a_comparison_of_a_secret_is_noticed(source: str) -> None:
    assert list(leaky_comparisons(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "hmac.compare_digest(token, given)", "token == ''", "len(token) == 32", "code == CloseCode.BUSY", "a == b",
        "token is None", "tokens > 3", "pinned == other",
    ],
)  # fmt: skip
def test_what_tells_nothing_is_allowed(source: str) -> None:
    assert list(leaky_comparisons(source)) == []
