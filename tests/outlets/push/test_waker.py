from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRegistry, MemoryRows
from nightmail.engine.ports import Seat
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import Acked, AnyBody, Envelope, PushOutcome, PushSet, Record, Registered, Sent
from nightmail.model.words import Kind, Lane, Platform, PushPlatform
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.waker import PushWaker, WakerLimits

START = 1_700_000_000_000
ADA, BOB = account_id("ada"), account_id("bob")
PHONE, TABLET = device_id(ADA, 1), device_id(BOB, 1)
OK = PushResult(PushOutcome.DELIVERED)
GRACE_MS, AGAIN_MS, PATIENCE_MS = 30_000, 30_000, 20_000


class Provider:
    """Takes pushes, and answers when it is told to."""

    def __init__(self) -> None:
        self.pushes: list[PushSeen] = []
        self._done: list[Callable[[PushResult], None]] = []

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        self.pushes.append(seen)
        self._done.append(done)

    def answer(self, result: PushResult = OK) -> None:
        self._done.pop(0)(result)


class Quiet:
    """A listener that nobody needs here."""

    def grew(self, device: int, lane: Lane) -> None: ...

    def changed(self, device: int) -> None: ...

    def dismissed(self, device: int) -> None: ...

    def low(self, device: int) -> None: ...

    def settled(self) -> None: ...


class Town:
    """Ada's phone, Bob's tablet, and a server in memory that wakes."""

    def __init__(self) -> None:
        self.pace, self.sent = 1_000_000, 0
        self.desk = LoopDesk(lambda size: b"\1" * size, lambda: self.pace)
        self.loop = Loop(
            MemoryLog(), MemoryRows(), lambda: START + self.pace, self.desk.on_effects, pace=lambda: self.pace
        )
        self.registry, self.provider = MemoryRegistry(), Provider()
        self.waker = PushWaker(
            self.desk, self.registry, self.provider, lambda: self.pace, lambda: None,
            WakerLimits(grace_ms=GRACE_MS, again_ms=AGAIN_MS),
        )  # fmt: skip
        self.desk.attend(self.loop, Quiet(), on_wake=self.waker.wake)
        self.loop.recover()
        while not self.loop.adopt(NEWEST_FOLD, FoldLimits()):
            pass
        for name, device in (("ada", PHONE), ("bob", TABLET)):
            token = sha256(name.encode()).digest()
            self.fold(SERVER, Registered(account_id(name), name, 7, token, "x", Platform.CLI))
            self.fold(device, PushSet(PushPlatform.UNIFIEDPUSH, f"https://push.example/{name}"))

    def fold(self, by: int, body: AnyBody) -> None:
        self.loop.submit(Record(by, 0, body))
        self.loop.flush()

    def wait(self, ms: int) -> None:
        for _ in range(ms // 50):
            self.pace += 50
            self.loop.tick()
            self.waker.tick()
            self.loop.flush()

    def write(self) -> None:
        """Ada writes to Bob."""
        self.sent += 1
        n = self.sent
        envelope = Envelope(TABLET, 7, b"sealed")
        ident = f"{PHONE:x}:{START}:{n:05}:x"
        self.fold(PHONE, Sent(BOB, Lane.NORMAL, n, n, 0, ident, bytes(16), Kind.TEXT, None, 0, 1, (envelope,), ()))

    def fetch(self) -> None:
        self.fold(TABLET, Acked(Lane.NORMAL, self.sent))

    def come(self) -> Seat:
        seat = Seat("node", self.pace, self.pace)
        self.registry.take(TABLET, seat, self.pace)
        self.waker.came(TABLET)
        return seat

    def leave(self, seat: Seat) -> None:
        self.registry.leave(TABLET, seat, lambda is_free: self.waker.left(TABLET) if is_free else None)

    @property
    def pushed(self) -> int:
        return len(self.provider.pushes)


@pytest.fixture
def town() -> Town:
    town = Town()
    town.wait(GRACE_MS)
    return town


def test_a_device_that_sleeps_is_pushed_to_once_for_all_that_waits(town: Town) -> None:
    town.write()
    town.write()
    assert [(seen.device, seen.token, seen.depth) for seen in town.provider.pushes] == [
        (TABLET, "https://push.example/bob", 1)
    ]
    town.provider.answer()
    town.wait(2 * PATIENCE_MS)
    assert town.pushed == 1


def test_a_connected_device_is_not_pushed_to(town: Town) -> None:
    town.come()
    town.write()
    town.wait(2 * PATIENCE_MS)
    assert town.pushed == 0


def test_a_device_that_leaves_with_mail_is_pushed_to_at_once(town: Town) -> None:
    seat = town.come()
    town.write()
    town.leave(seat)
    assert town.pushed == 1


def test_a_device_that_leaves_without_mail_is_not_pushed_to(town: Town) -> None:
    seat = town.come()
    town.write()
    town.fetch()
    town.leave(seat)
    town.wait(2 * PATIENCE_MS)
    assert town.pushed == 0


def test_after_a_start_nobody_is_woken_before_the_grace_time_is_over() -> None:
    town = Town()
    town.write()
    town.wait(GRACE_MS - 100)
    assert town.pushed == 0
    town.wait(200)
    assert town.pushed == 1


def test_a_device_that_comes_in_the_grace_time_is_not_woken() -> None:
    town = Town()
    town.write()
    town.wait(GRACE_MS // 2)
    town.come()
    town.wait(GRACE_MS)
    assert town.pushed == 0


def test_a_shard_that_was_taken_over_and_a_lost_registry_have_a_grace_time_too(town: Town) -> None:
    town.waker.begin_grace(0)
    town.write()
    assert town.pushed == 0
    town.wait(GRACE_MS)
    assert town.pushed == 1
    town.provider.answer()
    town.fetch()
    town.registry.lose(town.pace)
    town.write()
    assert town.pushed == 1
    town.wait(GRACE_MS)
    assert town.pushed == 2


def test_a_device_is_pushed_to_once_in_a_second(town: Town) -> None:
    town.write()
    town.provider.answer()
    town.fetch()
    town.write()
    town.wait(900)
    assert town.pushed == 1
    town.wait(200)
    assert town.pushed == 2


def test_what_begins_to_wait_while_a_push_is_under_way_is_pushed_when_that_has_ended(town: Town) -> None:
    town.write()
    town.fetch()
    town.write()
    town.wait(2_000)
    assert town.pushed == 1
    town.provider.answer()
    town.wait(100)
    assert town.pushed == 2


def test_a_device_that_comes_and_goes_without_fetching_is_pushed_to_every_half_minute(town: Town) -> None:
    town.write()
    town.provider.answer()
    for _ in range(3):
        town.leave(town.come())
        town.wait(5_000)
    assert town.pushed == 1
    town.wait(AGAIN_MS - 15_000)
    assert town.pushed == 2


def test_a_push_that_fails_is_made_again_and_what_became_of_it_is_counted(town: Town) -> None:
    town.write()
    town.provider.answer(PushResult(PushOutcome.FAILED, "http_503"))
    town.wait(1_200)
    assert town.pushed == 2
    town.provider.answer()
    assert town.waker.outcomes == {PushOutcome.FAILED: 1, PushOutcome.DELIVERED: 1}
    assert town.waker.errors == {"http_503": 1}


def test_a_device_that_comes_soon_after_a_push_counts_as_woken_by_it(town: Town) -> None:
    town.write()
    town.provider.answer()
    town.wait(1_000)
    town.come()
    assert (town.waker.woken, town.waker.messages_woken) == (1, 1)
    town.come()
    assert (town.waker.woken, town.waker.messages_woken) == (1, 1)


def test_a_node_that_stops_wakes_nobody(town: Town) -> None:
    seat = town.come()
    town.write()
    town.waker.stop()
    town.leave(seat)
    town.wait(2 * PATIENCE_MS)
    assert town.pushed == 0


def test_more_than_may_wait_are_left_to_the_fold() -> None:
    town = Town()
    town.waker = PushWaker(
        town.desk, town.registry, town.provider, lambda: town.pace, lambda: None, WakerLimits(waiting=0)
    )  # fmt: skip
    town.waker.wake(TABLET)
    assert (town.waker.put_off, town.waker.waiting, town.waker.under_way) == (1, 0, 0)
