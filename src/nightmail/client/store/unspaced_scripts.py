"""Scripts that are written without spaces: what stands between two spaces there is a sentence, not a word.

Knows:   the characters of Han, kana, bopomofo, Yi, Thai, Lao, Khmer and Burmese, and which of them are marks.
Touches: nothing. If a range here changes, every profile must be indexed again, by another step of `sqlite_schema`.

A run of such characters is indexed as overlapping pairs, and its last character alone. So every part of the run is a
sequence of pairs, and every single character begins a pair or stands alone.

    東京都に住む   →   東京 京都 都に に住 住む む
"""

from __future__ import annotations

import re

_WITHOUT_SPACES = (
    (0x0E01, 0x0E3A), (0x0E40, 0x0E4E),  # Thai
    (0x0E81, 0x0EBD), (0x0EC0, 0x0ECE), (0x0EDC, 0x0EDF),  # Lao
    (0x1000, 0x103F), (0x1050, 0x108F), (0x109A, 0x109D),  # Burmese
    (0xA9E0, 0xA9EF), (0xA9FA, 0xA9FE), (0xAA60, 0xAA76), (0xAA7A, 0xAA7F),
    (0x1780, 0x17D3), (0x17D7, 0x17D7), (0x17DC, 0x17DD),  # Khmer
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C),  # iteration marks and numerals
    (0x3041, 0x309A), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F),  # kana
    (0x3105, 0x312F), (0x31A0, 0x31BF),  # bopomofo
    (0xA000, 0xA48C),  # Yi
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),  # Han
    (0x1B000, 0x1B16F), (0x20000, 0x323AF),  # rare kana, and rare Han
)  # fmt: skip

_MARKS = (
    (0x0E31, 0x0E31), (0x0E34, 0x0E3A), (0x0E47, 0x0E4E),
    (0x0EB1, 0x0EB1), (0x0EB4, 0x0EBC), (0x0EC8, 0x0ECE),
    (0x102B, 0x103E), (0x1056, 0x1059), (0x105E, 0x1060), (0x1062, 0x1064), (0x1067, 0x106D), (0x1071, 0x1074),
    (0x1082, 0x108D), (0x108F, 0x108F), (0x109A, 0x109D), (0xA9E5, 0xA9E5), (0xAA7B, 0xAA7D),
    (0x17B4, 0x17D3), (0x17DD, 0x17DD),
    (0x3099, 0x309A),
)  # fmt: skip

MARKS = "".join(chr(number) for low, high in _MARKS for number in range(low, high + 1))
"""Vowels and tones above, below and beside a letter. SQLite would end a word at each of them."""

_RUN = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _WITHOUT_SPACES) + "]+")


def is_without_spaces(char: str) -> bool:
    return _RUN.match(char) is not None


def spread(text: str) -> str:
    """The text with such runs written as pairs; everything else unchanged."""
    return _RUN.sub(lambda run: _pairs(run.group()), text)


def spread_term(term: str) -> str:
    """The same for a search term, which may end in the middle of a word."""
    spaced = spread(term)
    # Without the last single character: in the text it may begin another pair.
    return spaced[:-3] if len(term) > 1 and is_without_spaces(term[-1]) and is_without_spaces(term[-2]) else spaced


def places(text: str) -> list[int]:
    """For each character of `spread(text)`, its position in the text; a space has the position of what follows it."""
    found: list[int] = []
    at = 0
    for run in _RUN.finditer(text):
        low, high = run.span()
        found += range(at, low)
        # As in _pairs: " ab bc c ".
        found += [place for first in range(low, high) for place in (first, *range(first, min(first + 2, high)))]
        found.append(high)
        at = high
    found += range(at, len(text))
    return found


def _pairs(run: str) -> str:
    return " " + " ".join(run[at : at + 2] for at in range(len(run))) + " "
