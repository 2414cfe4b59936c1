"""A log that stands in front of another log: a subclass changes one call and passes on the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nightmail.engine.ports import Log, Stored


class LogWrapper:
    """A `Log` that passes every call to `log`."""

    def __init__(self, log: Log) -> None:
        self.log = log

    @property
    def last(self) -> int:
        return self.log.last

    @property
    def tight(self) -> bool:
        return self.log.tight

    @property
    def is_full(self) -> bool:
        return self.log.is_full

    @property
    def span(self) -> int:
        return self.log.span

    @property
    def batch_bytes_max(self) -> int:
        return self.log.batch_bytes_max

    def append(self, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        self.log.append(at, records, done)

    def replay(self, after: int) -> Iterator[Stored]:
        return self.log.replay(after)

    def trim(self, upto: int, now: int) -> None:
        self.log.trim(upto, now)

    def close(self) -> None:
        self.log.close()
