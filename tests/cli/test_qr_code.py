"""QR codes in a terminal."""

from __future__ import annotations

import segno

from nightmail.cli.qr_code import qr_code

_PIXELS = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}


def test_every_module_of_the_code_is_drawn_in_its_place() -> None:
    for words in ("nightmail-link:" + "x" * 150, "0123456789" * 6):
        shown = [[_PIXELS[char] for char in line] for line in qr_code(words).plain.split("\n")]
        rows = [[pair[half] for pair in line] for line in shown for half in (0, 1)]
        code = [
            [int(bool(each)) for each in row] for row in segno.make(words, error="l", micro=False).matrix_iter(border=2)
        ]
        assert rows[: len(code)] == code
        assert all(row == [0] * len(row) for row in rows[len(code) :])
