from __future__ import annotations

import pytest

from nightmail.core.shard import FoldTooNew, fold_to_raise
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import Accepted, Bundle, Done
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import DAY_MS
from nightmail.model.records import (
    Blocked,
    Claimed,
    ClockBelieved,
    ClockSetBack,
    Forwarded,
    PinSet,
    Receipted,
    Record,
    Registered,
    encode_record,
)
from nightmail.model.refusals import PinLocked, PinWrong, RateLimited, ShareFull
from nightmail.model.words import Lane, MessageState, Platform, Reason
from tests.core.world import START, Memory, Node, Person, World, published


@pytest.mark.parametrize(
    ("present", "supported", "raised"),
    [
        (1, [2], 2),
        (1, [3, 2, 4], 2),
        (2, [2, 3], None),
        (2, [3, 3], 3),
        (2, [1, 3], None),
        (2, [], None),
    ],
)
def test_a_cluster_raises_the_newest_fold_that_every_node_supports(
    present: int, supported: list[int], raised: int | None
) -> None:
    assert fold_to_raise(present, supported) == raised


def told(k: int) -> bytes:
    alice, bob = device_id(account_id("alice"), 1), account_id("bob")
    receipt = Receipted(alice, bob, Lane.NORMAL, device_id(bob, 1), MessageState.READ, Reason.NONE, START, ((1, 1),))
    return encode_record(Record(SERVER, 0, Forwarded(1, k, receipt)))


def test_a_shard_that_is_told_something_newer_than_its_fold_is_raised_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Receipted, "since", 2)
    node = Node(0, 4, Memory.KEEPS)
    node.fold(START, told(2))
    assert (node.state.shard.fold, node.state.shard.heard) == (1, {})  # Out of its chain: not taken.
    node.fold(START, told(1))
    assert (node.state.shard.fold, node.state.shard.heard) == (2, {1: 1})


def test_a_program_that_does_not_know_that_fold_stops_before_it_takes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Receipted, "since", NEWEST_FOLD + 1)
    node = Node(0, 4, Memory.KEEPS)
    with pytest.raises(FoldTooNew):
        node.fold(START, told(1))
    assert (node.state.shard.fold, node.state.shard.heard) == (1, {})


# --- time that is set back --------------------------------------------------------------------

WRONG_MS, SECOND, MINUTE = 10 * DAY_MS, 1_000, 60_000


def set_back(world: World, ms: int = WRONG_MS) -> None:
    """The clock is right again, and the operator tells every shard."""
    world.now -= ms
    for node in list(world.nodes.values()):
        (done,) = world.fold(node, Record(SERVER, 7, ClockSetBack(world.now, world.now + ms)))
        assert done.said == Done()
        assert node.state.now <= world.now


def believe(world: World, doubted_from: int, ahead_ms: int) -> None:
    """Every shard believes a clock that was doubted, and is so far ahead."""
    for node in list(world.nodes.values()):
        world.fold(node, Record(SERVER, 0, ClockBelieved(doubted_from, world.now + ahead_ms)))
    world.now += ahead_ms


def waits(world: World, person: Person) -> list[str]:
    return [item[1].ciphertext.decode().partition("|")[2] for item in world.offer(person[1]) if isinstance(item, tuple)]


@pytest.fixture
def alice(world: World) -> Person:
    return world.join("alice")


@pytest.fixture
def bob(world: World) -> Person:
    return world.join("bob")


def test_what_was_filed_before_the_clock_went_wrong_ends_when_it_was_to_end(
    world: World, alice: Person, bob: Person
) -> None:
    world.send(alice[1], bob, 1, text="for 30 days")
    world.send(alice[1], bob, 2, text="for 11 days", life_ms=11 * DAY_MS)
    world.wait(WRONG_MS)
    set_back(world)
    for day in range(11):
        assert waits(world, bob) == ["for 30 days", "for 11 days"], day
        world.wait(DAY_MS)
    for day in range(19):
        assert waits(world, bob) == ["for 30 days"], day
        world.wait(DAY_MS)
    assert waits(world, bob) == []


def test_what_a_blocked_account_would_hold_ends_in_time_when_the_time_is_set_back(
    world: World, alice: Person, bob: Person
) -> None:
    world.limit(stranger_entries=1)
    world.wait(WRONG_MS)
    assert world.do(bob[1], Blocked(bob.account, alice.account, True)) == Done()
    assert isinstance(world.send(alice[1], bob, 1), Accepted)
    set_back(world)
    world.wait(30 * DAY_MS - SECOND)
    assert world.send(alice[1], bob, 2, floor=2) == ShareFull(1)
    world.wait(SECOND)
    assert isinstance(world.send(alice[1], bob, 2, floor=2), Accepted)


def test_what_was_filed_by_the_wrong_clock_lives_as_long_as_promised_from_when_it_was_set_back(
    world: World, alice: Person, bob: Person
) -> None:
    world.wait(WRONG_MS)
    world.send(alice[1], bob, 1, text="for 30 days")
    world.send(alice[1], bob, 2, text="for a minute", life_ms=MINUTE)
    world.wait(SECOND)
    set_back(world)
    world.wait(MINUTE - 1)
    assert waits(world, bob) == ["for 30 days", "for a minute"]
    world.wait(1)
    assert waits(world, bob) == ["for 30 days"]
    world.wait(30 * DAY_MS - MINUTE - 1)
    assert waits(world, bob) == ["for 30 days"]
    world.wait(1)
    assert waits(world, bob) == []


def test_what_is_filed_afterwards_ends_in_time_although_its_stamp_is_far_ahead(
    world: World, alice: Person, bob: Person
) -> None:
    world.wait(WRONG_MS)
    wrong = world.send(alice[1], bob, 1, text="by the wrong clock")
    set_back(world)
    world.wait(DAY_MS)
    right = world.send(alice[1], bob, 2, text="by the right clock")
    assert isinstance(wrong, Accepted)
    assert isinstance(right, Accepted)
    assert (wrong.at, right.at) == (START + WRONG_MS, START + WRONG_MS + 1)
    world.wait(30 * DAY_MS - SECOND)
    assert waits(world, bob) == ["by the right clock"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("life_ms", [0, 11 * DAY_MS])
def test_what_is_filed_during_a_doubt_lives_as_long_as_promised_although_its_stamp_is_far_ahead(
    world: World, alice: Person, bob: Person, life_ms: int
) -> None:
    world.wait(WRONG_MS)
    world.send(alice[1], bob, 1, text="by the wrong clock", life_ms=SECOND)
    set_back(world)
    world.wait(SECOND)
    doubted_from = world.now
    world.wait(SECOND)
    world.send(alice[1], bob, 2, text="during a doubt", life_ms=life_ms)
    believe(world, doubted_from, 40 * DAY_MS)
    world.wait((life_ms or 30 * DAY_MS) - SECOND)
    assert waits(world, bob) == ["during a doubt"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("memory", Memory)
def test_a_timer_that_is_set_while_stamps_are_ahead_outlives_a_second_wrong_clock(memory: Memory) -> None:
    world = World(2, memory, fold=4)
    alice, bob = world.join("alice"), world.join("bob")
    world.wait(WRONG_MS)
    world.send(alice[1], bob, 1, text="by the wrong clock", life_ms=SECOND)
    set_back(world)
    world.wait(DAY_MS)
    world.send(alice[1], bob, 2, text="for 3 days", life_ms=3 * DAY_MS)
    world.wait(DAY_MS)
    world.now += 2 * DAY_MS  # The second one.
    world.send(alice[1], bob, 3, text="meanwhile, for a day", life_ms=DAY_MS)
    set_back(world, 2 * DAY_MS)
    world.wait(DAY_MS - SECOND)
    assert waits(world, bob) == ["for 3 days", "meanwhile, for a day"]
    world.wait(SECOND)
    assert waits(world, bob) == ["for 3 days"]
    world.wait(DAY_MS - SECOND)
    assert waits(world, bob) == ["for 3 days"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("memory", Memory)
def test_a_timer_that_is_set_during_a_doubt_lives_on_when_what_was_believed_is_set_back(memory: Memory) -> None:
    world = World(2, memory, fold=4)
    alice, bob = world.join("alice"), world.join("bob")
    doubted_from = world.now
    world.wait(SECOND)
    world.send(alice[1], bob, 1, text="during the doubt, for a day", life_ms=DAY_MS)
    world.wait(SECOND)
    believe(world, doubted_from, 40 * DAY_MS)
    world.wait(SECOND)
    set_back(world, 40 * DAY_MS)
    world.wait(DAY_MS - 3 * SECOND)
    assert waits(world, bob) == ["during the doubt, for a day"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("memory", Memory)
def test_a_timer_that_is_set_between_two_steps_of_a_wrong_clock_ages_by_neither(memory: Memory) -> None:
    world = World(2, memory, fold=8)
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1, text="before, for a day", life_ms=DAY_MS)
    believe(world, world.now, 4 * DAY_MS // 10)
    world.send(alice[1], bob, 2, text="between, for a day", life_ms=DAY_MS)
    doubted_from = world.now
    world.wait(SECOND)
    believe(world, doubted_from, 4 * DAY_MS // 10)
    set_back(world, 8 * DAY_MS // 10)
    world.wait(DAY_MS - 2 * SECOND)
    assert waits(world, bob) == ["before, for a day", "between, for a day"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("memory", Memory)
def test_a_leap_is_undone_once(memory: Memory) -> None:
    world = World(2, memory, fold=8)
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1, text="before, for a day", life_ms=DAY_MS)
    believe(world, world.now, 8 * DAY_MS // 10)
    set_back(world, 4 * DAY_MS // 10)
    set_back(world, 4 * DAY_MS // 10)
    world.wait(DAY_MS - SECOND)
    assert waits(world, bob) == ["before, for a day"]
    world.wait(SECOND)
    assert waits(world, bob) == []


@pytest.mark.parametrize("memory", Memory)
@pytest.mark.parametrize("life_ms", [0, 29 * DAY_MS])
def test_what_is_filed_after_a_long_absence_does_not_age_by_it_when_a_wrong_clock_is_set_back(
    memory: Memory, life_ms: int
) -> None:
    """The server was off for 25 days, and boots with a clock that is 10 days ahead as well."""
    world = World(2, memory, fold=8)
    alice, bob = world.join("alice"), world.join("bob")
    doubted_from = world.now
    world.wait(SECOND)
    world.send(alice[1], bob, 1, text="during the doubt", life_ms=life_ms)
    believe(world, doubted_from, 25 * DAY_MS + WRONG_MS)
    set_back(world)
    world.wait(29 * DAY_MS - SECOND)
    assert waits(world, bob) == ["during the doubt"]
    world.wait(DAY_MS + 2 * SECOND)
    assert waits(world, bob) == []


def test_an_answer_stands_after_what_the_wrong_clock_has_stamped(world: World, alice: Person, bob: Person) -> None:
    world.wait(WRONG_MS)
    question = world.send(alice[1], bob, 1, text="?")
    set_back(world)
    assert isinstance(question, Accepted)
    answer = world.send(bob[1], alice, 1, text="!", seen=question.at)
    lie = world.send(bob[1], alice, 2, text="!", seen=question.at + DAY_MS)
    assert isinstance(answer, Accepted)
    assert isinstance(lie, Accepted)
    assert (answer.at - question.at, lie.at - question.at) == (1, 2_000)


def test_time_is_never_set_ahead(world: World, alice: Person) -> None:
    node = world.of(alice.account)
    (done,) = world.fold(node, Record(SERVER, 7, ClockSetBack(world.now + DAY_MS, world.now)))
    shard = node.state.shard
    assert (done.said, shard.now, shard.set_backs, shard.set_back_ms) == (Done(), world.now, 0, 0)


def test_a_lock_that_the_wrong_clock_has_closed_opens_in_time(world: World, bob: Person) -> None:
    world.limit(pin_tries=1)
    world.do(bob[1], PinSet(bob.account, bytes(16), b"r" * 32))

    def tries(pin: bytes) -> object:
        return world.do(
            SERVER, Registered(bob.account, "bob", 9, b"another", "phone", Platform.WEB, True, pin)
        )  # fmt: skip

    world.wait(WRONG_MS)
    assert tries(b"w" * 32) == PinLocked(7 * DAY_MS)
    set_back(world)
    assert tries(b"r" * 32) == PinLocked(7 * DAY_MS)
    world.wait(7 * DAY_MS - 1)
    assert tries(b"r" * 32) == PinLocked(1)
    world.wait(1)
    assert not isinstance(tries(b"r" * 32), PinLocked | PinWrong)


def test_keys_that_were_claimed_by_the_wrong_clock_count_for_a_minute(world: World, alice: Person, bob: Person) -> None:
    world.limit(claims_per_minute=1)
    world.do(bob[1], published(bob[1], range(2, 7), range(2, 7)))
    world.wait(WRONG_MS)
    assert isinstance(world.do(alice[1], Claimed(bob[1], 1)), Bundle)
    set_back(world)
    world.wait(MINUTE - SECOND)
    assert world.do(alice[1], Claimed(bob[1], 2)) == RateLimited(SECOND)
    world.wait(SECOND)
    assert isinstance(world.do(alice[1], Claimed(bob[1], 2)), Bundle)
