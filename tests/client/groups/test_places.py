"""Where a message may stand in the chain of a group, and by whom it may be there."""

from __future__ import annotations

import pytest

from nightmail.client.groups.known_groups import DEPARTURES_MAX, GROUPS_MAX, LATE_MS
from nightmail.client.store.group_rows import GroupRow, GroupStanding, HeadAt, LeftAt
from nightmail.wire.items import Devices, FromServer
from tests.client.groups.town import a_group, a_town, texts, writes
from tests.client.sealed_town import pass_time

ONE, TWO, UNKNOWN = b"1" * 32, b"2" * 32, b"3" * 32


@pytest.mark.parametrize(
    ("head", "seq", "in_order", "may"),
    [
        (UNKNOWN, 5, True, False),
        (ONE, 5, False, True),  # behind the first change, before the second
        (ONE, 5, True, False),  # the second one has come, and it would stand before it
        (ONE, 12, False, False),  # behind the second one, under the first
        (ONE, 2, False, False),  # before the change that it names
        (TWO, 12, True, True),
        (TWO, 9, True, False),
    ],
)
def test_a_message_stands_between_the_change_that_it_names_and_the_next(
    head: bytes, seq: int, in_order: bool, may: bool
) -> None:
    _, people = a_town("ada")
    known = people[0].machine.groups(0).known
    row = GroupRow(group=2, standing=GroupStanding.JOINED, heads=(HeadAt(1, ONE, 3), HeadAt(2, TWO, 10)))
    assert known.may_stand(row, head, seq, in_order=in_order) is may


@pytest.mark.parametrize(("index", "late_ms", "may"), [(3, 0, True), (4, 0, False), (3, LATE_MS + 1, False)])
def test_who_has_left_is_heard_with_what_it_wrote_before_and_not_for_long(index: int, late_ms: int, may: bool) -> None:
    town, people = a_town("ada")
    ada = people[0]
    gone = {7: LeftAt(4, town.now)}
    row = GroupRow(group=2, standing=GroupStanding.JOINED, departures=gone)
    known = ada.machine.groups(town.now + late_ms).known
    assert known.may_write(row, 7, index) is may
    assert known.may_write(row, 9, index) is False
    assert len(gone) < DEPARTURES_MAX


def test_a_server_cannot_fill_the_store_with_groups() -> None:
    _, people = a_town("ada")
    known = people[0].machine.groups(0).known
    for number in range(2, 2 + 2 * GROUPS_MAX, 2):
        assert known.invite(number) is not None
    assert known.invite(1 << 40) is None


def test_nobody_waits_for_a_member_whose_list_cannot_be_had() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    ada.cut()

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == ada.me.device and isinstance(item, Devices) and item.account == cleo.me.account:
            return Devices(item.ref, item.account, item.version, item.devices, b"")
        return item

    town.meddle = meddle
    ada.connect()
    message = writes(ada, group, "to those who can be reached")
    town.settle()
    pass_time(town, 2_000)
    assert ada.state(message) != "pending"
    assert texts(bob, group) == ["to those who can be reached"]
