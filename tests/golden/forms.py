"""Rows as an older fold wrote them: what was appended to a row since then does not count for that fold.

Fields are only ever appended, with defaults that an older fold leaves alone. So the bytes of a row, cut back to the
fields that the fold knew, are what it always wrote; and a program that knows only that fold reads just those.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from nightmail.model.rows import Kept


class DueItem1(Struct, array_like=True):
    device: int
    lane: int
    seq: int


class DueItem2(DueItem1, array_like=True):
    what: int


class Due1(Struct, array_like=True):
    items: list[DueItem1]


class Due2(Struct, array_like=True):
    items: list[DueItem2]


class Mailbox1(Struct, array_like=True):
    lanes: Any
    due: int
    bytes: int


class Mailbox5(Mailbox1, array_like=True):
    waking: int
    shared: bool
    set_backs: int
    before_set_back: Any


class FoldLimits1(Struct, array_like=True):
    mailbox_entries: int
    ring_acks: int
    ttl_ms: int
    ahead_ms: int
    tick_items: int
    blocked_accounts: int
    pin_tries: int
    pin_lock_ms: int
    stock_one_time: int
    stock_kem: int
    low_one_time: int
    low_kem: int
    claims_kept: int
    claims_kept_ms: int
    claims_per_minute: int
    devices: int
    mailbox_bytes: int
    slot_items: int
    failures_alone: int


class Shard1(Struct, array_like=True):
    now: int
    fold: int
    limits: FoldLimits1
    due: dict[int, int]
    next_due: int
    told: dict[int, int]
    heard: dict[int, int]
    out_of_chain: int
    dead: int
    low: int
    exhausted: int


class Account1(Struct, array_like=True):
    handle: str
    devices: Any
    listed: Any
    list_version: int
    signed_list: bytes
    blocked: Any
    read_receipts: bool
    next_index: int
    closed: bool
    lock: Any


class DeadLetter1(Struct, array_like=True):
    record: bytes
    errors: list[str]
    at: int


class FoldLimits2(FoldLimits1, array_like=True):
    dead_letters_ms: int
    share_parts: int
    stranger_entries: int
    stranger_bytes: int
    stranger_parts: int
    known_accounts: int
    handle_kept_ms: int


class Shard2(Struct, array_like=True):
    now: int
    fold: int
    limits: FoldLimits2
    due: dict[int, int]
    next_due: int
    told: dict[int, int]
    heard: dict[int, int]
    out_of_chain: int
    dead: int
    low: int
    exhausted: int
    set_backs: int
    set_back_to: int
    set_back_by: int
    set_back_ms: int
    newest_time: int
    doubts: Any


class Shard3(Shard2, array_like=True):
    doubted_from: int


class Account2(Account1, array_like=True):
    closed_at: int
    claim: int


class Account7(Account2, array_like=True):
    revision: int
    listed_since: Any


class Stream4(Struct, array_like=True):
    at: int
    lanes: Any


class DeadLetter4(DeadLetter1, array_like=True):
    page: int


class FoldLimits4(FoldLimits2, array_like=True):
    group_members: int
    account_groups: int
    group_changes: int
    relistings: int
    chain_kept: int
    group_write_members: int
    group_read_members: int
    group_log_bytes: int


class Shard4(Struct, array_like=True):
    now: int
    fold: int
    limits: FoldLimits4
    due: dict[int, int]
    next_due: int
    told: dict[int, int]
    heard: dict[int, int]
    out_of_chain: int
    dead: int
    low: int
    exhausted: int
    set_backs: int
    set_back_to: int
    set_back_by: int
    set_back_ms: int
    newest_time: int
    doubts: Any
    doubted_from: int
    leaps: Any
    doubted_elapsed: int


class FoldLimits5(FoldLimits4, array_like=True):
    schedules: int
    schedule_calls: int
    schedule_bytes: int
    schedule_ahead_ms: int
    call_ahead_ms: int
    reseal_ms: int
    schedules_kept_ms: int
    call_patience_ms: int
    retry_after_ms: int


class Shard5(Struct, array_like=True):
    now: int
    fold: int
    limits: FoldLimits5
    due: dict[int, int]
    next_due: int
    told: dict[int, int]
    heard: dict[int, int]
    out_of_chain: int
    dead: int
    low: int
    exhausted: int
    set_backs: int
    set_back_to: int
    set_back_by: int
    set_back_ms: int
    newest_time: int
    doubts: Any
    doubted_from: int
    leaps: Any
    doubted_elapsed: int


class FoldLimits6(FoldLimits5, array_like=True):
    wake_patience_ms: int
    wake_again_ms: int
    wake_second_ms: int
    wake_third_ms: int


class Shard6(Struct, array_like=True):
    now: int
    fold: int
    limits: FoldLimits6
    due: dict[int, int]
    next_due: int
    told: dict[int, int]
    heard: dict[int, int]
    out_of_chain: int
    dead: int
    low: int
    exhausted: int
    set_backs: int
    set_back_to: int
    set_back_by: int
    set_back_ms: int
    newest_time: int
    doubts: Any
    doubted_from: int
    leaps: Any
    doubted_elapsed: int
    ledger: Any


class DeadLetter5(DeadLetter4, array_like=True):
    status: int
    settled_at: int
    stamp: int
    account: int
    serial: int
    retry_count: int
    first_attempt: int
    last_attempt: int
    fold: int


FORMS: dict[int, dict[Kept, type[Struct]]] = {
    1: {
        Kept.SHARD: Shard1,
        Kept.ACCOUNT: Account1,
        Kept.MAILBOX: Mailbox1,
        Kept.DUE: Due1,
        Kept.DEAD_LETTER: DeadLetter1,
        Kept.STREAM: Stream4,
    },
    2: {
        Kept.SHARD: Shard2,
        Kept.MAILBOX: Mailbox5,
        Kept.ACCOUNT: Account2,
        Kept.DUE: Due2,
        Kept.DEAD_LETTER: DeadLetter4,
        Kept.STREAM: Stream4,
    },
    3: {
        Kept.SHARD: Shard3,
        Kept.MAILBOX: Mailbox5,
        Kept.ACCOUNT: Account2,
        Kept.DUE: Due2,
        Kept.DEAD_LETTER: DeadLetter4,
        Kept.STREAM: Stream4,
    },
    4: {
        Kept.SHARD: Shard4,
        Kept.MAILBOX: Mailbox5,
        Kept.ACCOUNT: Account7,
        Kept.DEAD_LETTER: DeadLetter4,
        Kept.STREAM: Stream4,
    },
    5: {
        Kept.SHARD: Shard5,
        Kept.MAILBOX: Mailbox5,
        Kept.ACCOUNT: Account7,
        Kept.DEAD_LETTER: DeadLetter5,
    },
    6: {
        Kept.SHARD: Shard6,
        Kept.ACCOUNT: Account7,
    },
    7: {
        Kept.ACCOUNT: Account7,
    },
}
"""Fold → the rows that have grown since, as they were."""


def as_written_by(fold: int, kind: Kept, data: bytes) -> bytes:
    if form := FORMS.get(fold, {}).get(kind):
        return msgspec.msgpack.encode(msgspec.msgpack.decode(data, type=form))
    return data
