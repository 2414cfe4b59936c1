"""Which account, or group, a row is about: the shard of that one holds it."""

from __future__ import annotations

from nightmail.model.blob_rows import PAGE_BITS
from nightmail.model.ids import account_of
from nightmail.model.rows import Kept

BY_DEVICE = frozenset({Kept.KEYS, Kept.MAILBOX, Kept.RECEIPTS, Kept.SHARES, Kept.PUSH})
OF_NOBODY = frozenset({
    Kept.SHARD, Kept.DUE_HOUR, Kept.DUE, Kept.DEAD_LETTER, Kept.LETTER_CLASSES, Kept.LETTER_PAGE,
})  # fmt: skip
"""Time and dead letters belong to whichever shard has them."""


def home_of(kind: Kept, a: int, b: int = 0) -> int | None:
    """None: the row is about a whole shard."""
    if kind in OF_NOBODY:
        return None
    if kind is Kept.STREAM:
        return b
    if kind is Kept.AUDIENCE:
        return a >> PAGE_BITS
    return account_of(a) if kind in BY_DEVICE else a
