"""A recovery code: 128 random bits as twelve words that a person can write down, with a checksum.

Spec:    BIP 39, English: each word carries 11 bits; the last one ends in the first 4 bits of SHA-256 of the 128.
Knows:   the list of 2,048 words, which the package `mnemonic` brings.
Never:   shows a word in an error: which one is wrong is said by its number.
"""

from __future__ import annotations

import unicodedata
from functools import cache

from mnemonic import Mnemonic

from nightmail.e2ee.errors import BadRecoveryCode

ENTROPY_BYTES = 16
WORDS = 12
BETWEEN = ("-", ",", ".", ";")
"""What people write between words, besides spaces."""


@cache
def _list() -> Mnemonic:
    return Mnemonic("english")


def words_of(entropy: bytes) -> str:
    """The code as it is shown: small letters, one space between words."""
    return _list().to_mnemonic(entropy)


def entropy_of(typed: str) -> bytes:
    """What was drawn. Case, spaces, line breaks and marks between the words do not matter. Raises BadRecoveryCode."""
    text = unicodedata.normalize("NFKC", typed).casefold()
    for mark in BETWEEN:
        text = text.replace(mark, " ")
    words = text.split()
    if len(words) != WORDS:
        raise BadRecoveryCode(f"it has {WORDS} words, and {len(words)} were given")
    known = _list().wordlist
    if wrong := [place for place, word in enumerate(words, 1) if word not in known]:
        raise BadRecoveryCode(f"word {wrong[0]} is not on the list: check its spelling")
    joined = " ".join(words)
    if not _list().check(joined):
        raise BadRecoveryCode("its words do not fit together: one is wrong, or they are in another order")
    return bytes(_list().to_entropy(joined))
