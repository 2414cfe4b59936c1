"""A picture of squares (QR) for a terminal, two rows of it in one line of text.

Knows:   half blocks. Dark squares are black on white, whatever the terminal's colours, or a camera would not see them.
"""

from __future__ import annotations

import segno
from rich.text import Text

_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
_BORDER = 2


def squares(words: str) -> Text:
    """Something that a camera reads as these words."""
    code = segno.make(words, error="l", micro=False)
    rows = [[int(bool(each)) for each in row] for row in code.matrix_iter(border=_BORDER)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    lines = [
        "".join(_HALVES[pair] for pair in zip(*two, strict=True)) for two in zip(rows[::2], rows[1::2], strict=True)
    ]
    return Text("\n".join(lines), style="black on white", no_wrap=True)


def grouped(number: str) -> str:
    """60 digits in twelve groups of five, four to a line: so they can be read aloud."""
    groups = [number[at : at + 5] for at in range(0, len(number), 5)]
    return "\n".join("  ".join(groups[at : at + 4]) for at in range(0, len(groups), 4))
