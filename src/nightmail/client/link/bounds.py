"""Which numbers a server may send. A frame can be well formed and still hold numbers that no Nightmail server sends.

Knows:   how large an account, a device, a time and a count can be; whatever passes fits into the store.
Never:   judges what is true: the parts that take an item do.
"""

from __future__ import annotations

from typing import cast

from nightmail.model.answers import Said
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX
from nightmail.model.group_chain import HEAD_BYTES, is_group
from nightmail.model.roster import ACCOUNT_KEY_BYTES, TIMER_MS_MAX
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Lane, MessageState
from nightmail.wire.items import (
    Answered,
    Devices,
    Drained,
    Entries,
    Gone,
    Goodbye,
    GroupChain,
    GroupLog,
    GroupMembers,
    GroupSeenBy,
    LogGap,
    LogRun,
    Receipts,
    Seen,
    Types,
    Welcome,
)

TIME_END = 1 << 47
"""In milliseconds since 1970: the year 6429. A calendar can still show it."""

_LANES = frozenset(int(lane) for lane in Lane)
_STATES = frozenset(int(state) for state in MessageState)


def is_entries(item: Entries) -> bool:
    return _is_count(item.first) and all(map(_is_entry, item.entries))


def is_receipts(item: Receipts) -> bool:
    return all(map(_is_receipt, item.receipts))


def is_answered(item: Answered) -> bool:
    return _is_answer(item.said)


def is_gone(item: Gone) -> bool:
    return 1 <= item.low <= item.high <= NUMBER_MAX


def is_devices(item: Devices) -> bool:
    counts = (item.version, *item.devices.values())
    return 0 <= item.account <= ACCOUNT_MAX and all(map(_is_count, counts)) and all(map(_is_device, item.devices))


def is_welcome(item: Welcome) -> bool:
    counts = (item.version, item.heartbeat_ms, item.window, item.body_bytes, item.frame_bytes, item.since, item.items)
    return 0 <= item.at < TIME_END and all(map(_is_count, counts))


def is_drained(item: Drained) -> bool:
    return all(map(_is_count, (item.normal, item.high, item.receipts)))


def is_goodbye(item: Goodbye) -> bool:
    return _is_count(item.code) and _is_count(item.retry_ms)


def is_seen(item: Seen) -> bool:
    return all(0 <= person.account <= ACCOUNT_MAX and 0 <= person.last_seen < TIME_END for person in item.people)


def is_types(item: Types) -> bool:
    return 0 <= item.by <= ACCOUNT_MAX and (item.group == 0 or is_group(item.group))


def is_group_chain(item: GroupChain) -> bool:
    """The changes ascend, and the newest is no newer than the chain is long."""
    before = 0
    for index, _ in item.blobs:
        if not before < index <= item.length:
            return False
        before = index
    return _is_headed(item) and _is_count(item.seq)


def is_group_members(item: GroupMembers) -> bool:
    before = 0
    for member in item.members:
        if not before < member.account <= ACCOUNT_MAX or len(member.key) != ACCOUNT_KEY_BYTES:
            return False
        before = member.account
    return _is_headed(item) and 0 <= item.settings.timer_ms <= TIMER_MS_MAX


def is_group_log(item: GroupLog) -> bool:
    """Its items follow each other without holes, from behind `after`."""
    last = item.after
    for part in item.items:
        if not _follows(part, last):
            return False
        last = part.high if isinstance(part, LogGap) else last + len(part.entries)
    return is_group(item.group) and 0 <= item.after <= NUMBER_MAX and last <= NUMBER_MAX and _is_count(item.head)


def _follows(part: LogRun | LogGap, last: int) -> bool:
    if isinstance(part, LogGap):
        return part.low == last + 1 and part.low <= part.high <= NUMBER_MAX
    return part.first == last + 1 and bool(part.entries) and all(map(_is_entry, part.entries))


def is_group_seen_by(item: GroupSeenBy) -> bool:
    return is_group(item.group) and all(
        1 <= number <= NUMBER_MAX and all(0 <= account <= ACCOUNT_MAX for account, _ in states)
        for number, states in item.states
    )


def _is_headed(item: GroupChain | GroupMembers) -> bool:
    return (
        is_group(item.group)
        and len(item.head) == HEAD_BYTES
        and _is_count(item.epoch)
        and _is_count(item.length)
    )  # fmt: skip


def is_anything(item: object) -> bool:
    """For an item whose numbers nobody uses."""
    return True


def _is_entry(entry: Entry) -> bool:
    return (
        0 <= entry.by <= DEVICE_MAX
        and 0 <= entry.to <= ACCOUNT_MAX
        and 0 <= entry.n <= NUMBER_MAX
        and 0 <= entry.at < TIME_END
        and 0 <= entry.life_ms <= NUMBER_MAX
        and 0 <= entry.group_seq <= NUMBER_MAX
        and 0 <= entry.epoch <= NUMBER_MAX
    )


def _is_receipt(receipt: PendingReceipt) -> bool:
    by, to, lane, device, state, n = receipt.key
    return (
        0 <= by <= DEVICE_MAX
        and 0 <= to <= ACCOUNT_MAX
        and lane in _LANES
        and 0 <= device <= DEVICE_MAX
        and state in _STATES
        and (0 <= n <= NUMBER_MAX or (state == MessageState.FAILED and n == -receipt.reason))
        and 1 <= receipt.seq <= NUMBER_MAX
        and 0 <= receipt.at < TIME_END
        and _are_spans(receipt.numbers)
    )


def _are_spans(spans: list[int]) -> bool:
    """Pairs that ascend and do not overlap."""
    before = 0
    for at, number in enumerate(spans):
        if not (number >= before if at & 1 else number > before):
            return False
        before = number
    return not len(spans) & 1 and before <= NUMBER_MAX


def _is_answer(said: Said) -> bool:
    for name in said.__struct_fields__:
        value: object = getattr(said, name)
        if name == "at" and not (isinstance(value, int) and value < TIME_END):
            return False
        numbers = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int) and not 0 <= number <= DEVICE_MAX for number in numbers):
            return False
    return True


def _is_count(number: int) -> bool:
    return 0 <= number <= NUMBER_MAX


def _is_device(device: int) -> bool:
    return 0 <= device <= DEVICE_MAX
