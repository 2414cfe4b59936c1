"""The table of alerts as files and pages have it: Prometheus' rules, and rows for docs/operating.md.

Knows:   the form of a rule file. A JSON string is a YAML string, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from .conditions import duration
from .table import ALERTS, Alert

HEAD = """\
# Alerts of a Nightmail server, for Prometheus. Written by `make docs` from src/nightmail/server/alerts/table.py.
groups:
  - name: nightmail
    rules:
"""


def rule_file(alerts: Sequence[Alert] = ALERTS) -> str:
    return HEAD + "".join(map(_rule, alerts))


def _rule(alert: Alert) -> str:
    return "".join(f"      {line}\n" for line in (
        f"- alert: {alert.name}",
        f"  expr: {json.dumps(alert.condition.promql())}",
        f"  for: {duration(alert.for_s)}",
        "  labels:",
        f"    severity: {alert.severity}",
        "  annotations:",
        f"    summary: {json.dumps(alert.text)}",
        f"    runbook: {json.dumps(alert.runbook)}",
    ))  # fmt: skip


def alerts_table() -> Iterable[Sequence[str]]:
    yield "alert", "severity", "expression", "for", "least sample", "meaning"
    for alert in ALERTS:
        name = f"[{alert.name}](#{alert.name.lower()})"
        lasting = duration(alert.for_s) if alert.for_s else ""
        expression = f"`{alert.condition.promql()}`"
        yield name, alert.severity, expression, lasting, alert.condition.least, alert.text
