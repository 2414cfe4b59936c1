"""What the heart ties together: which clock, which settings, which thread reaches which part."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.clock import ClockLimits
from nightmail.model.answers import Accepted
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Record
from nightmail.server.config import load
from nightmail.server.heart import Heart, clock, pace
from nightmail.server.observe import Figures
from tests.engine.rig import a_person
from tests.server.rig import SMALL, WAIT_S, Person, Times, Town, message, serving

IN_2030_NS = 1_900_000_000 * 10**9


class Beating:
    """A heart, driven by hand."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        flags = SMALL | {"data.folder": str(folder)} | {name.replace("__", "."): to for name, to in settings.items()}
        self.config, self.figures = load(flags=flags).config, Figures()
        self.posts: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.later: list[int] = []
        self.effects: list[Effect] = []
        self.heart = Heart(self.config, self.figures, self.posts.put, self._later, self._on_effects)
        self.heart.recover()
        self.until(lambda: self.heart.loop.idle)

    def _later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.later.append(delay_ms)
        self.posts.put(callback)

    def _on_effects(self, effects: Sequence[Effect]) -> None:
        self.effects += effects

    def until(self, so: Callable[[], bool]) -> None:
        """Work off what the threads report."""
        while not so():
            self.posts.get(timeout=WAIT_S)()

    def register(self, handle: str) -> None:
        self.effects.clear()
        self.heart.loop.submit(Record(SERVER, 1, a_person(handle)))
        self.heart.loop.flush()
        self.until(lambda: any(isinstance(effect, Answer) for effect in self.effects))

    def close(self) -> None:
        self.heart.close()


class Clocks:
    """Both clocks of the machine, set by hand. With a `step`, each reading of the steady one moves it on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ns, self.steady_ns, self.wall_step_ns, self.steady_step_ns = IN_2030_NS, 10**12, 0, 0
        monkeypatch.setattr("time.time_ns", self._read_wall)
        monkeypatch.setattr("time.monotonic_ns", self._read_steady)

    def _read_wall(self) -> int:
        self.wall_ns += self.wall_step_ns
        return self.wall_ns

    def _read_steady(self) -> int:
        self.steady_ns += self.steady_step_ns
        return self.steady_ns


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_the_clock_is_the_walls_and_the_pace_never_jumps(clocks: Clocks) -> None:
    assert (clock(), pace()) == (IN_2030_NS // 1_000_000, 10**6)


def test_records_are_stamped_by_the_clock_and_checkpoints_are_due_by_the_pace(tmp_path: Path, clocks: Clocks) -> None:
    with closing(Beating(tmp_path, data__checkpoint_ms=1_000)) as beating:
        loop = beating.heart.loop
        # The wall's clock stands still; by it no second checkpoint would ever be due.
        for handle in ("ada", "bob"):
            beating.register(handle)
            assert loop.state.shard.now == IN_2030_NS // 1_000_000
            upto = beating.heart.log.last
            for _ in range(10):
                clocks.steady_ns += 500_000_000
                loop.tick()
                beating.until(lambda: loop.idle)
            assert beating.heart.rows.pointer >= upto


def test_a_checkpoint_is_timed_by_the_clock_that_stamped_it(tmp_path: Path, clocks: Clocks) -> None:
    clocks.wall_step_ns = 1_000_000
    with closing(Beating(tmp_path)) as beating:
        beating.register("ada")
        beating.heart.loop.save(at_once=True)
        beating.until(lambda: beating.heart.loop.idle)
        assert beating.figures.checkpoint_at >= IN_2030_NS // 1_000_000
        assert 0 < beating.figures.checkpoint_ms < 1_000


def test_commits_are_timed_by_the_pace(tmp_path: Path, clocks: Clocks) -> None:
    with closing(Beating(tmp_path)) as beating:
        commits, total = beating.figures.commits.count, beating.figures.commits.total
        clocks.steady_step_ns = 5_000_000
        beating.register("ada")
        assert beating.figures.commits.count == commits + 1
        assert beating.figures.commits.total >= total + 5
        assert beating.heart.log.figures is beating.figures


def test_the_settings_reach_the_log(tmp_path: Path) -> None:
    with closing(Beating(tmp_path, data__segment_bytes=8 << 20, data__segment_age_ms=1)) as beating:
        beating.register("ada")
        sizes = {path.stat().st_size for path in tmp_path.glob("log-*.seg")}
        assert sizes == {8 << 20}
        first = min(tmp_path.glob("log-*.seg"))
        beating.heart.loop.save(at_once=True)
        beating.until(lambda: beating.heart.loop.idle)
        # Older than a millisecond: what is trimmed is gone with the next look.
        beating.heart.log.trim(beating.heart.log.last, clock() + 10)
        beating.until(lambda: not first.exists())


def test_the_settings_reach_the_rows(tmp_path: Path, clocks: Clocks) -> None:
    with closing(Beating(tmp_path, data__wal_truncate_ms=1_000)) as beating:
        wal = tmp_path / "rows.db-wal"
        for handle, is_empty in (("ada", False), ("bob", True)):
            beating.register(handle)
            beating.heart.loop.save(at_once=True)
            beating.until(lambda: beating.heart.loop.idle)
            assert (wal.stat().st_size == 0) is is_empty
            clocks.wall_ns += 2_000_000_000


def test_the_settings_reach_the_loop_and_the_fold(tmp_path: Path) -> None:
    with closing(Beating(tmp_path, data__unsaved_rows=4_711, limits__mailbox_entries=77)) as beating:
        loop = beating.heart.loop
        assert loop.limits == beating.config.loop
        assert loop.limits.unsaved_rows == 4_711
        assert (loop.state.shard.fold, loop.state.shard.limits) == (NEWEST_FOLD, beating.config.fold)
        assert loop.state.shard.limits.mailbox_entries == 77


def test_what_the_loop_does_is_counted(tmp_path: Path) -> None:
    with closing(Beating(tmp_path)) as beating:
        records = beating.figures.records
        beating.register("ada")
        beating.heart.loop.save(at_once=True)
        beating.until(lambda: beating.heart.loop.idle)
        assert beating.figures.records == records + 1
        assert beating.figures.checkpoints == 1


def test_each_folder_has_an_identity_of_its_own(tmp_path: Path) -> None:
    with closing(Beating(tmp_path / "a")) as first, closing(Beating(tmp_path / "b")) as second:
        identities = first.heart.rows.identity, second.heart.rows.identity
        assert identities[0] != identities[1]
        assert bytes(8) not in identities


def test_the_log_is_written_and_rows_are_saved_on_threads_of_their_own(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with closing(Beating(tmp_path)):
        assert {thread.name for thread in threading.enumerate() if thread not in before} == {
            "log writer",
            "saver",
            "aside",
            "presence",
        }
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


# --- what is thought of the clock ----------------------------------------------------------------


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
        assert clock_seen(town) == ClockSeen(ClockState.AHEAD, times.wall, before + 1)
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
