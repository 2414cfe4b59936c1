"""QR codes in a terminal: one line of text holds two rows of modules.

Knows:   half-block characters. The colours are fixed to black on white, because a camera cannot read an inverted code.
"""

from __future__ import annotations

import segno
from rich.text import Text

_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
_BORDER = 2


def qr_code(content: str) -> Text:
    """A QR code that holds `content`."""
    code = segno.make(content, error="l", micro=False)
    rows = [[int(bool(each)) for each in row] for row in code.matrix_iter(border=_BORDER)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    lines = [
        "".join(_HALVES[pair] for pair in zip(*two, strict=True)) for two in zip(rows[::2], rows[1::2], strict=True)
    ]
    return Text("\n".join(lines), style="black on white", no_wrap=True)
