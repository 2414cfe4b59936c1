from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest

from nightmail.api.skeletons import UNICODE, claim_of, skeleton, table


def test_the_table_is_the_pinned_one() -> None:
    """Another table changes who may have which name: handles that are registered would have to be claimed again."""
    text = (files("nightmail.api") / "confusables.txt").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "496b4ab7b015b078d93a7b1a7f0cdb505b9b75025f943882851a2482b864f9ee"
    assert (UNICODE in text.decode(), len(table())) == (True, 6_712)


@pytest.mark.parametrize(
    ("text", "made"),
    # The examples of the standard, and each kind of change it makes.
    [
        ("paypal", "paypal"),
        ("p\u0430yp\u0430l", "paypal"),
        ("m", "rn"),
        ("1", "l"),
        ("\u00e7", "c\u0326"),
        ("\u2168", "lX"),
    ],
)
def test_a_skeleton_is_what_the_standard_says(text: str, made: str) -> None:
    assert skeleton(text) == made


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alice", "\u0430lice"),
        ("alice", "a1ice"),
        ("bob", "b0b"),
        ("modern", "modem"),
        ("scope", "\u0455\u0441\u043e\u0440\u0435"),
        ("soon", "s\u03bf\u03bfn"),
    ],
)
def test_names_that_look_alike_are_claimed_under_one_number(one: str, other: str) -> None:
    assert claim_of(one) == claim_of(other)


@pytest.mark.parametrize(("one", "other"), [("alice", "alise"), ("zoe", "zo\u00eb"), ("ada", "adam"), ("bob", "dod")])
def test_names_that_people_can_tell_apart_are_not(one: str, other: str) -> None:
    assert claim_of(one) != claim_of(other)


def test_a_number_is_never_0_and_fits_into_a_row_key() -> None:
    assert 0 < claim_of("alice") < 1 << 61
    assert claim_of("alice") == 2_066_503_585_176_486_661
