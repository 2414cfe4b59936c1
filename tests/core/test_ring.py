from __future__ import annotations

import msgspec
import pytest

from nightmail.core.ring import SLOT_BYTES, answer_again, forget, keep
from nightmail.model.answers import Accepted, Settled
from nightmail.model.records import Sent, Voided
from nightmail.model.refusals import IdReused, NumberVoided
from nightmail.model.rows import Numbers, Stream
from nightmail.model.words import Kind, Lane
from tests.core.world import START, World, name_of

NORMAL = Lane.NORMAL
ALL_ZERO, ANOTHER = bytes(16), b"another tag of 16"[:16]


def sent(n: int, name: str = "id", tag: bytes = ALL_ZERO) -> Sent:
    return Sent(9, NORMAL, n, 1, 0, name, tag, Kind.TEXT, None, 0, 1, (), ())


def void(n: int, name: str = "id") -> Voided:
    return Voided(9, NORMAL, n, 1, name)


def test_an_answer_is_repeated_word_for_word_to_the_same_message_and_to_no_other() -> None:
    numbers, first = Numbers(), Accepted("id", ALL_ZERO, 1 << 52, 1 << 52)
    keep(numbers, first)
    assert answer_again(numbers, sent(1)) == first
    assert answer_again(numbers, void(1)) == first
    assert answer_again(numbers, sent(1, "other")) == IdReused("other")
    assert answer_again(numbers, void(1, "other")) == IdReused("other")
    assert answer_again(numbers, sent(1, tag=ANOTHER)) == IdReused("id")


def test_a_tag_that_would_be_cut_is_our_mistake() -> None:
    numbers = Numbers()
    with pytest.raises(AssertionError):
        keep(numbers, Accepted("id", bytes(17), START, 1))
    assert numbers == Numbers()


def test_a_tag_of_zeros_is_not_taken_for_a_void_one() -> None:
    numbers = Numbers()
    keep(numbers, Accepted("id", b"", START, 0))
    keep(numbers, Accepted("id", ALL_ZERO, START, 1))
    assert answer_again(numbers, sent(1)) == NumberVoided("id")
    assert answer_again(numbers, void(1)) == Accepted("id", b"", START, 0)
    assert answer_again(numbers, sent(2)) == Accepted("id", ALL_ZERO, START, 1)


def test_it_survives_being_stored() -> None:
    stream = Stream()
    keep(stream.lanes[NORMAL], Accepted("id", ANOTHER, START, 7))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(stream), type=Stream)
    assert again == stream
    keep(again.lanes[NORMAL], Accepted("id", ANOTHER, START + 1, 7))
    assert answer_again(again.lanes[NORMAL], sent(2, tag=ANOTHER)) == Accepted("id", ANOTHER, START + 1, 7)


def test_the_newest_answer_is_kept_whatever_the_floor() -> None:
    numbers = Numbers()
    for n in (1, 2, 3):
        keep(numbers, Accepted(f"id{n}", ALL_ZERO, START + n, 1))
    forget(numbers, 1_000, 256)
    assert (numbers.low, numbers.last, len(numbers.ring)) == (3, 3, SLOT_BYTES)
    assert answer_again(numbers, sent(2, "id2")) == Settled("id2")
    assert answer_again(numbers, sent(3, "id3")) == Accepted("id3", ALL_ZERO, START + 3, 1)


def test_the_last_256_answers_are_kept_and_older_numbers_are_settled(world: World) -> None:
    world.limit(stranger_entries=300)
    alice, bob = world.join("alice"), world.join("bob")
    answers = [world.send(alice[1], bob, n) for n in range(1, 301)]
    stream = world.stream(alice[1], bob)
    assert stream is not None
    assert len(stream.lanes[NORMAL].ring) == 256 * SLOT_BYTES
    assert (stream.lanes[NORMAL].low, stream.lanes[NORMAL].last) == (45, 300)
    assert world.send(alice[1], bob, 44) == Settled(name_of(alice[1], 44))
    assert [world.send(alice[1], bob, n) for n in range(45, 301)] == answers[44:]


def test_what_the_sender_no_longer_waits_for_is_forgotten(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    for n in (1, 2, 3):
        world.send(alice[1], bob, n)
    last = world.send(alice[1], bob, 4, floor=4)
    assert isinstance(last, Accepted)
    kept = Numbers(3, 4)
    keep(kept, last)
    assert world.stream(alice[1], bob) == Stream(START + 3, (kept, Numbers()))
    assert world.send(alice[1], bob, 3) == Settled(name_of(alice[1], 3))


def test_a_floor_from_the_future_forgets_nothing_that_was_just_said(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.send(alice[1], bob, 1, floor=1_000_000)
    assert world.send(alice[1], bob, 1) == first
    second = world.send(alice[1], bob, 2, floor=0)
    assert world.send(alice[1], bob, 2) == second


def test_a_void_moves_the_floor_too(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1)
    world.do(alice[1], Voided(bob.account, NORMAL, 2, 2, name_of(alice[1], 2)))
    assert world.send(alice[1], bob, 1) == Settled(name_of(alice[1], 1))


def test_a_floor_never_moves_back(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1)
    world.send(alice[1], bob, 2, floor=2)
    world.do(alice[1], Voided(bob.account, NORMAL, 3, 1, name_of(alice[1], 3)))
    world.send(alice[1], bob, 4, floor=1)
    stream = world.stream(alice[1], bob)
    assert stream is not None
    assert (stream.lanes[NORMAL].low, len(stream.lanes[NORMAL].ring)) == (2, 3 * SLOT_BYTES)
