"""What commands print."""

from __future__ import annotations

from nightmail.cli.output import digit_groups


def test_a_number_is_shown_in_groups() -> None:
    number = "".join(f"{n:05d}" for n in range(12))
    assert digit_groups(number).split("\n")[0] == "00000  00001  00002  00003"
    assert digit_groups(number).split() == [f"{n:05d}" for n in range(12)]
