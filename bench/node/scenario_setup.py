"""What every scenario needs: settings, a folder, a server with people on it, and a load."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from nightmail.core.state import NEWEST_FOLD

from . import groups, people
from .figures import Figures, from_seen
from .load_messages import Known, Order, Seen
from .machine import Calibration, connections_max
from .server import ADMIT_ALL, Server
from .workers import Load, split


class Settings(Struct, frozen=True):
    seconds: float = 5.0
    """How long each window of a talk is measured."""
    warm_up: float = 1.0
    pairs: int = 50
    crowd: int = 500
    phones: int = 1_000
    phone_rate: float = 7_500.0
    away: int = 500
    """`offline`: devices, and messages for each."""
    away_each: int = 200
    connections: int = 20_000
    """`idle`, `storm`: as many as wanted; the machine may allow fewer."""
    idle_s: float = 60.0
    storm_each: int = 5
    storm_rate: float = 500.0
    watchers: int = 1_000
    watchers_rate: float = 200.0
    """`watchers`: messages per second of the others, far from what a core can do: latency is what is looked at."""
    watchers_turns: int = 4
    turns: int = 2
    """`peers`, `depth`: how often each side has its turn."""
    depths: tuple[int, ...] = (10, 1_000, 10_000)
    waiting: int = 40_000
    """`depth`: messages that wait, of all devices together."""
    known: tuple[int, ...] = (1_000, 10_000)
    history: int = 100_000
    groups: tuple[tuple[int, int], ...] = ((50, 50), (500, 100), (5_000, 50))
    """`groups`: members, and how many of them are online."""
    schedule_authors: int = 1_000
    schedule_pending: int = 200_000
    """`schedule`: messages that wait for another day."""
    schedule_rates: tuple[int, ...] = (10_000, 5_000, 2_500, 1_000)
    """`schedule`: messages due in a second; the first of these that is punctual ends it."""
    schedule_s: float = 5.0
    webhook_rate: int = 2_000
    webhook_s: float = 5.0
    sleepers: int = 100_000
    """`sleepers`: devices asleep."""
    media_mib: int = 1_024
    """`media`: the size of the file."""
    media_turns: int = 3
    media_uploads: int = 20
    media_rate: float = 500.0
    """`media`: live messages per second, while so many uploads run at 1 MiB/s each."""
    media_files: int = 2_000
    loads: int = 1
    """Load processes, where one could become the bottleneck."""
    folder: str | None = None
    plant: bool = False
    """Ignore one message, to check that the loss is noticed."""
    profile: int = 0
    """Show so many lines of where the server's time goes; it is slower then, and the figures mean nothing."""


FULL = Settings(
    seconds=10.0, turns=4, waiting=500_000, known=(1_000, 1_000_000), history=10_000_000,
    schedule_pending=1_000_000, schedule_s=30.0, webhook_s=30.0, sleepers=1_000_000,
)  # fmt: skip
TINY = Settings(
    seconds=0.3, warm_up=0.1, pairs=3, crowd=4, phones=8, phone_rate=200.0, away=5, away_each=20, connections=20,
    idle_s=0.3, storm_rate=50.0, turns=1, depths=(2, 10), waiting=40, known=(10, 20), history=200, watchers=20,
    watchers_turns=1, groups=((10, 10), (110, 4)),
    schedule_authors=4, schedule_pending=20, schedule_rates=(50,), schedule_s=0.5, webhook_rate=50, webhook_s=0.5,
    sleepers=200,
    media_mib=2, media_turns=1, media_uploads=2, media_rate=50.0, media_files=20,
)  # fmt: skip


class Stage:
    """One scenario's resources."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self._folder = settings, folder
        self.calibration = Calibration()
        self._folders = 0

    def new_folder(self) -> Path:
        self._folders += 1
        return self._folder / f"data-{self._folders}"

    @contextmanager
    def server(
        self, persons: int, settings: Mapping[str, str] = ADMIT_ALL, fold: int = NEWEST_FOLD
    ) -> Generator[Server]:
        """With persons 0, 1, … on it: over HTTP if they are few, else through the engine beforehand."""
        folder = self.new_folder()
        if persons > people.BY_HTTP_MAX:
            people.register_by_engine(folder, persons)
        with Server(folder, settings, self.settings.profile, fold) as server:
            if persons <= people.BY_HTTP_MAX:
                people.register_by_http(server.port, range(persons))
            yield server

    @contextmanager
    def server_with_group(self, members: int) -> Generator[tuple[Server, Known]]:
        """With a group of persons 0 to `members` - 1, and what they know of it."""
        folder = self.new_folder()
        known = groups.make_by_engine(folder, members)
        with Server(folder, ADMIT_ALL, self.settings.profile) as server:
            yield server, known

    def load(self, order: Order, processes: int = 1) -> Load:
        return Load(split(order, processes) if processes > 1 else [order], self.calibration)

    def run(self, order: Order) -> Seen:
        """A job that is begun at once, and over when it is."""
        with self.load(order) as load:
            load.tell()
            return load.hear()

    def figures(self, scenario: str, seen: Seen, loads: int = 1, **more: object) -> Figures:
        return from_seen(scenario, seen, self.calibration.take(), loads, **more)

    def connections(self, others: int = 0) -> int:
        """How many devices the machine allows besides `others`."""
        return min(self.settings.connections, connections_max()) - others


@contextmanager
def stage(settings: Settings) -> Generator[Stage]:
    with tempfile.TemporaryDirectory(prefix="nightmail-bench-", dir=settings.folder) as name:
        yield Stage(settings, Path(name))
