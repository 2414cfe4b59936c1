"""Plain figures in Prometheus' form."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from .histogram import Histogram

LABELS_MAX = 50


def counter(name: str, text: str, value: float) -> Metric:
    return plain(CounterMetricFamily, f"nightmail_{name}", text, value)


def gauge(name: str, text: str, value: float) -> Metric:
    return plain(GaugeMetricFamily, f"nightmail_{name}", text, value)


def labelled(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, text: str, label: str,
    values: Mapping[str, float],
) -> Metric:  # fmt: skip
    """One value for each of a few words; most frequent first, and the rest left out."""
    family = kind(f"nightmail_{name}", text, labels=[label])
    for word, value in sorted(values.items(), key=lambda item: -item[1])[:LABELS_MAX]:
        family.add_metric([word], value)
    return family


def plain(kind: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, text: str, value: float) -> Metric:
    return kind(name, text, value=value)


def histogram(name: str, text: str, found: Histogram) -> Metric:
    return HistogramMetricFamily(
        f"nightmail_{name}", text, buckets=list(found.buckets()), sum_value=found.total / 1000
    )  # fmt: skip
