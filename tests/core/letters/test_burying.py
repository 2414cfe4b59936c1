from __future__ import annotations

from functools import partial

import msgspec
import pytest

from nightmail.core.letters.pages import counts, listing, needs_counts, needs_listing
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import Accepted
from nightmail.model.effects import Answer
from nightmail.model.ids import account_id
from nightmail.model.letter_rows import DeadLetter
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Acked, FoldRaised, Record, encode_record
from nightmail.model.refusals import DeadLettered, IdReused, OutOfOrder
from nightmail.model.rows import Kept
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.world import START, WORLDS, Memory, Node, Person, World

NORMAL = Lane.NORMAL


def test_a_record_that_cannot_be_applied_is_kept_with_its_error(world: World) -> None:
    bob = world.join("bob")
    node = world.of(bob.account)
    node.bury(START + 3, b"poison", "ValueError in Sent")
    assert node.row(Kept.DEAD_LETTER, node.offset) == DeadLetter(
        b"poison", ["ValueError in Sent"], START + 3, node.offset, fold=NEWEST_FOLD
    )
    assert node.state.shard.dead == 1


def listed(node: Node) -> dict[str, list[int]]:
    """Error class → the letters that are listed under it, newest first."""
    node.load(needs_counts)
    found: dict[str, list[int]] = {}
    for error, count in counts(node.state).items():
        page = 0
        while page or error not in found:
            node.load(partial(needs_listing, error=error, number=page))
            one = listing(node.state, error, page)
            found.setdefault(error, []).extend(one.offsets)
            page = one.older
        assert len(found[error]) == count
    return found


def test_letters_are_listed_by_what_went_wrong_newest_first(world: World) -> None:
    node = world.node(0)
    first = node.offset + 1
    for error in ("ValueError in Sent", "not a record", "ValueError in Sent"):
        node.bury(START, b"poison", error)
    assert listed(node) == {"ValueError in Sent": [first + 2, first], "not a record": [first + 1]}


def test_a_letter_with_several_errors_is_listed_once_under_the_first() -> None:
    node = World().node(0)
    node.bury(START, b"poison", "ValueError in Sent")
    letter = node.offset
    node.offset -= 1
    node.bury(START, b"poison", "KeyError in Copied")
    assert listed(node) == {"ValueError in Sent": [letter]}


def test_it_blocks_nothing(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.of(bob.account).bury(START, b"poison", "ValueError in Sent")
    assert isinstance(world.send(alice[1], bob), Accepted)
    assert world.texts(bob[1]) == ["hello"]


def test_what_follows_from_one_record_is_buried_in_one_letter() -> None:
    world = World()
    node = world.node(0)
    node.bury(START, b"poison", "ValueError in Sent")
    letter = node.offset
    node.offset -= 1
    node.bury(START + 9, b"poison", "KeyError in Copied")
    assert node.row(Kept.DEAD_LETTER, letter) == DeadLetter(
        b"poison", ["ValueError in Sent", "KeyError in Copied"], START, letter, fold=NEWEST_FOLD
    )
    assert node.state.shard.dead == 2


def test_each_record_has_a_letter_of_its_own(world: World) -> None:
    node = world.node(0)
    for poison in (b"one", b"two"):
        node.bury(START, poison, "ValueError in Sent")
    assert [node.row(Kept.DEAD_LETTER, node.offset - back).record for back in (1, 0)] == [b"one", b"two"]


# --- a message that is buried -----------------------------------------------------------------


def buried(world: World, alice: Person, bob: Person, n: int = 1, text: str = "hello") -> object:
    """The fold stumbles over a message from Alice to Bob. What she is answered."""
    record = Record(alice[1], 99, world.sent(alice[1], bob, n, text=text))
    (answer,) = world.of(bob.account).bury(world.now, encode_record(record), "Mistake in Sent", record)
    assert isinstance(answer, Answer)
    assert answer.via == 99
    return answer.said


def test_a_buried_message_takes_its_number_and_is_answered_sent(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    sent = world.sent(alice[1], bob)
    assert buried(world, alice, bob) == Accepted(sent.id, sent.tag, world.now, sent.list_version)
    assert world.texts(bob[1]) == []
    assert isinstance(world.send(alice[1], bob, 2, text="behind"), Accepted)
    assert world.texts(bob[1]) == ["behind"]


def test_its_retry_gets_the_same_answer_and_is_not_filed(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = buried(world, alice, bob)
    assert world.send(alice[1], bob) == first
    assert world.texts(bob[1]) == []
    assert isinstance(world.send(alice[1], bob, text="something else"), IdReused)


def test_one_that_is_not_next_takes_no_number(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert buried(world, alice, bob, 2) == OutOfOrder(1)
    first = world.send(alice[1], bob)
    assert buried(world, alice, bob) == first


def test_one_to_nobody_is_answered_as_dead(world: World) -> None:
    alice, nobody = world.join("alice"), account_id("nobody")
    record = Record(alice[1], 5, msgspec.structs.replace(world.sent(alice[1], alice), to=nobody))
    said = world.of(nobody).bury(world.now, encode_record(record), "Mistake in Sent", record)
    assert said == [Answer(5, DeadLettered())]


@pytest.mark.parametrize(("shards", "memory"), list(WORLDS.values()), ids=list(WORLDS))
def test_before_fold_5_it_is_sent_for_thirty_days_and_then_it_has_failed(shards: int, memory: Memory) -> None:
    world = World(shards, memory, fold=4)
    alice, bob = world.join("alice", 2), world.join("bob", 2)
    buried(world, alice, bob)
    node = world.of(bob.account)
    letter = node.offset
    world.wait(30 * DAY_MS - 50)
    assert world.receipts(alice[1]) == []
    assert node.row(Kept.DEAD_LETTER, letter) is not None
    world.wait(100)
    for device in (alice[1], alice[2]):
        failed = {change.key[3]: (change.state, change.reason, change.numbers) for change in world.receipts(device)}
        assert failed == {each: (MessageState.FAILED, Reason.EXPIRED, [1, 1]) for each in (bob[1], bob[2])}
    assert node.row(Kept.DEAD_LETTER, letter) is None
    assert node.state.shard.dead == 0
    assert listed(node) == {}


def test_without_a_limit_it_stays_sent_for_ever(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.limit(dead_letters_ms=0)
    buried(world, alice, bob)
    for _ in range(12):
        world.wait(31 * DAY_MS)
    assert world.receipts(alice[1]) == []


def test_a_letter_that_somebody_settled_is_not_failed_by_time() -> None:
    world = World()
    alice, bob = world.join("alice"), world.join("bob")
    buried(world, alice, bob)
    node = world.of(bob.account)
    node.state.dead_letters.put(node.offset, None, node.offset)
    world.wait(31 * DAY_MS)
    assert world.receipts(alice[1]) == []


def test_anything_else_that_is_buried_is_answered_as_dead(world: World) -> None:
    bob = world.join("bob")
    record = Record(bob[1], 5, Acked(NORMAL, 1))
    said = world.of(bob.account).bury(world.now, encode_record(record), "Mistake in Acked", record)
    assert said == [Answer(5, DeadLettered())]


def test_in_fold_1_a_buried_message_takes_no_number() -> None:
    node = Node(0, 1, Memory.KEEPS)
    node.fold(START, encode_record(Record(0, 0, FoldRaised(1))))
    world = World()
    alice, bob = world.join("alice"), world.join("bob")
    record = Record(alice[1], 5, world.sent(alice[1], bob))
    assert node.bury(START, encode_record(record), "Mistake in Sent", record) == [Answer(5, DeadLettered())]
    assert len(node.state.streams) == 0


def test_in_fold_1_letters_are_not_listed() -> None:
    node = Node(0, 1, Memory.KEEPS)
    node.bury(START, b"poison", "ValueError in Sent")
    assert node.row(Kept.DEAD_LETTER, node.offset) == DeadLetter(b"poison", ["ValueError in Sent"], START)
    assert listed(node) == {}
