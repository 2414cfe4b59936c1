"""Receipts for messages of this device whose number it has not heard yet: the server has numbered them at their time.

Knows:   that the number of a scheduled message is asked for, so that receipts may be here before the answer.
Touches: one errand for each such receipt.
Never:   keeps more of them than the limit, or longer than the server keeps messages.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.model.rows import PendingReceipt
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.spans import add_span, pairs
from nightmail.model.words import Lane

ERRAND = "early receipt "
KEPT_MAX = 1_024
NUMBERS_MAX = 4_096
"""Numbers of one receipt that are looked for."""

_encode = msgspec.msgpack.Encoder().encode
_receipt = msgspec.msgpack.Decoder(PendingReceipt).decode


class EarlyReceipts:
    def __init__(self, context: Context) -> None:
        self._context = context

    def keep(self, receipt: PendingReceipt) -> None:
        """Keep a receipt of own messages, as far as it is about scheduled ones that are not known by number."""
        store, unknown = self._context.store, self._unknown(receipt)
        if not unknown:
            return
        for oldest in store.errands(ERRAND)[: -KEPT_MAX + 1]:
            store.drop_errand(oldest)
        store.put_errand(f"{ERRAND}{receipt.seq:016x}", _encode(replace(receipt, numbers=unknown)))

    def take(self) -> Iterator[PendingReceipt]:
        """All that were kept, in order. They are kept no longer."""
        store = self._context.store
        for name in store.errands(ERRAND):
            receipt = _receipt(store.errand(name) or b"")
            store.drop_errand(name)
            yield receipt

    def forget(self) -> None:
        """Once a day: what is still unknown by now stays so."""
        store, oldest = self._context.store, self._context.now - self._context.limits.remember_ms
        for name in store.errands(ERRAND):
            if _receipt(store.errand(name) or b"").at < oldest:
                store.drop_errand(name)

    def _unknown(self, receipt: PendingReceipt) -> list[int]:
        by, to, lane, *_ = receipt.key
        unknown: list[int] = []
        for low, high in pairs(receipt.numbers):
            first, last = max(low, SCHEDULED_FROM), min(high, max(low, SCHEDULED_FROM) + NUMBERS_MAX)
            if first > last:
                continue
            known = {row.n for row in self._context.store.numbered(by, to, Lane(lane), first, last)}
            for number in range(first, last + 1):
                if number not in known:
                    add_span(unknown, number, number)
        return unknown
