"""A real server judges itself, shows the operator how alerts stand, and calls a webhook."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from nightmail.api.times import rfc3339
from nightmail.server.alerts.table import ALERTS
from nightmail.server.heart import clock
from nightmail.server.observe import LogWatcher
from tests.outlets.hook import WRITTEN, Hook, answering
from tests.server.rig import WAIT_S, Times, Town, serving

EVERY_MS = 15_000


def standing(town: Town, name: str) -> Any:
    (found,) = (each for each in town.get("/v1/operator/alerts", town.operator).json["alerts"] if each["name"] == name)
    return found


def look(town: Town, times: Times, after_ms: int = EVERY_MS) -> None:
    """Let time pass, and have the alerts judged."""
    times.go_on(after_ms)
    assert town.node.alerts
    town.run(town.node.alerts.tick)


def make_trouble(town: Town) -> None:
    """Told as the saver tells it after its last retry, which takes seconds."""
    town.run(lambda: LogWatcher(town.node.figures, clock).on_trouble("planted"))


def heard(hook: Hook, count: int, town: Town, times: Times) -> list[str]:
    """What the webhook was told, once it was told so much. The server looks again until then."""
    enough = threading.Event()
    for _ in range(WAIT_S * 100):
        if len(hook.calls) >= count:
            break
        look(town, times, 1)
        enough.wait(0.01)
    return [call.json["type"] for call in hook.calls]


def test_every_alert_is_shown_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path) as town:
        shown = town.get("/v1/operator/alerts", town.operator).json
        assert (shown["looked_at"], shown["looked_at_rfc3339"]) == (times.wall, rfc3339(times.wall))
        assert {alert["name"]: alert["state"] for alert in shown["alerts"] if alert["name"] != "DiskFilling"} == {
            alert.name: "ok" for alert in ALERTS if alert.name != "DiskFilling"
        }
        make_trouble(town)
        look(town, times)
        alert = next(alert for alert in ALERTS if alert.name == "StorageFailing")
        assert standing(town, "StorageFailing") == {
            "name": "StorageFailing", "severity": "critical", "state": "firing", "since": times.wall,
            "since_rfc3339": rfc3339(times.wall), "value": 1.0, "compares": ">", "threshold": 0.0, "text": alert.text,
            "runbook": "docs/operating.md#storagefailing",
        }  # fmt: skip


def test_only_the_operator_is_shown_alerts(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada = town.register("ada")
        for who in (None, ada, "Bearer operator.wrong"):
            assert town.get("/v1/operator/alerts", who).status == 401


def test_a_webhook_is_told_signed_when_an_alert_fires_and_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with (
        answering() as hook,
        serving(
            tmp_path, alerts__webhook_url=hook.url, alerts__webhook_secret=WRITTEN, alerts__silenced="DiskFilling",
            alerts__every_ms=1, schedule__private_networks="127.0.0.1",
        ) as town,
    ):  # fmt: skip
        make_trouble(town)
        look(town, times)
        assert heard(hook, 1, town, times) == ["alert.firing"]
        look(town, times, 600_000)
        assert heard(hook, 2, town, times) == ["alert.firing", "alert.resolved"]
    assert all(call.is_signed for call in hook.calls)
    fired = hook.calls[0].json
    assert (fired["name"], fired["severity"], fired["node"]) == ("StorageFailing", "critical", "nightmail")
