"""Words to search by: what a message is found by, and what of it matched.

Knows:   how SQLite's full-text index takes text apart; the same rules for the index, the query and the result.
Never:   lets what a person typed become syntax of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import apsw
from msgspec import Struct

from nightmail.e2ee.errors import Refused
from nightmail.model.words import Kind

from .messages import Message

TOKENIZER: tuple[str, ...] = ("unicode61", "remove_diacritics", "2")
"""Runs of letters and digits, without case and accents."""


class Word(NamedTuple):
    start: int
    end: int
    """In characters, as Python counts them."""
    word: str
    """Folded."""


class Found(Struct, frozen=True):
    """A message that a search found."""

    message: Message
    spans: tuple[tuple[int, int], ...]
    """Which characters of its text matched: (from, up to), in order."""


def text_of(message: Message) -> str | None:
    """What a person can read in a message; None: it is no text."""
    try:
        return message.content.text if message.kind is Kind.TEXT else None
    except Refused:
        return None


def take_apart(text: str) -> list[Word]:
    name, *options = TOKENIZER
    raw = text.encode("utf-8", "replace")
    # A connection of its own: an index may be used on several threads, a connection on one at a time.
    tokenizer = apsw.Connection(":memory:").fts5_tokenizer(name, options)
    tokens = cast("list[tuple[int, int, str]]", tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None))
    words: list[Word] = []
    chars = at = 0
    for start, end, folded in tokens:
        chars += len(raw[at:start].decode())
        size = len(raw[start:end].decode())
        words.append(Word(chars, chars + size, folded))
        chars, at = chars + size, end
    return words


def terms_of(typed: str) -> list[str]:
    """What somebody looks for: every one of these must begin a word of the message."""
    return list(dict.fromkeys(word.word for word in take_apart(typed)))


def spans_of(text: str, terms: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The words that begin with one of the terms; empty unless each term is there."""
    words = take_apart(text)
    if not all(any(word.word.startswith(term) for word in words) for term in terms):
        return ()
    wanted = tuple(terms)
    return tuple((word.start, word.end) for word in words if word.word.startswith(wanted))


def query_of(terms: Sequence[str]) -> str:
    """The terms as a query: each a quoted string that begins a word. They hold letters and digits alone."""
    return " AND ".join(f'"{term}"*' for term in terms)
