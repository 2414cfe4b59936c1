"""What a server's numbers may be. A frame can be well formed, and say what no server of ours would.

Knows:   how large an account, a device, a moment and a count can be; all of them fit into the store.
Never:   judges what is true: the parts that take an item do.
"""

from __future__ import annotations

from typing import cast

from nightmail.model.answers import Said
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX
from nightmail.model.rows import Change, Entry
from nightmail.model.words import Lane, State
from nightmail.wire.items import (
    Answered,
    Devices,
    Drained,
    Entries,
    FromServer,
    Gone,
    Goodbye,
    KeysLow,
    Pong,
    Receipts,
    Welcome,
)

from .errors import Misbehaved

MOMENT_END = 1 << 47
"""In milliseconds since 1970: the year 6429. A calendar can still show it."""

_LANES = frozenset(int(lane) for lane in Lane)
_STATES = frozenset(int(state) for state in State)


def check(item: FromServer) -> None:
    """Raises Misbehaved."""
    match item:
        case Entries():
            good = _is_count(item.first) and all(map(_is_entry, item.entries))
        case Receipts():
            good = all(map(_is_change, item.changes))
        case Answered():
            good = _is_answer(item.said)
        case Gone():
            good = 1 <= item.low <= item.high <= NUMBER_MAX
        case Devices():
            counts = (item.version, *item.devices.values())
            good = (
                0 <= item.account <= ACCOUNT_MAX and all(map(_is_count, counts)) and all(map(_is_device, item.devices))
            )
        case Welcome():
            counts = (item.version, item.heartbeat_ms, item.window, item.body_bytes, item.frame_bytes)
            good = 0 <= item.at < MOMENT_END and all(map(_is_count, counts))
        case Drained():
            good = all(map(_is_count, (item.normal, item.high, item.changes)))
        case Goodbye():
            good = _is_count(item.code) and _is_count(item.retry_ms)
        case Pong() | KeysLow():
            good = True
    if not good:
        raise Misbehaved(f"a number in {type(item).__name__} that cannot be")


def _is_entry(entry: Entry) -> bool:
    return (
        0 <= entry.by <= DEVICE_MAX
        and 0 <= entry.to <= ACCOUNT_MAX
        and 0 <= entry.n <= NUMBER_MAX
        and 0 <= entry.at < MOMENT_END
        and 0 <= entry.life_ms <= NUMBER_MAX
    )


def _is_change(change: Change) -> bool:
    by, to, lane, device, state, n = change.key
    return (
        0 <= by <= DEVICE_MAX
        and 0 <= to <= ACCOUNT_MAX
        and lane in _LANES
        and 0 <= device <= DEVICE_MAX
        and state in _STATES
        and (0 <= n <= NUMBER_MAX or (state == State.FAILED and n == -change.reason))
        and 1 <= change.seq <= NUMBER_MAX
        and 0 <= change.at < MOMENT_END
        and _are_spans(change.numbers)
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
        if name == "at" and not (isinstance(value, int) and value < MOMENT_END):
            return False
        numbers = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int) and not 0 <= number <= DEVICE_MAX for number in numbers):
            return False
    return True


def _is_count(number: int) -> bool:
    return 0 <= number <= NUMBER_MAX


def _is_device(device: int) -> bool:
    return 0 <= device <= DEVICE_MAX
