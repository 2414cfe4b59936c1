"""Connections between simulated clients and servers: ordered, delayed, and cut at any moment.

What is under way when a link is cut is lost, in both directions, and either end may learn of it
late or (the half-open case) only by trying.
"""

from __future__ import annotations

from collections.abc import Callable

from .world import World


class Link:
    """One connection. Each direction keeps its order, as TCP does."""

    def __init__(self, world: World, delay_ms: tuple[int, int]) -> None:
        self._world, self._delay_ms = world, delay_ms
        self.open = True
        self._arrives = [0, 0]
        self.on_cut: list[Callable[[], None]] = []

    def to_server(self, arrive: Callable[[], None]) -> None:
        self._carry(0, arrive)

    def to_client(self, arrive: Callable[[], None]) -> None:
        self._carry(1, arrive)

    def _carry(self, direction: int, arrive: Callable[[], None]) -> None:
        if not self.open:
            return
        world = self._world
        at = max(self._arrives[direction], world.now + world.between(*self._delay_ms))
        self._arrives[direction] = at
        world.later(at - world.now, lambda: arrive() if self.open else None)

    def cut(self) -> None:
        """The link is gone. Both ends notice, each in its own time."""
        if not self.open:
            return
        self.open = False
        for noticed in self.on_cut:
            self._world.later(self._world.between(0, 200), noticed)
