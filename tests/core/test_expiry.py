from __future__ import annotations

import pytest

from nightmail.model.answers import Accepted, Done
from nightmail.model.effects import ReceiptsGrew
from nightmail.model.limits import DAY_MS
from nightmail.model.notes import Dropped
from nightmail.model.records import Acked, Closed, Unlinked
from nightmail.model.rows import DueItem, Gap, Mailbox, PendingReceipt, Queue
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.world import START, Person, World

NORMAL, HIGH = Lane
TTL = 30 * DAY_MS
SECOND = START // 1000


@pytest.fixture
def alice(world: World) -> Person:
    return world.join("alice")


@pytest.fixture
def bob(world: World) -> Person:
    return world.join("bob")


def write(world: World, by: int, to: Person, count: int = 1, lane: Lane = NORMAL, life_ms: int = 0) -> None:
    for _ in range(count):
        stream = world.stream(by, to)
        n = stream.lanes[lane].last + 1 if stream else 1
        assert isinstance(world.send(by, to, n, lane=lane, life_ms=life_ms, text=f"{n}"), Accepted)


def mailbox(world: World, device: int) -> Mailbox:
    found = world.mailbox(device)
    assert found is not None
    return found


def expired(by: int, to: Person, device: int, n: int, seq: int, at: int, lane: Lane = NORMAL) -> PendingReceipt:
    return PendingReceipt((by, to.account, lane, device, MessageState.FAILED, n), seq, at, Reason.EXPIRED, [n, n])


# --- too old ----------------------------------------------------------------------------------


def test_an_undelivered_entry_lives_thirty_days_and_not_a_moment_less(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    assert world.wait(TTL - 1) == 0
    assert world.texts(bob[1]) == ["1"]
    assert world.wait(1) == 1
    assert world.texts(bob[1]) == ["gap 1-1 expired"]


def test_what_expires_leaves_a_gap_for_the_device_and_a_failure_for_the_sender(
    world: World, alice: Person, bob: Person
) -> None:
    write(world, alice[1], bob, 2)
    world.wait(TTL + 5)
    world.wait(1_000)
    late = START + TTL + 5
    assert mailbox(world, bob[1]) == Mailbox((Queue(2, 0, 0, [Gap(1, 2, Reason.EXPIRED)]), Queue()))
    assert world.receipts(alice[1]) == [
        expired(alice[1], bob, bob[1], 1, 1, late),
        expired(alice[1], bob, bob[1], 2, 2, late),
    ]
    assert world.notes(bob)[-2:] == [
        Dropped(late, bob[1], NORMAL, 1, Reason.EXPIRED),
        Dropped(late, bob[1], NORMAL, 2, Reason.EXPIRED),
    ]


def test_only_what_is_too_old_ends(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.wait(DAY_MS)
    write(world, alice[1], bob)
    world.wait(TTL - DAY_MS)
    assert world.texts(bob[1]) == ["gap 1-1 expired", "2"]
    world.wait(DAY_MS - 1)
    assert world.texts(bob[1]) == ["gap 1-1 expired", "2"]
    world.wait(1)
    assert world.texts(bob[1]) == ["gap 1-2 expired"]


def test_both_lanes_grow_old(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.wait(DAY_MS)
    write(world, alice[1], bob, lane=HIGH)
    world.wait(TTL)
    assert (world.texts(bob[1]), world.texts(bob[1], HIGH)) == (["gap 1-1 expired"], ["gap 1-1 expired"])


def test_a_lane_that_was_empty_at_first_is_looked_at_too(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    write(world, alice[1], bob, lane=HIGH)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(TTL + 1_000)
    assert world.texts(bob[1], HIGH) == ["gap 1-1 expired"]


def test_an_ack_before_the_end_wins(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.now += TTL
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(0)
    assert [change.state for change in world.receipts(alice[1])] == [MessageState.DELIVERED]
    assert mailbox(world, bob[1]) == Mailbox((Queue(1, 1, 0), Queue()))


def test_an_ack_after_the_end_changes_nothing_for_the_sender(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.wait(TTL)
    failed = world.receipts(alice[1])
    assert world.do(bob[1], Acked(NORMAL, 1)) == Done()
    assert world.effects == []
    assert world.receipts(alice[1]) == failed == [expired(alice[1], bob, bob[1], 1, 1, START + TTL)]
    assert mailbox(world, bob[1]).lanes[NORMAL] == Queue(1, 1, 0)


def test_one_device_that_is_off_does_not_fail_the_others(world: World, alice: Person) -> None:
    bob = world.join("bob", devices=2)
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(TTL)
    assert [(change.key[3], change.state) for change in world.receipts(alice[1])] == [
        (bob[1], MessageState.DELIVERED),
        (bob[2], MessageState.FAILED),
    ]


def test_an_own_copy_that_grows_too_old_is_no_failure(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    before = world.receipts(anna[1])
    world.wait(TTL)
    assert world.texts(anna[2]) == ["gap 1-1 expired"]
    assert world.receipts(anna[1]) == before


def test_where_nothing_grows_too_old_nothing_is_ever_due(world: World, alice: Person, bob: Person) -> None:
    world.limit(ttl_ms=0)
    write(world, alice[1], bob, 2)
    assert world.due(bob) == {}
    assert world.wait(1_000 * DAY_MS) == 0
    assert world.texts(bob[1]) == ["1", "2"]


def test_entries_stay_once_the_limit_is_lifted(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 2)
    world.limit(ttl_ms=0)
    world.wait(2 * TTL)
    assert world.texts(bob[1]) == ["1", "2"]
    assert mailbox(world, bob[1]).due == 0


def test_a_full_mailbox_has_room_again_when_its_entries_have_expired(world: World, alice: Person, bob: Person) -> None:
    world.limit(mailbox_entries=2)
    write(world, alice[1], bob, 2)
    world.wait(TTL + 1_000)
    write(world, alice[1], bob)
    assert world.texts(bob[1]) == ["gap 1-2 expired", "3"]


# --- timers -----------------------------------------------------------------------------------


def test_a_disappearing_message_ends_when_its_timer_does(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    write(world, alice[1], bob, life_ms=30_000)
    write(world, alice[1], bob)
    assert world.wait(29_999) == 0
    assert world.wait(1) == 1
    assert world.effects == [ReceiptsGrew(alice[1])]
    assert world.texts(bob[1]) == ["1", "gap 2-2 expired", "3"]
    assert world.receipts(alice[1]) == [expired(alice[1], bob, bob[1], 2, 1, START + 30_000)]


def test_a_timer_counts_from_the_servers_clock_not_from_the_stamp(world: World, alice: Person, bob: Person) -> None:
    world.send(alice[1], bob, 1, life_ms=30_000, seen=START + 90_000)
    world.wait(30_000)
    assert world.texts(bob[1]) == ["gap 1-1 expired"]


def test_an_ack_stops_a_timer(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, life_ms=30_000)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(60_000)
    assert [change.state for change in world.receipts(alice[1])] == [MessageState.DELIVERED]


def test_a_timer_of_a_device_that_is_no_more_fires_into_nothing(world: World, alice: Person) -> None:
    bob = world.join("bob", devices=2)
    write(world, alice[1], bob, life_ms=30_000)
    world.do(bob[1], Unlinked(bob[2]))
    before = world.receipts(alice[1])
    world.wait(60_000)
    assert [change.key[3] for change in world.receipts(alice[1])[len(before) :]] == [bob[1]]


def test_own_copies_disappear_as_well(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob, life_ms=30_000)
    world.wait(30_000)
    assert world.texts(anna[2]) == ["gap 1-1 expired"]


def test_an_entry_that_the_limit_ended_first_is_not_ended_again_by_its_timer(
    world: World, alice: Person, bob: Person
) -> None:
    world.limit(ttl_ms=10_000)
    write(world, alice[1], bob)
    write(world, alice[1], bob, life_ms=30_000)
    world.wait(11_000)
    assert world.texts(bob[1]) == ["gap 1-2 expired"]
    before = world.receipts(alice[1])
    world.wait(60_000)
    assert world.receipts(alice[1]) == before


# --- the clock --------------------------------------------------------------------------------


def test_a_mailbox_has_one_due_item_however_much_waits_in_it(world: World, alice: Person, bob: Person) -> None:
    for _ in range(5):
        write(world, alice[1], bob)
        write(world, alice[1], bob, lane=HIGH)
        world.wait(60_000)
    due = SECOND + TTL // 1000
    assert world.due(bob) == {due: [DueItem(bob[1], NORMAL, 0)]}
    assert mailbox(world, bob[1]).due == 20 * due


def test_after_a_look_the_clock_is_set_by_the_oldest_entry_that_still_waits(
    world: World, alice: Person, bob: Person
) -> None:
    write(world, alice[1], bob)
    world.wait(DAY_MS)
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(TTL - DAY_MS)
    due = SECOND + (TTL + DAY_MS) // 1000
    # The stamp of the second message is the time it was accepted, to the millisecond.
    assert world.due(bob) == {due: [DueItem(bob[1], NORMAL, 0)]}
    assert mailbox(world, bob[1]).due == 20 * due


def test_an_empty_mailbox_has_no_clock_after_a_look(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(TTL)
    assert world.due(bob) == {}
    assert mailbox(world, bob[1]) == Mailbox((Queue(1, 1, 0), Queue()), due=0)
    write(world, alice[1], bob)
    assert mailbox(world, bob[1]).due == 20 * (SECOND + 2 * TTL // 1000)


def test_one_look_ends_a_bounded_number_and_the_next_goes_on_a_second_later(
    world: World, alice: Person, bob: Person
) -> None:
    world.limit(tick_items=2)
    write(world, alice[1], bob, 5)
    assert world.wait(TTL + 1_000) == 1
    assert world.texts(bob[1]) == ["gap 1-2 expired", "3", "4", "5"]
    assert world.wait(1_000) == 1
    assert world.texts(bob[1]) == ["gap 1-4 expired", "5"]
    assert world.wait(1_000) == 1
    assert world.texts(bob[1]) == ["gap 1-5 expired"]
    assert world.wait(10 * TTL) == 0


def test_a_look_goes_past_entries_that_ended_by_their_timers(world: World, alice: Person, bob: Person) -> None:
    world.limit(tick_items=2)
    write(world, alice[1], bob)
    write(world, alice[1], bob, 4, life_ms=30_000)
    write(world, alice[1], bob)
    world.wait(30_000)
    world.wait(TTL)
    world.wait(2_000)
    assert world.texts(bob[1]) == ["gap 1-6 expired"]


def test_the_clock_of_a_device_that_is_no_more_runs_out_quietly(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Closed(bob.account))
    before = world.receipts(alice[1])
    assert world.wait(TTL) == 1
    assert world.receipts(alice[1]) == before
    assert world.due(bob) == {}
