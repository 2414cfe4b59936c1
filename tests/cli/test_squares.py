"""Pictures of squares, and numbers that can be read aloud."""

from __future__ import annotations

import segno

from nightmail.cli.squares import grouped, squares

_PIXELS = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}


def test_every_square_is_where_the_code_has_it() -> None:
    for words in ("nightmail-link:" + "x" * 150, "0123456789" * 6):
        shown = [[_PIXELS[char] for char in line] for line in squares(words).plain.split("\n")]
        rows = [[pair[half] for pair in line] for line in shown for half in (0, 1)]
        code = [
            [int(bool(each)) for each in row] for row in segno.make(words, error="l", micro=False).matrix_iter(border=2)
        ]
        assert rows[: len(code)] == code
        assert all(row == [0] * len(row) for row in rows[len(code) :])


def test_a_number_is_shown_in_groups() -> None:
    number = "".join(f"{n:05d}" for n in range(12))
    assert grouped(number).split("\n")[0] == "00000  00001  00002  00003"
    assert grouped(number).split() == [f"{n:05d}" for n in range(12)]
