"""Search: the words that a message is found by, and which of its characters matched.

Knows:   how SQLite's full-text index splits text into words; the same rules for the index, the query and the result.
Never:   lets the text that a person typed become query syntax.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import apsw
from msgspec import Struct

from nightmail.client.messages import Message
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.streams.media import decode_pointer
from nightmail.model.words import Kind

from .unspaced_scripts import MARKS, is_without_spaces, places, spread, spread_term

TOKENIZER: tuple[str, ...] = ("unicode61", "remove_diacritics", "2", "tokenchars", MARKS)
"""Runs of letters and digits, without case and accents."""


class Token(NamedTuple):
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
    """What a person can read in a message; None: it has no text."""
    return text_in(message.kind, message.body)


def text_in(kind: Kind, body: bytes) -> str | None:
    """Of a file: its name, and what was written to it."""
    try:
        content = decode_content(body)
        if kind is Kind.MEDIA and content.data:
            return "\n".join(filter(None, (decode_pointer(content.data).name, content.text)))
        return content.text if kind is Kind.TEXT else None
    except Rejected:
        return None


def indexed(text: str) -> str:
    """A text as the index has it."""
    return spread(text)


def tokenize(text: str) -> list[Token]:
    name, *options = TOKENIZER
    raw = text.encode("utf-8", "replace")
    # A connection of its own: an index may be used on several threads, a connection on one at a time.
    tokenizer = apsw.Connection(":memory:").fts5_tokenizer(name, options)
    tokens = cast("list[tuple[int, int, str]]", tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None))
    words: list[Token] = []
    chars = at = 0
    for start, end, folded in tokens:
        chars += len(raw[at:start].decode())
        size = len(raw[start:end].decode())
        words.append(Token(chars, chars + size, folded))
        chars, at = chars + size, end
    return words


def terms_of(typed: str) -> list[str]:
    """The terms of a search: each must begin a word of the message.

    In scripts without spaces, each must stand anywhere in it.
    """
    return list(dict.fromkeys(word.word for word in tokenize(typed)))


def spans_of(text: str, terms: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Which characters match one of the terms; empty unless every term is there."""
    place, words = places(text), tokenize(indexed(text))
    words = [Token(place[word.start], place[word.end - 1] + 1, word.word) for word in words]
    spans: list[tuple[int, int]] = []
    for term in terms:
        found = list(_found(text, words, [word.word for word in tokenize(spread_term(term))]))
        if not found:
            return ()
        spans += found
    return _merged(spans)


def query_of(terms: Sequence[str]) -> str:
    """The terms as an FTS5 query: each a quoted phrase whose last word is a prefix. A term consists of letters, digits
    and marks alone, so nothing in it needs escaping."""
    return " AND ".join(f'"{spread_term(term)}"*' for term in terms)


def _found(text: str, words: list[Token], term: list[str]) -> Iterator[tuple[int, int]]:
    """Where a term stands, by the rules of the index: its words in sequence."""
    before, last = term[:-1], term[-1]
    for at, word in enumerate(words[len(before) :]):
        run = words[at : at + len(before)]
        if word.word.startswith(last) and [one.word for one in run] == before:
            # Of a pair only the characters that were searched for; of any other word the whole word.
            end = word.start + len(last) if is_without_spaces(text[word.start]) else word.end
            yield run[0].start if run else word.start, end


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return tuple(merged)
