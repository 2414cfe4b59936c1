"""Makes many shards of one: what belongs to an account goes to its shard, and what is the shard's own is divided.

Knows:   for which account a due item is; what a shard counts.
Touches: the bytes that it is given.
Never:   changes a row about an account: its bytes and its version stay, wherever it goes.

The one shard has told no other anything, so no forward is under way and no chain begins above 0. Its time, its doubts
and its limits are every new shard's.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightmail.model.ids import account_of, shard_of
from nightmail.model.ledger import CopyLedger
from nightmail.model.rows import Due, DueFor, DueHour, DueItem, Kept, Keys, Mailbox, RowKey, Shard

from .due import hour_of, moment_of_slot
from .homes import home_of
from .state import SHARD, decode_shard, encode_row

_decode_due = msgspec.msgpack.Decoder(Due).decode
_decode_hour = msgspec.msgpack.Decoder(DueHour).decode
_decode_keys = msgspec.msgpack.Decoder(Keys).decode
_decode_mailbox = msgspec.msgpack.Decoder(Mailbox).decode

BY_NUMBER = frozenset({DueFor.GROUP_NEWS, DueFor.RELISTING, DueFor.GROUP_LOG})
"""Items whose `seq` is the account or the group."""
BY_ACCOUNT = frozenset({DueFor.SCHEDULE, DueFor.SCHEDULE_PAGE, DueFor.BLOB})
"""Items that have an account in place of a device."""


class Split:
    """Give it every row with `place`, then ask for `rest`: the rows that are a shard's own."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.letters = 0
        """Dead letters that are nowhere in the new shards."""
        self._shard, self._version = Shard(), 0
        self._due: list[dict[int, tuple[int, bytes]]] = [{} for _ in range(shards)]
        """For each new shard: slot → version and items."""
        self._hours: dict[int, tuple[int, list[int]]] = {}
        self._low, self._exhausted, self._waiting = ([0] * shards for _ in range(3))

    def place(self, key: RowKey, version: int, value: bytes) -> int | None:
        """The shard that the row goes to; None: it is divided, or left behind."""
        home = home_of(*key)
        if home is None:
            self._divide(key, version, value)
            return None
        shard = shard_of(home, self._shards)
        if key.kind is Kept.KEYS:
            keys = _decode_keys(value)
            self._low[shard] += keys.low
            self._exhausted[shard] += keys.exhausted
        elif key.kind is Kept.MAILBOX:
            self._waiting[shard] += _decode_mailbox(value).waiting
        return shard

    def _divide(self, key: RowKey, version: int, value: bytes) -> None:
        if key.kind is Kept.SHARD:
            self._shard, self._version = decode_shard(value), version
        elif key.kind is Kept.DUE_HOUR:
            self._hours[key.a] = version, _decode_hour(value).slots
        elif key.kind is Kept.DEAD_LETTER:
            self.letters += 1
        elif key.kind is Kept.DUE:
            parts: dict[int, list[DueItem]] = {}
            for item in _decode_due(value).items:
                if item.what is not DueFor.DEAD_LETTER:
                    parts.setdefault(shard_of(_home_of_item(item), self._shards), []).append(item)
            for shard, items in parts.items():
                self._due[shard][key.a] = version, encode_row(Due(items))

    def rest(self, shard: int) -> Iterator[tuple[RowKey, int, bytes]]:
        old, due = self._shard, self._due[shard]
        first: dict[int, int] = {}
        for number, (version, slots) in sorted(self._hours.items()):
            if kept := [slot for slot in slots if slot in due]:
                moment = moment_of_slot(old, kept[0])
                assert hour_of(old, moment) == number
                first[number] = moment
                yield RowKey(Kept.DUE_HOUR, number), version, encode_row(DueHour(kept))
        for slot, (version, value) in due.items():
            yield RowKey(Kept.DUE, slot), version, value
        made = msgspec.structs.replace(
            old, due=first, next_due=min(first.values(), default=0), told={}, heard={}, dead=0,
            low=self._low[shard], exhausted=self._exhausted[shard], ledger=self._ledger(shard),
        )  # fmt: skip
        yield SHARD, self._version, encode_row(made)

    def _ledger(self, shard: int) -> CopyLedger:
        """Only the sum over all shards means something: the first has whatever belongs to none."""
        if shard:
            return CopyLedger(waiting=self._waiting[shard])
        elsewhere = sum(self._waiting[1:])
        return msgspec.structs.replace(self._shard.ledger, waiting=self._shard.ledger.waiting - elsewhere)


def _home_of_item(item: DueItem) -> int:
    if item.what in BY_NUMBER:
        return item.seq
    return item.device if item.what in BY_ACCOUNT else account_of(item.device)
