from __future__ import annotations

import pytest

from nightmail.core.shard import FoldTooNew, fold_to_raise
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Forwarded, Receipted, Record, encode_record
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.world import START, Memory, Node


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
    monkeypatch.setattr(Receipted, "since", 3)
    node = Node(0, 4, Memory.KEEPS)
    with pytest.raises(FoldTooNew):
        node.fold(START, told(1))
    assert (node.state.shard.fold, node.state.shard.heard) == (1, {})
