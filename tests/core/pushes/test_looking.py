from __future__ import annotations

import msgspec

from nightmail.model.records import Acked, PushOutcome, Read, Span
from nightmail.model.words import Kind, Lane
from tests.core.push_world import PushWorld
from tests.core.world import Person

NORMAL = Lane.NORMAL
PATIENCE_MS = 20_000


def two(world: PushWorld) -> tuple[Person, Person]:
    ada, bob = world.join("ada"), world.join("bob")
    world.set_token(bob[1])
    return ada, bob


def test_the_first_message_wakes_and_those_behind_it_do_not(world: PushWorld) -> None:
    ada, bob = two(world)
    woken = []
    for n in (1, 2, 3):
        world.send(ada[1], bob, n)
        woken.append(world.woken())
    assert woken == [[bob[1]], [], []]


def test_a_drained_mailbox_wakes_again(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    first = world.push(bob[1])
    world.do(bob[1], Acked(NORMAL, 1))
    world.send(ada[1], bob, 2)
    assert world.woken() == [bob[1]]
    assert world.push(bob[1]).woke_at > first.woke_at


def test_control_messages_receipts_and_read_marks_wake_nobody(world: PushWorld) -> None:
    ada, bob = two(world)
    world.set_token(ada[1])
    world.do(ada[1], msgspec.structs.replace(world.sent(ada[1], bob), kind=Kind.CONTROL))
    assert world.woken() == []
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.woken() == []
    world.send(ada[1], bob, 2)
    world.do(bob[1], Acked(NORMAL, 2))
    world.do(bob[1], Read(ada.account, (Span(ada[1], NORMAL, 1, 2),)))
    assert (world.woken(), world.seen(ada[1])) == ([], None)


def test_a_control_message_and_then_a_text_wake_once(world: PushWorld) -> None:
    ada, bob = two(world)
    world.do(ada[1], msgspec.structs.replace(world.sent(ada[1], bob), kind=Kind.CONTROL))
    world.send(ada[1], bob, 2)
    assert (world.woken(), world.push(bob[1]).depth) == ([bob[1]], 2)


def test_a_wake_that_nobody_tells_of_is_asked_for_again(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    for _ in range(3):
        world.wait(PATIENCE_MS - 100)
        assert world.woken() == []
        world.wait(200)
        assert world.woken() == [bob[1]]


def test_what_is_drained_in_time_is_not_asked_for_again(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.wait(PATIENCE_MS) == 1
    assert world.woken() == []
    mailbox = world.mailbox(bob[1])
    assert mailbox is not None
    assert mailbox.wake_due == 0


def test_a_busy_conversation_plans_one_look_however_often_it_is_drained(world: PushWorld) -> None:
    ada, bob = two(world)
    for n in range(1, 20):
        world.send(ada[1], bob, n)
        world.do(bob[1], Acked(NORMAL, n))
        world.wait(100)
    planned = [item for items in world.due(bob).values() for item in items if item.device == bob[1]]
    assert len(planned) == 2, "one for what may expire, one for the wake"


def test_a_pushed_device_is_pushed_again_after_a_quarter_of_an_hour_an_hour_and_six_hours(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    world.end(world.push(bob[1]), PushOutcome.DELIVERED)
    passed = 0
    for minutes in (15, 60, 360):
        until = minutes * 60_000
        world.wait(until - passed - 100)
        assert world.woken() == []
        world.wait(200)
        passed = until + 100
        assert world.woken() == [bob[1]]
        world.end(world.push(bob[1]), PushOutcome.DELIVERED)
    world.wait(20 * 86_400_000)
    assert world.woken() == []


def test_a_repeat_does_not_survive_the_drain(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    world.end(world.push(bob[1]), PushOutcome.DELIVERED)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(86_400_000)
    assert world.woken() == []


def test_a_push_to_a_device_that_has_just_left_moves_no_repeat(world: PushWorld) -> None:
    ada, bob = two(world)
    world.send(ada[1], bob)
    world.end(world.push(bob[1]), PushOutcome.DELIVERED)
    world.wait(5 * 60_000)
    left = world.push(bob[1])
    assert not left.is_due
    world.end(left, PushOutcome.DELIVERED)
    world.wait(10 * 60_000 - 100)
    assert world.woken() == []
    world.wait(200)
    assert (world.woken(), world.push(bob[1]).is_due) == ([bob[1]], True)
