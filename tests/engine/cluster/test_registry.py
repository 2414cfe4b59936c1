from __future__ import annotations

from collections.abc import Callable, Collection

from nightmail.engine.cluster.ports import WakeClaim
from nightmail.engine.cluster.registry import ClusterRegistry, RegistryLimits
from nightmail.engine.memory import WAKE_MS
from nightmail.engine.ports import HELD, Seat
from sim.faults.shared_seats import SIGNED_MS, SeatPlace, SimSeats
from sim.world.world import World

BOB = 7 << 12 | 1
LIMITS = RegistryLimits(vote_ms=2_000, unknown_ms=700, sign_ms=100)


class PeerLink:
    """The way from one node to the others. Questions wait until the test lets them be answered."""

    def __init__(self, town: Town, number: int) -> None:
        self._town, self._number = town, number
        self.asked: list[int] = []
        self.answers = True

    @property
    def nodes(self) -> Collection[int]:
        return [node for node in self._town.nodes if node != self._number]

    def claim_wake(self, node: int, device: int, then: Callable[[int], None]) -> None:
        self.asked.append(node)
        if self.answers:
            then(self._town.nodes[node].asked(self._number, device))


class Town:
    """Two nodes, and seats that they share or do not."""

    def __init__(self, *, shared: bool) -> None:
        self.world = World(1)
        self.place = SeatPlace(self.world, LIMITS.seat_ms)
        self.nodes: dict[int, ClusterRegistry] = {}
        self.seats = {number: SimSeats(self.world, self.place) for number in (1, 2)}
        self.links = {number: PeerLink(self, number) for number in (1, 2)}
        for number, link in self.links.items():
            seats = self.seats[number] if shared else None
            self.nodes[number] = ClusterRegistry(number, seats, link, lambda: self.world.now, LIMITS)
        self.wait(300)

    def wait(self, ms: int) -> None:
        for _ in range(ms // 10):
            for node in self.nodes.values():
                node.tick()
            self.world.run_until(self.world.now + 10)

    def claim(self, node: int) -> int:
        answers: list[int] = []
        self.nodes[node].claim_wake(BOB, self.world.now, answers.append)
        while not answers:
            self.wait(10)
        return answers[0]

    def sit(self, node: int) -> Seat:
        seat = Seat(f"node{node}", self.world.now, self.world.now)
        self.nodes[node].take(BOB, seat, self.world.now)
        return seat


def test_where_every_node_has_signed_no_node_is_asked() -> None:
    town = Town(shared=True)
    assert (town.claim(1), town.links[1].asked) == (0, [])


def test_a_node_that_is_cut_off_from_what_is_shared_is_asked_for_whom_it_holds() -> None:
    town = Town(shared=True)
    town.seats[2].is_cut = True
    town.sit(2)
    town.wait(SIGNED_MS + 100)
    assert (town.place.seat_of(BOB), town.claim(1), town.links[1].asked) == (None, HELD, [2])


def test_a_node_says_its_seats_again_before_it_signs_again() -> None:
    town = Town(shared=True)
    town.seats[2].is_cut = True
    seat = town.sit(2)
    town.wait(SIGNED_MS + 100)
    town.seats[2].is_cut = False
    town.wait(300)
    assert (town.place.seat_of(BOB), town.claim(1), town.links[1].asked) == (seat, HELD, [])


def test_a_seat_that_could_not_be_left_is_left_later() -> None:
    town = Town(shared=True)
    seat = town.sit(2)
    town.wait(100)
    town.seats[2].is_cut = True
    left: list[bool] = []
    town.nodes[2].leave(BOB, seat, left.append)
    town.wait(200)
    assert (left, town.place.seat_of(BOB)) == ([True], seat)
    town.seats[2].is_cut = False
    town.wait(300)
    assert town.place.seat_of(BOB) is None


def test_while_what_is_shared_is_away_the_nodes_themselves_are_asked() -> None:
    town = Town(shared=True)
    seat = town.sit(2)
    town.place.is_away = True
    assert (town.claim(1), town.links[1].asked) == (HELD, [2])
    town.nodes[2].leave(BOB, seat, lambda _: None)
    assert town.claim(1) == 0
    assert 0 < town.claim(1) <= WAKE_MS


def test_without_anything_shared_a_device_is_woken_once_in_a_second_by_nobody_else() -> None:
    town = Town(shared=False)
    assert town.claim(1) == 0
    assert town.claim(1) > 0
    assert town.claim(2) > 0
    town.wait(WAKE_MS + LIMITS.vote_ms)
    assert town.claim(2) == 0


def test_silence_is_no_consent() -> None:
    town = Town(shared=False)
    town.links[1].answers = False
    assert town.claim(1) == LIMITS.unknown_ms


def test_a_node_that_is_silent_for_as_long_as_a_seat_lasts_holds_nobody() -> None:
    town = Town(shared=False)
    town.links[1].answers = False
    while town.claim(1):
        town.wait(LIMITS.unknown_ms)
    assert LIMITS.seat_ms < town.world.now - World(1).now < LIMITS.seat_ms + 4 * LIMITS.vote_ms


def test_a_node_that_was_silent_long_ago_is_asked_again() -> None:
    town = Town(shared=False)
    town.links[1].answers = False
    town.claim(1)
    town.wait(2 * LIMITS.seat_ms)
    assert town.claim(1) == LIMITS.unknown_ms


def test_of_two_nodes_that_want_to_wake_a_device_at_once_the_first_by_number_does() -> None:
    town = Town(shared=False)
    answers: dict[int, list[int]] = {1: [], 2: []}
    town.links[1].answers = town.links[2].answers = False
    for node in (1, 2):
        town.nodes[node].claim_wake(BOB, town.world.now, answers[node].append)
    assert (town.nodes[1].asked(2, BOB), town.nodes[2].asked(1, BOB)) == (WAKE_MS, 0)


def test_a_node_does_not_sign_while_what_is_shared_lacks_one_of_its_seats() -> None:
    town = Town(shared=True)
    town.seats[2].is_cut = True
    town.sit(2)
    town.wait(SIGNED_MS + 100)
    town.seats[2].is_cut = False
    town.nodes[2].tick()
    town.world.run_until(town.world.now + 10)
    claim = town.place.claim(BOB + 1, str(town.place.epoch), [2])
    assert isinstance(claim, WakeClaim)
    assert claim.unsigned == [2]


def test_who_has_let_another_node_wake_a_device_waits_for_it() -> None:
    town = Town(shared=False)
    assert town.nodes[2].asked(1, BOB) == 0
    assert town.claim(2) > WAKE_MS
