"""The registries of a simulated cluster's nodes: the real one each, over seats that they share, or over none.

Knows:   which nodes run, and which of them the others know.
Touches: the shared seats and the links, by what goes wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from nightmail.engine.cluster.registry import ClusterRegistry, RegistryLimits
from sim.faults.shared_seats import SIGNED_MS, SeatPlace, SimSeats

from .world import World

VOTE_MS = 150
KNOWN_MS = 150
"""A node is known to the others so long after its start, and after its end."""
WEATHER_MS = (300, 3_000)
RACE_MS, CALM_RACE_MS = SIGNED_MS + 400, KNOWN_MS + 50
"""A device that connects is not pushed to after so long; before, its push has met it on its way."""


class NodePeers:
    """The other nodes, for one of them."""

    def __init__(self, registries: Registries, number: int) -> None:
        self._registries, self._number = registries, number

    @property
    def nodes(self) -> Collection[int]:
        return [node for node in self._registries.known if node != self._number]

    def claim_wake(self, node: int, device: int, then: Callable[[int], None]) -> None:
        self._registries.carry(self._number, node, device, then)


class Registries:
    def __init__(self, world: World, seat_ms: int, lost: float) -> None:
        self._world, self._seat_ms, self._lost = world, seat_ms, lost
        self._place = SeatPlace(world, seat_ms) if world.chance.random() < 0.8 else None
        self._faulty = False
        self._links: dict[int, SimSeats] = {}
        self._open: dict[int, ClusterRegistry] = {}
        """By the number of their node, of those that run."""
        self.known: dict[int, None] = {}

    def open(self, number: int) -> ClusterRegistry:
        world, seats = self._world, None
        if self._place is not None:
            seats = self._links[number] = SimSeats(world, self._place)
        limits = RegistryLimits(self._seat_ms, sign_ms=100, vote_ms=VOTE_MS, unknown_ms=200, again=3)
        made = self._open[number] = ClusterRegistry(number, seats, NodePeers(self, number), lambda: world.now, limits)

        def know() -> None:
            if number in self._open:
                self.known[number] = None

        world.later(world.between(0, KNOWN_MS) if len(self._open) > 1 else 0, know)
        return made

    def end(self, number: int) -> None:
        self._open.pop(number, None)
        self._links.pop(number, None)
        self._world.later(self._world.between(0, KNOWN_MS), lambda: self.known.pop(number, None))

    def carry(self, asker: int, node: int, device: int, then: Callable[[int], None]) -> None:
        """One node asks another; either way may be lost."""
        world = self._world

        def arrives() -> None:
            asked = self._open.get(node)
            if asked is not None and not world.maybe(self._lost):
                world.hit("node asked whether it holds a device")
                said = asked.asked(asker, device)
                world.later(world.between(0, 10), lambda: answered(said))

        def answered(said: int) -> None:
            if asker in self._open and not world.maybe(self._lost):
                then(said)

        world.later(world.between(0, 10), arrives)

    def is_seated(self, device: int) -> bool:
        if self._place is not None:
            return self._place.seat_of(device) is not None
        return any(registry.holds(device) for registry in self._open.values())

    # --- what goes wrong ----------------------------------------------------------------------------

    @property
    def race_ms(self) -> int:
        return RACE_MS if self._faulty else CALM_RACE_MS

    def begin(self) -> None:
        """Bad weather from now on."""
        if self._place is not None:
            self._faulty = True
            self._place.breaks, self._place.slow_ms = self._world.chance.choice(((0.0, 30), (0.01, 3), (0.03, 10)))
            self._world.later(1_000, self._change)

    def _change(self) -> None:
        world, place = self._world, self._place
        if place is None or not self._faulty:
            return
        place.is_away = False
        for link in self._links.values():
            link.is_cut = False
        match world.between(0, 4):
            case 0 | 1:
                world.hit("registry lost")
                world.tell("registry", "forgets everything")
                place.wipe()
            case 2:
                world.hit("registry away")
                world.tell("registry", "is away")
                place.is_away = True
            case 3 if self._links:
                world.hit("registry cut off from a node")
                number = world.chance.choice(list(self._links))
                world.tell("registry", f"is cut off from process {number}")
                self._links[number].is_cut = True
            case _:
                pass
        world.later(world.between(*WEATHER_MS), self._change)

    def heal(self) -> None:
        self._faulty, self._lost = False, 0.0
        if self._place is not None:
            self._place.is_away, self._place.breaks, self._place.slow_ms = False, 0.0, 3
        for link in self._links.values():
            link.is_cut = False
