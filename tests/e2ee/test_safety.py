from __future__ import annotations

import pytest

from nightmail.e2ee.errors import NotAsAnnounced
from nightmail.e2ee.safety import check_safety_number, grouped, safety_number

ADA, BOB = bytes(range(32)), bytes(range(1, 33))


def test_both_sides_see_the_same_sixty_digits() -> None:
    number = safety_number(1, ADA, 2, BOB)
    assert number == safety_number(2, BOB, 1, ADA)
    assert len(number) == 60
    assert number.isdigit()
    assert len(grouped(number).split()) == 12


def test_another_key_or_account_gives_another_number() -> None:
    numbers = {safety_number(*who) for who in ((1, ADA, 2, BOB), (1, BOB, 2, ADA), (1, ADA, 3, BOB), (1, ADA, 2, ADA))}
    assert len(numbers) == 4


def test_what_was_read_out_is_compared_and_a_difference_raises() -> None:
    number = safety_number(1, ADA, 2, BOB)
    check_safety_number(number, grouped(number))
    with pytest.raises(NotAsAnnounced):
        check_safety_number(number, "0" * 60)
    with pytest.raises(NotAsAnnounced):
        check_safety_number(number, number[:-1])
