"""Words to search by."""

from __future__ import annotations

from itertools import pairwise

import apsw
from hypothesis import given
from hypothesis import strategies as st

from nightmail.client.store.search import TOKENIZER, indexed, query_of, spans_of, terms_of, tokenize

MIXED = st.text("aeé\u0301i1 ,京都東にむーｱ\u3099กา\u0e31\u0e48ກ\u0ec8क\u093f", max_size=12)
"""Latin and Devanagari with marks, and scripts without spaces with theirs."""


def test_spans_are_counted_in_characters_whatever_stands_before_them() -> None:
    text = "🎉 Über-Café,\nnaïve ΣΑΣ 東京"
    assert [text[word.start : word.end] for word in tokenize(text)] == ["Über", "Café", "naïve", "ΣΑΣ", "東京"]
    assert [text[start:end] for start, end in spans_of(text, terms_of("CAFE nai"))] == ["Café", "naïve"]


def marked(text: str, typed: str) -> list[str]:
    return [text[start:end] for start, end in spans_of(text, terms_of(typed))]


def test_where_words_are_not_told_apart_only_the_part_that_was_typed_is_marked() -> None:
    chinese, thai = "我明天去北京，后天去南京。", "พรุ่งนี้ไปเชียงใหม่ด้วยกัน"
    japanese = "新しいiPhoneを渋谷で買ったよ"
    assert marked(chinese, "京") == ["京", "京"]
    assert marked(chinese, "北京") == ["北京"]
    assert marked(chinese, "天去 明天") == ["明天去", "天去"]
    assert marked(japanese, "渋谷で買") == ["渋谷で買"]
    assert marked(japanese, "iph 買っ") == ["iPhone", "買っ"]
    assert marked(japanese, "しいipho") == ["しいiPhone"]
    assert marked(japanese, "IPHONEを") == ["iPhoneを"]
    assert marked(thai, "เชียงใหม่") == ["เชียงใหม่"]
    assert marked("ああああ", "ああ") == ["ああああ"]


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


@given(MIXED, st.integers(0, 12), st.integers(1, 12))
def test_what_is_marked_is_what_the_index_finds(text: str, start: int, size: int) -> None:
    db = apsw.Connection(":memory:")
    options = " ".join(TOKENIZER)
    db.execute(f"CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = '{options}', prefix = '2 3')")
    db.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (indexed(text),))
    for typed in (text[start : start + size], text[start : start + size][::-1]):
        if terms := terms_of(typed):
            found = db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (query_of(terms),)).get
            assert found == bool(spans_of(text, terms))


@given(MIXED)
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = spans_of(text, terms_of(text))
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
