"""What an operator asks and commands about time."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.api.times import rfc3339
from nightmail.engine.clock import ClockLimits
from nightmail.model.limits import DAY_MS
from tests.server.rig import Times, serving


def test_the_operator_sets_time_back_after_a_wrong_clock_was_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path) as town:
        right = times.wall
        town.register("ada")

        def shown(state: str, time: int) -> dict[str, object]:
            return {
                "state": state, "clock": times.wall, "clock_rfc3339": rfc3339(times.wall), "time": time,
                "time_rfc3339": rfc3339(time),
            }  # fmt: skip

        assert town.get("/v1/clock", town.operator).json == shown("believed", right)
        times.wall += 31 * DAY_MS
        assert town.get("/v1/clock", town.operator).json == shown("ahead", right + 1)
        times.go_on(ClockLimits().lasting_ms)
        town.run(town.node.heart.loop.tick)
        town.register("bob")
        assert town.get("/v1/clock", town.operator).json == shown("believed", times.wall)
        wrong = times.wall
        times.wall -= 31 * DAY_MS
        assert town.get("/v1/clock", town.operator).json == shown("behind", wrong)
        back = town.ask("POST", "/v1/clock/set-back", auth=town.operator)
        assert (back.status, back.json) == (200, shown("believed", times.wall))
        assert town.run(lambda: town.node.heart.loop.state.now) == times.wall


def test_time_is_not_set_back_while_the_clock_is_not_behind(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        refused = town.ask("POST", "/v1/clock/set-back", auth=town.operator)
        assert (refused.status, refused.json["code"]) == (409, "clock_not_behind")


def test_only_the_operator_asks_and_commands(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada = town.register("ada")
        for method, path in (("GET", "/v1/clock"), ("POST", "/v1/clock/set-back")):
            assert [town.ask(method, path, auth=who).status for who in (None, ada, "Bearer operator.wrong")] == [
                401
            ] * 3
