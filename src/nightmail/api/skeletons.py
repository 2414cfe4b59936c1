"""Which names look alike: skeletons by Unicode Technical Standard 39, section 4.

Knows:   the table `confusables.txt`, of one version of Unicode. Another table would change who may have which name,
         so a test pins it.
Never:   shows a skeleton to anybody: it is no name, and only ever compared.

Two names look alike if their skeletons are equal. Names are in lower case, but a digit may look like a capital (0 like
O): so case is folded once more behind the first skeleton.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from unicodedata import normalize

from nightmail.model.ids import CLAIM_BITS

UNICODE = "18.0.0"


@cache
def table() -> dict[int, str]:
    """Character → what stands for it."""
    lines = (files(__package__) / "confusables.txt").read_text("utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {int(source, 16): "".join(chr(int(each, 16)) for each in target) for source, *target in pairs}


def skeleton(text: str) -> str:
    return normalize("NFD", normalize("NFD", text).translate(table()))


def claim_of(handle: str) -> int:
    """The number under which a handle and all its lookalikes are claimed. Never 0."""
    look = skeleton(skeleton(handle).casefold())
    digest = hashlib.blake2b(look.encode(), digest_size=8, person=b"lookalike").digest()
    return (int.from_bytes(digest, "big") >> (64 - CLAIM_BITS)) | 1
