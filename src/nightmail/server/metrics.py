"""/metrics: figures that are counted anyway, put into Prometheus' form when somebody asks.

Knows:   the name and the meaning of every metric (docs/operating.md lists them).
Touches: the figures of heart, gateway and process, to read them.
Never:   costs anything between two scrapes.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .observe import Histogram

if TYPE_CHECKING:
    from .node import Node

PAGE = os.sysconf("SC_PAGE_SIZE")


class Metrics(Collector):
    def __init__(self, node: Node) -> None:
        self._node = node
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def scrape(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: else it would be asked for everything when it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._heart()
        yield from self._gateway()
        yield from self._process()

    def _heart(self) -> Iterator[Metric]:
        figures, heart = self._node.figures, self._node.heart
        yield _counter("records", "Records made durable.", figures.records)
        yield _histogram("commit_seconds", "From a batch's append to its being durable.", figures.commits)

    def _gateway(self) -> Iterator[Metric]:
        return iter(())

    def _process(self) -> Iterator[Metric]:
        return iter(())


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"nightmail_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"nightmail_{name}", text, value=value)


def _histogram(name: str, text: str, found: Histogram) -> Metric:
    return HistogramMetricFamily(
        f"nightmail_{name}", text, buckets=list(found.buckets()), sum_value=found.total / 1000
    )  # fmt: skip
