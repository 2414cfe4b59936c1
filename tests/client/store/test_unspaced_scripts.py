"""Scripts without spaces, in pairs."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.store.search import tokenize
from nightmail.client.store.unspaced_scripts import MARKS, is_without_spaces, places, spread, spread_term

ALL = [chr(number) for number in range(0x80, 0x32400) if not 0xD800 <= number < 0xE000]
RUNS = [char for char in ALL if is_without_spaces(char)]


@pytest.mark.parametrize(
    ("text", "spaced"),
    [
        ("no such run: Über, 123, 한국어, हिन्दी", "no such run: Über, 123, 한국어, हिन्दी"),
        ("東", " 東 "),
        ("東京都", " 東京 京都 都 "),
        ("a東京b", "a 東京 京 b"),
        ("สวัสดี", " สว วั ัส สด ดี ี "),
    ],
)
def test_a_run_becomes_overlapping_pairs_and_its_last_character(text: str, spaced: str) -> None:
    assert spread(text) == spaced


def test_a_term_that_may_go_on_does_not_say_where_it_ends() -> None:
    assert [spread_term(term) for term in ("東", "東京", "東京b", "b東", "b東京", "b")] == [
        " 東 ", " 東京", " 東京 京 b", "b 東 ", "b 東京", "b",
    ]  # fmt: skip


@given(st.text() | st.text("ab 東京都ー\u0e31ก"))
def test_every_character_is_known_by_its_place(text: str) -> None:
    spaced, found = spread(text), places(text)
    assert len(found) == len(spaced)
    assert all(char in (" ", text[place]) for char, place in zip(spaced, found, strict=True) if place < len(text))


def test_each_of_these_characters_is_part_of_a_word_and_stays_as_it_is() -> None:
    assert [word.word for word in tokenize(" ".join(f"a{char}a" for char in RUNS))] == [f"a{char}a" for char in RUNS]


def test_every_mark_of_these_scripts_is_known_as_one() -> None:
    marks = {char for char in RUNS if unicodedata.category(char) in ("Mn", "Mc")}
    assert marks <= set(MARKS)
    assert all(is_without_spaces(char) for char in MARKS)
