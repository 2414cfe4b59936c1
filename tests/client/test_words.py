"""Words to search by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.words import query_of, spans_of, take_apart, terms_of


def test_spans_are_counted_in_characters_whatever_stands_before_them() -> None:
    text = "🎉 Über-Café,\nnaïve ΣΑΣ 東京"
    assert [text[word.start : word.end] for word in take_apart(text)] == ["Über", "Café", "naïve", "ΣΑΣ", "東京"]
    assert [text[start:end] for start, end in spans_of(text, terms_of("CAFE nai"))] == ["Café", "naïve"]


def test_each_term_must_be_there() -> None:
    assert spans_of("only one of them", terms_of("one two")) == ()
    assert spans_of("", terms_of("one")) == ()


@given(st.text())
def test_whatever_is_typed_becomes_quoted_words_alone(typed: str) -> None:
    terms = terms_of(typed)
    assert len(set(terms)) == len(terms)
    assert all('"' not in term and term for term in terms)
    assert query_of(terms).count('"') == 2 * len(terms)


@given(st.text())
def test_every_text_is_found_by_its_own_words(text: str) -> None:
    if terms := terms_of(text):
        assert spans_of(text, terms)
