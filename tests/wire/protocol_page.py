"""docs/protocol.md, as tests read it."""

from __future__ import annotations

from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()


def table(title: str, after: str = "") -> list[tuple[str, ...]]:
    """The rows of the first table under a heading, or behind these words there; without code marks."""
    _, heading, section = PAGE.partition(f"\n## {title}\n")
    assert heading, f"docs/protocol.md has no section {title!r}"
    _, found, rest = section.partition("\n## ")[0].partition(after) if after else ("", "all", section)
    assert found, f"docs/protocol.md does not say {after!r} under {title!r}"
    lines = rest.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("|---"))
    rows: list[tuple[str, ...]] = []
    for line in lines[first + 1 :]:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")))
    return rows
