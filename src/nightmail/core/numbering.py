"""Numbers: each message of a stream takes the next one, once, with its stamp; every retry gets the same answer.

Knows:   one stream: its watermark, the answers that its sender may still ask for, the newest stamp.
Touches: that row.

The watermark never expires: it is the whole memory that a retry needs.
"""

from __future__ import annotations

from typing import Protocol

from nightmail.model.answers import Said
from nightmail.model.records import Sent
from nightmail.model.refusals import OutOfOrder
from nightmail.model.rows import Kept, Need, Numbers, RowKey, Stream
from nightmail.model.words import Lane

from . import ring
from .ring import forget, slot
from .state import ShardState, missing_row


class NumberedMessage(Protocol):
    """A message, as far as its number is concerned."""

    @property
    def lane(self) -> Lane: ...
    @property
    def n(self) -> int: ...
    @property
    def floor(self) -> int: ...
    @property
    def seen(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def tag(self) -> bytes: ...


def needs_stream(state: ShardState, by: int, to: int, missing: list[Need]) -> None:
    missing_row(state.accounts, Kept.ACCOUNT, to, missing)
    if (by, to) not in state.streams.rows:
        missing.append(RowKey(Kept.STREAM, by, to))


def take_number(
    state: ShardState, key: tuple[int, int], stream: Stream, message: NumberedMessage, version: int,
    checksum: bytes | None = None,
) -> int:  # fmt: skip
    """Take the stream's next number for a message, and remember its answer. Returns the stamp.

    The caller has checked that it is the next one. `version` is the list that the message was sealed for,
    `checksum` that of its id, where the caller has it.
    """
    # The stamp is later than the stream's last one, and than what its sender had seen, within bounds.
    shard, seen, n = state.shard, message.seen, message.n
    at, last, limits = shard.now, stream.at, shard.limits
    if seen > last and seen >= at:
        # After a wrong clock was set back, what it has stamped is still answered behind it.
        at = min(seen + 1, max(at, shard.newest_time) + limits.ahead_ms)
    if at <= last:
        at = last + 1
    stream.at = at
    numbers = stream.lanes[message.lane]
    numbers.last = n
    numbers.ring += slot(message.tag, checksum or ring.checksum_of(message.id), at, version)
    low, floor = numbers.low, message.floor
    if low < floor or low <= n - limits.ring_acks:
        forget(numbers, floor, limits.ring_acks)
    if n == 1:
        state.streams.rows[key] = stream  # It may be new.
    state.streams.changed[key] = state.offset
    return at


def answer_from_memory(state: ShardState, by: int, sent: Sent) -> Said | None:
    """The answer to a retry, if it can be given without going through the log once more."""
    stream = state.streams.rows.get((by, sent.to))
    if stream is None or sent.n > stream.lanes[sent.lane].last:
        return None
    return ring.answer_again(stream.lanes[sent.lane], sent)


def answer_out_of_turn(numbers: Numbers, sent: ring.Numbered) -> Said:
    """The first answer may have been lost: repeat it word for word. What is ahead of its turn is not taken."""
    return ring.answer_again(numbers, sent) if sent.n <= numbers.last else OutOfOrder(numbers.last + 1)
