"""The node's metrics as series: what Prometheus would have scraped at this moment."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric


def series_of(families: Iterable[Metric]) -> dict[str, float]:
    """`name`, or `name{label="value"}`, → value."""
    return {
        _name(sample.name, sample.labels): float(sample.value) for family in families for sample in family.samples
    }  # fmt: skip


def _name(name: str, labels: dict[str, str]) -> str:
    if not labels:
        return name
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inside}}}"
