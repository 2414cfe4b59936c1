"""Which clock is used for what, and what the data folder remembers of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.engine.clock import ClockLimits
from nightmail.model.answers import Accepted
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.limits import DAY_MS
from tests.server.rig import Person, Times, Town, message, serving


def sent_at(town: Town, ada: Person, bob: Person, n: int) -> int:
    said = town.say(ada.device, message(ada, bob, n))
    assert isinstance(said, Accepted)
    return said.at


def clock_seen(town: Town) -> ClockSeen:
    return town.run(lambda: town.node.heart.loop.clock_seen)


def test_messages_are_stamped_by_the_wall_clock_which_is_doubted_by_the_monotonic_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    noon = times.wall
    with serving(tmp_path) as town:
        ada, bob = town.register("ada"), town.register("bob")
        assert sent_at(town, ada, bob, 1) == noon
        times.go_on(5_000)
        assert sent_at(town, ada, bob, 2) == noon + 5_000
        times.wall += 31 * DAY_MS
        assert sent_at(town, ada, bob, 3) == noon + 5_001
        times.go_on(ClockLimits().lasting_ms)
        town.run(town.node.heart.loop.tick)
        assert sent_at(town, ada, bob, 4) == times.wall


def test_sessions_tell_the_wall_clock_and_wait_by_the_monotonic_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path) as town:
        shared = town.node.gateway.shared
        assert (shared.clock(), shared.pace()) == (times.wall, times.pace)


def test_a_machine_that_boots_with_a_wrong_clock_goes_on_from_the_time_that_the_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path) as town:
        ada, bob = town.register("ada"), town.register("bob")
        before = sent_at(town, ada, bob, 1)
    times.wall += 31 * DAY_MS
    with serving(tmp_path) as town:
        assert clock_seen(town) == ClockSeen(ClockState.AHEAD, times.wall, before)
        assert sent_at(town, ada, bob, 2) == before + 1


def test_the_folder_remembers_the_time_of_a_server_that_was_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = Times(monkeypatch)
    with serving(tmp_path) as town:
        town.register("ada")
        times.go_on(20 * DAY_MS)
    with serving(tmp_path) as town:
        assert clock_seen(town) == ClockSeen(ClockState.BELIEVED, times.wall, times.wall)
    times.wall += 31 * DAY_MS
    with serving(tmp_path) as town:
        assert clock_seen(town) == ClockSeen(ClockState.AHEAD, times.wall, times.wall - 31 * DAY_MS)
