"""When an alert is due: each condition as Prometheus asks for it, and as the server judges it by itself.

Knows:   series of the node's own metrics, by the name that Prometheus gives them.
Touches: a `History`, to read it.
Never:   reads a clock: a history says how old each of its samples is.

A window that reaches further back than the history begins with its oldest sample: counters begin with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Samples: TypeAlias = Mapping[str, float]
"""Series → value, as of one moment."""
Comparison: TypeAlias = Literal[">", ">=", "<", "==", "!="]


class History:
    """Samples of the last while, oldest first."""

    def __init__(self, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._samples: deque[tuple[int, Samples]] = deque()

    def add(self, now: int, samples: Samples) -> None:
        """`now` never jumps."""
        self._samples.append((now, samples))
        # The newest of those that are too old stays: a window begins there.
        while len(self._samples) > 1 and self._samples[1][0] <= now - self._keep_ms:
            self._samples.popleft()

    def newest(self, series: str) -> float | None:
        return self._samples[-1][1].get(series) if self._samples else None

    def increase(self, series: str, window_s: int) -> float | None:
        """By how much a series has grown within the window. None if it does not exist."""
        newest = self.newest(series)
        if newest is None:
            return None
        begins = self._samples[-1][0] - window_s * 1000
        before = newest
        for at, samples in self._samples:
            if at > begins and before is not newest:
                break
            # A series that appears within the window has grown from nothing.
            before = samples.get(series, 0.0)
        return newest - before


class Condition(Protocol):
    """`value` is what is compared with `threshold`; None: there is nothing to judge yet."""

    @property
    def compares(self) -> Comparison: ...

    @property
    def threshold(self) -> float: ...

    @property
    def window_s(self) -> int: ...

    @property
    def least(self) -> str:
        """The least sample, in words; empty: none is needed."""
        ...

    def series(self) -> Iterable[str]: ...

    def promql(self) -> str: ...

    def value(self, history: History) -> float | None: ...


def is_met(condition: Condition, value: float | None) -> bool:
    if value is None:
        return False
    limit = condition.threshold
    match condition.compares:
        case ">":
            return value > limit
        case ">=":
            return value >= limit
        case "<":
            return value < limit
        case "==":
            return value == limit
        case "!=":
            return value != limit


class Level(Struct, frozen=True):
    """A gauge, as it is now."""

    metric: str
    compares: Comparison
    threshold: float
    window_s: int = 0
    least: str = ""

    def series(self) -> Iterable[str]:
        return (self.metric,)

    def promql(self) -> str:
        return f"{self.metric} {self.compares} {_number(self.threshold)}"

    def value(self, history: History) -> float | None:
        return history.newest(self.metric)


class Growth(Struct, frozen=True):
    """By how much a counter, or a gauge, has grown within a window."""

    metric: str
    threshold: float
    window_s: int
    is_gauge: bool = False
    compares: Comparison = ">"
    least: str = ""

    def series(self) -> Iterable[str]:
        return (self.metric,)

    def promql(self) -> str:
        by = "delta" if self.is_gauge else "increase"
        return f"{by}({self.metric}[{duration(self.window_s)}]) {self.compares} {_number(self.threshold)}"

    def value(self, history: History) -> float | None:
        return history.increase(self.metric, self.window_s)


class Share(Struct, frozen=True):
    """What part of some counters' growth within a window is that of others; only if they have grown enough."""

    parts: tuple[str, ...]
    whole: tuple[str, ...]
    compares: Comparison
    threshold: float
    window_s: int
    least_whole: int

    @property
    def least(self) -> str:
        return f"{self.least_whole:,} in {duration(self.window_s)}"

    def series(self) -> Iterable[str]:
        return dict.fromkeys((*self.parts, *self.whole))

    def promql(self) -> str:
        part, whole = self._sum(self.parts), self._sum(self.whole)
        return f"{part} / {whole} {self.compares} {_number(self.threshold)} and {whole} >= {self.least_whole}"

    def _sum(self, metrics: tuple[str, ...]) -> str:
        return "(" + " + ".join(f"increase({metric}[{duration(self.window_s)}])" for metric in metrics) + ")"

    def value(self, history: History) -> float | None:
        part, whole = (self._grown(history, metrics) for metrics in (self.parts, self.whole))
        return part / whole if whole >= self.least_whole else None

    def _grown(self, history: History, metrics: tuple[str, ...]) -> float:
        return sum(history.increase(metric, self.window_s) or 0.0 for metric in metrics)


class Quantile(Struct, frozen=True):
    """A quantile of a histogram over a window; only if it has counted enough."""

    histogram: str
    bounds_s: tuple[str, ...]
    """The upper bounds of its buckets, as they are scraped."""
    part: float
    threshold: float
    window_s: int
    least_count: int
    compares: Comparison = ">"

    @property
    def least(self) -> str:
        return f"{self.least_count:,} in {duration(self.window_s)}"

    def series(self) -> Iterable[str]:
        return (f"{self.histogram}_count", *map(self._bucket, self.bounds_s))

    def _bucket(self, bound: str) -> str:
        return f'{self.histogram}_bucket{{le="{bound}"}}'

    def promql(self) -> str:
        window = duration(self.window_s)
        return (
            f"histogram_quantile({_number(self.part)}, rate({self.histogram}_bucket[{window}])) {self.compares} "
            f"{_number(self.threshold)} and increase({self.histogram}_count[{window}]) >= {self.least_count}"
        )

    def value(self, history: History) -> float | None:
        """By linear interpolation inside the bucket, as Prometheus does it."""
        count = history.increase(f"{self.histogram}_count", self.window_s) or 0.0
        if count < self.least_count:
            return None
        wanted, low, below = self.part * count, 0.0, 0.0
        for bound in self.bounds_s:
            upto = history.increase(self._bucket(bound), self.window_s) or 0.0
            if bound == "+Inf":
                break
            if upto >= wanted:
                return low + (float(bound) - low) * (wanted - below) / (upto - below) if upto > below else low
            low, below = float(bound), upto
        return low  # It lies above the highest bound.


def duration(seconds: int) -> str:
    """As Prometheus writes it: 90 s is 90s, 600 s is 10m."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"
