"""Whose turn it is."""

from __future__ import annotations

from itertools import pairwise

from nightmail.engine.ports import Seat
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.turns import HEADS_AT_ONCE, REQUESTS_AT_ONCE, SEEN_DEVICES, Turns
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import Ask, Ping
from tests.gateway.rig import PHONE, TABLET, Phone, a_message, a_town, numbers_of, people


class Pending:
    """A `Connection` with so many frames to send."""

    def __init__(self, device: int, frames: int, *, draining: bool = False) -> None:
        self.device, self.frames, self.draining = device, frames, draining
        self.seat: Seat | None = None
        self.heard = 0
        self.queued = self.suspect = False
        self.sent: list[bool] = []
        """For each frame, whether the server was under pressure."""

    def flush(self, now: int, *, pressed: bool) -> bool:
        self.sent.append(pressed)
        self.frames -= 1
        return self.frames > 0

    def grew(self, lane: int) -> None: ...

    def low(self) -> None: ...

    def close(self, code: CloseCode) -> None: ...


class Asked:
    """Counts how often another turn was asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_of_those_who_catch_up_the_most_recently_seen_come_first() -> None:
    town = a_town(GatewayLimits(drains_at_once=1))
    devices = people(town, 4)
    for device in devices:
        phone = town.connect(device)
        phone.ack(0)
        town.wait(1_000)
        phone.say(Ping(1))
        phone.session.lost()
    order: list[int] = []
    phones = [Phone(town, device) for device in devices]
    for phone in phones:
        phone.link.on_frame = lambda items, device=phone.device: order.append(device)
    # All have said hello before the first is looked at, so that it is the turns that order them.
    for phone in phones:
        phone.hello()
    town.gateway.turns.drains_at_once = 4
    town.turn_once()
    town.gateway.turns.drains_at_once = 1
    town.turn()
    assert order == devices[::-1]


def test_a_crowd_that_catches_up_is_served_a_few_per_turn_and_live_traffic_in_between() -> None:
    town = a_town(GatewayLimits(drains_at_once=2))
    ben = town.connect()
    crowd = [Phone(town, device) for device in people(town, 20)]
    ben.link.take()
    for phone in crowd:
        phone.hello()
    served: list[int] = []
    for n in range(1, 30):
        town.write(1, first=n)
        town.turn_once()
        served.append(sum(1 for phone in crowd if phone.link.frames))
        assert numbers_of(ben.link.take()) == [n]
        ben.ack(n)
    assert all(b - a <= 4 for a, b in pairwise(served))
    assert served[-1] == 20


def test_each_connection_gets_one_frame_per_turn() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.say(Ping(1))
    ada.say(Ping(2), Ask(1, a_message(1)))
    ada.say(Ping(3))
    town.gateway.flush()
    assert [len(frame) for frame in ada.link.frames] == [3]
    ada.link.take()
    town.turn()
    assert ([len(frame) for frame in ada.link.frames], [len(frame) for frame in ben.link.frames]) == ([1], [1])


def test_a_session_that_is_ready_twice_sends_once_and_asks_for_one_turn() -> None:
    soon = Asked()
    turns, session = Turns(8, soon), Pending(1, 1)
    turns.ready(session)
    turns.ready(session)
    assert soon.times == 1
    turns.flush(0, pressed=False)
    assert (session.sent, session.queued, soon.times) == ([False], False, 1)


def test_a_session_with_more_to_send_gets_its_next_frame_in_the_next_turn() -> None:
    soon = Asked()
    turns, session = Turns(8, soon), Pending(1, 3)
    turns.ready(session)
    sent: list[int] = []
    for _ in range(4):
        turns.flush(0, pressed=False)
        sent.append(len(session.sent))
    assert sent == [1, 2, 3, 3]


def test_under_pressure_a_drain_waits_for_the_next_tick() -> None:
    turns, session = Turns(8, Asked()), Pending(1, 3, draining=True)
    turns.ready(session)
    sent: list[int] = []
    for _ in range(3):
        turns.flush(0, pressed=True)
        sent.append(len(session.sent))
    turns.tick()
    turns.flush(0, pressed=True)
    assert (sent, len(session.sent)) == ([1, 1, 1], 2)


def test_newcomers_are_checked_a_few_per_turn() -> None:
    soon = Asked()
    turns, checked = Turns(2, soon), Asked()
    for _ in range(5):
        turns.greet(checked)
    counts: list[int] = []
    for _ in range(3):
        turns.flush(0, pressed=False)
        counts.append(checked.times)
    assert (counts, soon.times) == ([2, 4, 5], 5 + 2)


def test_requests_are_begun_a_few_per_turn_and_a_newcomer_does_not_wait_behind_them() -> None:
    turns, begun, checked = Turns(8, Asked()), Asked(), Asked()
    for _ in range(100):
        turns.request(begun)
    turns.greet(checked)
    counts: list[tuple[int, int]] = []
    for _ in range(2):
        turns.flush(0, pressed=False)
        counts.append((begun.times, checked.times))
    assert counts == [(REQUESTS_AT_ONCE, 1), (2 * REQUESTS_AT_ONCE, 1)]


def test_the_first_requests_of_a_flood_are_looked_at_a_few_per_turn_and_another_network_is_not_behind_them() -> None:
    turns, flood, calm = Turns(8, Asked()), Asked(), Asked()
    for _ in range(1_000):
        turns.look(flood, "192.0.2.1")
        turns.request(flood, "192.0.2.1")
        turns.greet(flood, "192.0.2.1")
    for wait in (turns.look, turns.request, turns.greet):
        wait(calm, "192.0.2.2")
    turns.flush(0, pressed=False)
    assert (calm.times, flood.times) == (3, HEADS_AT_ONCE + REQUESTS_AT_ONCE + 8 - 3)


def test_what_becomes_durable_within_a_turn_lets_nobody_in_a_second_time() -> None:
    turns, checked, live = Turns(2, Asked()), Asked(), Pending(1, 9)
    drains = [Pending(device, 1, draining=True) for device in range(2, 8)]
    for session in (live, *drains):
        turns.ready(session)
    for _ in range(6):
        turns.greet(checked)
    for _ in range(3):
        turns.flush_live(0, pressed=False)
    turns.flush(0, pressed=False)
    assert (len(live.sent), sum(len(each.sent) for each in drains), checked.times) == (4, 2, 2)


def test_those_who_catch_up_are_not_forgotten_when_something_becomes_durable() -> None:
    soon = Asked()
    turns, drain = Turns(2, soon), Pending(1, 1, draining=True)
    turns.ready(drain)
    turns.flush_live(0, pressed=False)
    assert soon.times == 2
    turns.flush(0, pressed=False)
    assert (len(drain.sent), soon.times) == (1, 2)


def test_the_device_that_was_seen_longest_ago_is_forgotten_first() -> None:
    turns = Turns(1, Asked())
    for device in range(SEEN_DEVICES + 1):
        turns.saw(device, 1_000)
    forgotten, remembered = Pending(0, 1, draining=True), Pending(1, 1, draining=True)
    turns.ready(forgotten)
    turns.ready(remembered)
    turns.flush(0, pressed=False)
    assert (forgotten.sent, remembered.sent) == ([], [False])
