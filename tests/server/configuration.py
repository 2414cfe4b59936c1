"""Writes the tables of docs/configuration.md from the settings themselves; what stands around them is left alone.

python -m tests.server.configuration
"""

from __future__ import annotations

import re
from pathlib import Path

from nightmail.server.config import SETTINGS
from nightmail.server.settings import written

FILE = Path(__file__).parent.parent.parent / "docs" / "configuration.md"


def table(section: str) -> str:
    lines = ["| setting | default | environment | what it is for |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | `{written(each.default)}` | `{each.variable}` | {each.help} Allowed: {each.allowed}. |"
        for each in SETTINGS.values()
        if each.section == section
    ]
    return "\n".join(lines)


def rewritten(text: str) -> str:
    """Each `## [section]` with its table as it should be."""
    return re.sub(
        r"(?ms)^(## \[(\w+)\]\n.*?)(?:^\|.*?\|\n)+",
        lambda found: f"{found[1]}{table(found[2])}\n",
        text,
    )


def main() -> None:
    FILE.write_text(rewritten(FILE.read_text()))


if __name__ == "__main__":
    main()
