from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.answer_lines import COUNT_BITS
from nightmail.engine.cluster.links.exchange import Exchange, OwnsFrame
from nightmail.engine.cluster.owner import Owner
from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Done
from nightmail.model.effects import Answer
from nightmail.model.rows import Account
from nightmail.model.words import Lane
from tests.engine.cluster.rig import Told

SHARDS = 4


class Serving:
    """An owner that shows one account."""

    loop = None

    def __init__(self, shown: Account | None) -> None:
        self.mailboxes = self
        self._shown = shown

    def account(self, account: int, then: Any) -> None:
        then(self._shown)


class Side:
    """One node."""

    def __init__(self, number: int, sides: dict[int, Side]) -> None:
        self.exchange = Exchange(number, SHARDS, lambda to, packet: sides[to].exchange.take(packet))
        self.told, self.answered, self.changed = Told(), list[Answer](), list[int]()
        self.exchange.attend(self.told, self.answered.extend, self.changed.append)
        sides[number] = self


@pytest.fixture
def sides() -> tuple[Side, Side]:
    both: dict[int, Side] = {}
    one, two = Side(1, both), Side(2, both)
    one.exchange.nodes, two.exchange.nodes = [2], [1]
    return one, two


def own(side: Side, shard: int, shown: Account | None = None) -> None:
    side.exchange.owners[shard] = cast("Owner", Serving(shown))
    side.exchange.announce()
    side.exchange.flush()


def test_a_question_finds_the_owner_on_another_node(sides: tuple[Side, Side]) -> None:
    one, two = sides
    ada, found = Account(handle="ada"), list[Account | None]()
    assert one.exchange.owner(3) is None
    own(two, 3, ada)
    assert (one.changed, one.exchange.owner_of(3)) == ([3], 2)
    owner = one.exchange.owner(3)
    assert owner is not None
    owner.account(7, found.append)
    one.exchange.flush()
    two.exchange.flush()
    assert found == [ada]


def test_a_shard_that_was_given_back_has_no_owner_there_any_more(sides: tuple[Side, Side]) -> None:
    one, two = sides
    own(two, 3)
    del two.exchange.owners[3]
    two.exchange.announce()
    two.exchange.flush()
    assert one.exchange.owner(3) is None
    own(two, 3)
    one.exchange.forget(2)
    assert one.exchange.owner(3) is None


def test_an_answer_goes_to_the_node_of_its_line_and_one_to_a_node_that_is_gone_nowhere(
    sides: tuple[Side, Side],
) -> None:
    one, two = sides
    via = {node: (node << COUNT_BITS | 5) << REF_BITS | 1 for node in (1, 2, 9)}
    one.exchange.deliver([Answer(via[node], Done()) for node in (1, 2, 9)])
    one.exchange.flush()
    assert (one.answered, two.answered) == ([Answer(via[1], Done())], [Answer(via[2], Done())])


def test_news_reach_every_node(sides: tuple[Side, Side]) -> None:
    one, two = sides
    one.exchange.grew(7, Lane.HIGH)
    one.exchange.changed(8)
    one.exchange.dismissed(9)
    one.exchange.low(10)
    one.exchange.settled()
    one.exchange.flush()
    expected = [("grew", 7, Lane.HIGH), ("changed", 8), ("dismissed", 9), ("low", 10), ("settled",)]
    assert (one.told.take(), two.told.take()) == (expected, expected)


@pytest.mark.parametrize("packet", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x92\x01\x91\x91\x63"])
def test_what_is_not_understood_is_counted_and_changes_nothing(sides: tuple[Side, Side], packet: bytes) -> None:
    one, _ = sides
    one.exchange.take(packet)
    assert (one.exchange.refused, one.told.told, one.answered, one.changed) == (1, [], [], [])


def test_shards_that_do_not_exist_are_not_believed(sides: tuple[Side, Side]) -> None:
    one, _ = sides
    one.exchange.take(msgspec.msgpack.encode((2, [OwnsFrame({SHARDS: 7, -1: 7, 1: 10_000})])))
    assert (one.exchange.refused, one.changed, one.exchange.fold(1)) == (2, [1], NEWEST_FOLD)
