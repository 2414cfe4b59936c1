from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.model.answers import Done, ScheduleTaken
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import ScheduleCancelled
from nightmail.model.refusals import (
    AlreadyEnded,
    AlreadySent,
    IdReused,
    InProgress,
    KeyReused,
    NotAllowed,
    SchedulesFull,
    TimePast,
    TooFarOff,
    TooManySchedules,
    UnknownSchedule,
)
from nightmail.model.rows import Kept
from nightmail.model.schedule_rows import AccountSchedules, ScheduleState, device_and_sequence
from tests.core.schedule_world import CALL_ID, ScheduleWorld

CANCELLED = ScheduleState.CANCELLED
HOUR_MS = DAY_MS // 24
SCHEDULE_ROWS = (Kept.SCHEDULE, Kept.SCHEDULE_PAGE, Kept.SCHEDULE_NAME)


def test_a_retry_is_answered_alike_and_scheduled_once(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    wish = world.scheduled(ada[1], bob, 1_000)
    first = world.do(ada[1], wish)
    world.wait(100)
    assert world.do(ada[1], wish) == first
    world.wait(1_000)
    assert world.do(ada[1], wish) == first
    assert world.texts(bob[1]) == ["later"]


def test_an_id_with_other_content_is_refused(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000, "one")
    assert world.schedule(ada[1], bob, 1_000, "two") == IdReused(world.id(ada[1], "a"))


def test_an_idempotency_key_gets_the_first_answer(world: ScheduleWorld) -> None:
    ada = world.join("ada")
    other = CALL_ID.replace("hook", "other")
    first = world.schedule_call(ada, 1_000, key="k")
    world.wait(10)
    assert world.schedule_call(ada, 1_000, name=other, key="k") == first
    assert world.schedule_call(ada, 1_000, name=other, key="k", content=b"else") == KeyReused()
    assert world.row(ada, 2) is None


def test_neither_past_nor_far_times_are_taken(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    assert world.schedule(ada[1], bob, -60_001) == TimePast(world.now)
    assert world.schedule(ada[1], bob, 14 * DAY_MS + 1) == TooFarOff(14 * DAY_MS)
    assert world.schedule_call(ada, 365 * DAY_MS + 1) == TooFarOff(365 * DAY_MS)
    assert isinstance(world.schedule_call(ada, 365 * DAY_MS), ScheduleTaken)


def test_what_was_for_now_is_delivered_now(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    assert isinstance(world.schedule(ada[1], bob, -500), ScheduleTaken)
    assert world.texts(bob[1]) == ["later"]


def test_an_account_has_so_many_and_so_much_at_once(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.limit(schedules=3, schedule_calls=1, schedule_bytes=200)
    assert isinstance(world.schedule_call(ada, 1_000, content=b""), ScheduleTaken)
    other = CALL_ID.replace("hook", "other")
    assert world.schedule_call(ada, 1_000, name=other, content=b"") == TooManySchedules(1)
    assert world.schedule(ada[1], bob, 1_000, "x" * 201) == SchedulesFull(200)
    assert isinstance(world.schedule(ada[1], bob, 1_000, "x", name="b"), ScheduleTaken)
    assert isinstance(world.schedule(ada[1], bob, 1_000, "x", name="c"), ScheduleTaken)
    assert world.schedule(ada[1], bob, 1_000, "x", name="d") == TooManySchedules(3)
    world.cancel(ada[1], "b")
    assert isinstance(world.schedule(ada[1], bob, 1_000, "x", name="d"), ScheduleTaken)


def test_a_cancelled_one_is_never_delivered(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    assert world.cancel(ada[2], maker=ada[1]) == Done()
    assert world.cancel(ada[1]) == Done()
    assert (world.state(ada), world.kept_content(ada), world.news(ada[1])) == (CANCELLED, None, [1, 1])
    world.wait(DAY_MS)
    assert world.texts(bob[1]) == []


def test_a_stale_one_can_be_cancelled(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(bob)
    world.wait(1_000)
    assert world.cancel(ada[1]) == Done()
    assert world.reseal(ada[1], bob) == AlreadyEnded(world.id(ada[1], "a"))
    world.wait(2 * DAY_MS)
    assert (world.state(ada), world.texts(bob[1])) == (CANCELLED, [])


def test_what_is_fired_cannot_be_cancelled() -> None:
    world = ScheduleWorld(256)
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.carries = False
    world.wait(1_000)
    ident = world.id(ada[1], "a")
    assert world.cancel(ada[1]) == InProgress(ident)
    assert world.reseal(ada[1], bob) == InProgress(ident)
    world.carries = True
    assert world.cancel(ada[1]) == InProgress(ident)
    assert world.cancel(ada[1]) == AlreadySent(ident)
    assert world.texts(bob[1]) == ["later"]


def test_nobody_else_can_cancel_or_see_it(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    ident = world.id(ada[1], "a")
    assert world.do(bob[1], ScheduleCancelled(ada.account, ident)) == NotAllowed()
    assert world.do(bob[1], ScheduleCancelled(bob.account, ident)) == UnknownSchedule(ident)
    assert world.one(bob, ident) is None
    assert world.do(SERVER, ScheduleCancelled(ada.account, ident)) == Done()


def test_an_ended_one_is_shown_for_a_while_and_then_forgotten_with_its_names(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    for number in range(257):
        world.schedule(ada[1], bob, 10_000 if number == 256 else 1_000, name=f"n{number}")
    world.wait(1_000)
    world.wait(30 * DAY_MS - 1)
    assert world.row(ada, 1) is not None
    world.wait(1_000)
    assert world.row(ada, 1) is None
    assert world.one(ada, world.id(ada[1], "n0")) is None
    rows, _ = world.of(ada.account).everything()
    own = world.of(ada.account).row(Kept.ACCOUNT_SCHEDULES, ada.account)
    highest = max(device_and_sequence(world.id(ada[1], f"n{number}")) for number in range(257))
    assert own == AccountSchedules(last=257, first=256, sequences=dict([highest]))
    assert sum(key.kind in SCHEDULE_ROWS and key.a == ada.account for key in rows) == 3
    assert isinstance(world.schedule(ada[1], bob, 1_000, name="n0"), ScheduleTaken)


def test_one_that_ended_later_is_forgotten_later(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000, name="first")
    world.schedule(ada[1], bob, 2 * DAY_MS, name="second")
    world.wait(1_000)
    world.wait(2 * DAY_MS)
    world.wait(28 * DAY_MS + HOUR_MS)
    assert [world.row(ada, serial) is not None for serial in (1, 2)] == [False, True]
    world.wait(2 * DAY_MS + HOUR_MS)
    assert world.row(ada, 2) is None


@pytest.mark.parametrize("wanted", [None, ScheduleState.PENDING, CANCELLED])
def test_schedules_are_listed_by_state_newest_first(world: ScheduleWorld, wanted: ScheduleState | None) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    for number in range(1, 301):
        world.schedule(ada[1], bob, 1_000, name=f"n{number}")
        if number % 3 == 0:
            world.cancel(ada[1], f"n{number}")
    found: list[int] = []
    before = 0
    while before or not found:
        page = world.listing(ada, wanted, before)
        found += [seen.serial for seen in page.schedules]
        assert len(page.schedules) <= 64
        assert all(wanted in (None, seen.schedule.state) for seen in page.schedules)
        if not (before := page.before):
            break
    expected = [n for n in range(300, 0, -1) if wanted is None or (n % 3 == 0) is (wanted is CANCELLED)]
    assert found == expected


def test_it_is_found_by_its_id(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    wish = world.scheduled(ada[1], bob, 1_000)
    world.do(ada[1], wish)
    seen = world.one(ada, wish.id)
    assert seen is not None
    assert (seen.serial, seen.schedule.deliver_at, seen.schedule.target) == (1, wish.deliver_at, wish.target)
    assert world.one(ada, world.id(ada[1], "b")) is None


def test_a_reseal_for_another_kind_of_conversation_is_refused(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    wish = world.scheduled(ada[1], bob, 1_000)
    world.do(ada[1], wish)
    said = world.do(ada[1], replace(world.group_resealed(ada[1]), id=wish.id))
    assert getattr(said, "word", "") == "malformed"
