from __future__ import annotations

from nightmail.model.answers import Accepted
from nightmail.model.rows import DeadLetter, Kept
from tests.core.world import START, World


def test_a_record_that_cannot_be_applied_is_kept_with_its_error(world: World) -> None:
    bob = world.join("bob")
    node = world.of(bob.account)
    node.bury(START + 3, b"poison", "ValueError in Sent")
    assert node.row(Kept.DEAD_LETTER, node.offset) == DeadLetter(b"poison", ["ValueError in Sent"], START + 3)
    assert node.state.shard.dead == 1


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
        b"poison", ["ValueError in Sent", "KeyError in Copied"], START
    )
    assert node.state.shard.dead == 2


def test_each_record_has_a_letter_of_its_own(world: World) -> None:
    node = world.node(0)
    for poison in (b"one", b"two"):
        node.bury(START, poison, "ValueError in Sent")
    assert [node.row(Kept.DEAD_LETTER, node.offset - back).record for back in (1, 0)] == [b"one", b"two"]
