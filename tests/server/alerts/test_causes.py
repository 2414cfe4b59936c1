"""Alerts fire by their causes: a real node judges its own figures, over as much time as each alert asks for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from nightmail.server.alerts.table import ALERTS
from tests.server import metric_stories as stories
from tests.server.rig import Times, serving
from tests.server.stage import SCRAPES_MAX, Stage

EVERY_MS = 15_000
ALERT = {alert.name: alert for alert in ALERTS}


class Cause(NamedTuple):
    story: Callable[[Stage, Times], None]
    settings: dict[str, Any] = {}  # noqa: RUF012 (never written)


def told(story: Callable[[Stage], None]) -> Callable[[Stage, Times], None]:
    """A story that needs no clock."""
    return lambda on, _: story(on)


def fill_the_disk(on: Stage, _: Times) -> None:
    on.patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4_000_000_000))


def put_the_clock_ahead(_: Stage, times: Times) -> None:
    times.wall += 600_000


def put_the_clock_back(on: Stage, times: Times) -> None:
    stories.leave_something(on)
    times.wall -= 1_200_000


CAUSES = {
    "Loss": Cause(told(stories.lose_something)),
    "NotReady": Cause(told(stories.fail_to_write)),
    "DiskTight": Cause(told(stories.fail_to_write)),
    "DiskFilling": Cause(fill_the_disk),
    "StorageFailing": Cause(told(stories.fail_to_save)),
    "ClockAhead": Cause(put_the_clock_ahead),
    "ClockBehind": Cause(put_the_clock_back),
    "RecordSetAside": Cause(told(stories.fall_over_a_record)),
    "MailboxNearlyFull": Cause(told(stories.leave_something), {"limits__mailbox_entries": 1}),
    "LowPrekeys": Cause(told(stories.publish_few_keys)),
    "ExhaustedPrekeys": Cause(told(stories.publish_few_keys)),
}


@pytest.mark.parametrize("name", CAUSES)
def test_an_alert_fires_by_its_cause_and_not_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times, (story, settings) = Times(monkeypatch), CAUSES[name]
    with (
        serving(tmp_path, data__checkpoint_ms=10_000_000, server__drain_ms=0, **settings) as town,
        monkeypatch.context() as patch,
        ExitStack() as until_read,
    ):
        on = Stage(town, town.register("ada"), town.register("bob"), patch, until_read)
        alerts = town.node.alerts
        assert alerts is not None

        def state_after(ms: int) -> str:
            times.go_on(ms)
            town.run(alerts.tick)
            (found,) = (each.state for each in town.run(alerts.show).alerts if each.name == name)
            return found

        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=50_000_000_000))
        assert state_after(EVERY_MS) == "ok"
        story(on, times)
        # What the node samples by itself, it has sampled after some ticks.
        state = "ok"
        for _ in range(SCRAPES_MAX):
            if (state := state_after(EVERY_MS)) != "ok":
                break
        for _ in range(ALERT[name].for_s * 1_000 // EVERY_MS + 1):
            state = state if state == "firing" else state_after(EVERY_MS)
        assert state == "firing"
