"""People, a server, a bad day, a night to heal, and a verdict in the morning."""

from __future__ import annotations

from collections.abc import Callable

from nightmail.model.limits import FoldLimits

from .checkers import check_all
from .client import Client
from .history import History
from .people import Habits, Person
from .session import Backend
from .world import Broken, World

HEALING_MS = 600_000
LAST_CHECKPOINT_MS = 12_000
"""Longer than two checkpoints may be apart."""


class Town:
    def __init__(self, world: World, people: int, off: frozenset[str] = frozenset()) -> None:
        self.world = world
        self.history = History(world)
        chance = world.chance
        self.habits = Habits.draw(self, off)
        self.limits = FoldLimits(
            mailbox_entries=chance.choice((5, 20, 10_000)),
            ring_acks=chance.choice((4, 16, 256)),
            ttl_ms=chance.choice((0, 4_000, 20_000, 300_000)),
            tick_items=chance.choice((1, 3, 256)),
        )
        self.window = min(self.limits.ring_acks, 32)
        self.link_delay = chance.choice(((0, 2), (5, 60), (100, 400)))
        self.pace_ms = chance.choice((30, 200))
        self.offline_ms = chance.choice((5_000, 60_000))
        self.healing = False
        self.people = [Person(self, f"{name}{world.seed % 97}") for name in NAMES[:people]]
        self.backend: Backend

    def open(self, backend: Backend) -> None:
        self.backend = backend
        for person in self.people:
            person.register()

    def live(self, client: Client) -> None:
        """Let a device act, and reconnect whenever it wants to be online and is not."""

        def act() -> None:
            if client.removed:
                return
            if client.wants_online and client.link is None:
                client.connect(self.backend)
            elif not self.healing and len(self.people) > 1:
                client.person.act(client)
            self.world.later(self.world.between(1, self.pace_ms), act)

        self.world.later(self.world.between(1, self.pace_ms), act)

    def heal(self) -> None:
        """No more faults, no more deeds; everybody is online."""
        self.healing = True
        for person in self.people:
            for client in person.clients:
                client.wants_online = True
                for link in list(client.links):
                    link.cut()  # One fresh connection each, so that everything unacknowledged is offered again.

    def settle(self, left_over: Callable[[], str]) -> None:
        """Wait until nothing is left to deliver; a mailbox that never drains is a broken promise."""
        until = self.world.now + HEALING_MS
        while busy := self._busy() or left_over():
            if self.world.now > until:
                raise Broken("everything drains", f"still, long after healing: {busy}")
            self.world.run_until(self.world.now + 1_000)
        self.world.run_until(self.world.now + LAST_CHECKPOINT_MS)

    def _busy(self) -> str:
        clients = [client for person in self.people for client in person.clients]
        return ", ".join(client.name for client in clients if not (client.outbox.empty and client.settled))

    def judge(self) -> None:
        check_all(self)


NAMES = ("ada", "bob", "cleo", "dan", "eve", "finn")
