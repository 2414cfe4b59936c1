"""Writing to a group: one number, one answer, and who may."""

from __future__ import annotations

import pytest

from nightmail.model.answers import GroupAccepted, Settled
from nightmail.model.records import GroupVoided, Unlinked
from nightmail.model.refusals import (
    IdReused,
    NotGroupAdmin,
    NotMember,
    NumberVoided,
    OutOfOrder,
    StaleGroup,
    UnknownGroup,
)
from nightmail.model.roster import GroupSettings, Role
from nightmail.model.rows import GroupEntry, PendingReceipt
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import START, name_of, tag

NORMAL, HIGH = Lane


def test_everybody_gets_one_entry_with_one_stamp_and_number_except_the_device_that_wrote(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice", 2), town.join("bob", 2), town.join("carol")
    town.make(alice[1], alice, bob)
    group = town.group()
    assert group is not None
    said = town.write(alice[1], text="to all")
    assert isinstance(said, GroupAccepted)
    assert said == GroupAccepted(name_of(alice[1], 1), tag("to all"), town.entries(bob[1])[-1].at, 1)
    entry = GroupEntry(
        alice[1], GROUP, 1, name_of(alice[1], 1), tag("to all"), Kind.TEXT, None, said.at, 0,
        f"{GROUP}|to all".encode(), 1, group.epoch, NORMAL,
    )  # fmt: skip
    assert [town.entries(device)[-1] for device in (alice[2], bob[1], bob[2])] == [entry] * 3
    assert (town.messages(alice[1]), town.entries(carol[1])) == ([], [])


def test_numbers_and_stamps_of_a_group_grow_across_authors(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    said = [town.write(by, n) for by, n in ((alice[1], 1), (bob[1], 1), (alice[1], 2))]
    found = [(answer.group_seq, answer.at) for answer in said if isinstance(answer, GroupAccepted)]
    assert [seq for seq, _ in found] == [1, 2, 3]
    assert [at for _, at in found] == sorted({at for _, at in found})


def test_a_retry_gets_its_first_answer_whatever_became_of_the_group(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    body = town.group_sent(bob[1])
    first = town.do(bob[1], body)
    town.add(alice[1], carol)
    assert town.do(bob[1], body) == first
    town.remove(alice[1], bob)
    assert town.do(bob[1], body) == first
    assert town.messages(alice[1]) == ["hello"]


def test_a_number_with_other_content_is_refused_and_one_ahead_of_its_turn_waits(town: GroupWorld) -> None:
    alice = town.join("alice")
    town.make(alice[1], alice)
    town.write(alice[1])
    assert town.write(alice[1], text="other") == IdReused(name_of(alice[1], 1))
    assert town.write(alice[1], 3) == OutOfOrder(2)
    town.write(alice[1], 2, floor=2)
    assert town.write(alice[1], 1) == Settled(name_of(alice[1], 1))


def test_a_stale_epoch_or_head_is_refused_and_takes_no_number(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    body = town.group_sent(alice[1])
    town.link(bob)
    group = town.group()
    assert group is not None
    stale = StaleGroup(group.epoch, group.head, 1)
    assert town.do(alice[1], body) == stale
    assert town.write(alice[1], head=bytes(32)) == stale
    assert town.stream(alice[1], alice) is None
    assert town.group() == group
    assert isinstance(town.write(alice[1]), GroupAccepted)


def test_who_is_no_member_or_not_yet_writes_nothing(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob", 2), town.join("carol")
    assert town.do(alice[1], town.group_sent(alice[1], head=bytes(32))) == UnknownGroup(GROUP)
    town.make(alice[1], alice, bob)
    assert town.write(carol[1]) == NotMember(GROUP)
    town.remove(alice[1], bob)
    assert town.write(bob[1]) == NotMember(GROUP)


def test_a_device_that_was_unlinked_writes_nothing(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    town.do(bob[1], Unlinked(bob[2]))
    assert town.write(bob[2]) == NotMember(GROUP)


def test_where_only_admins_write_a_member_is_refused(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob, settings=GroupSettings(writers=Role.ADMIN))
    assert town.write(bob[1]) == NotGroupAdmin(GROUP)
    assert isinstance(town.write(alice[1]), GroupAccepted)


@pytest.mark.parametrize(("own", "timer", "life"), [(0, 0, 0), (40_000, 0, 40_000), (0, 50_000, 50_000)])
def test_the_shorter_timer_counts(town: GroupWorld, own: int, timer: int, life: int) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob, settings=GroupSettings(timer_ms=timer))
    town.write(alice[1], life_ms=own)
    town.write(alice[1], 2, life_ms=60_000)
    assert [entry.life_ms for entry in town.entries(bob[1]) if entry.by] == [life, timer or 60_000]


def test_a_voided_number_is_consumed_and_its_message_comes_too_late(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    body = town.group_sent(alice[1])
    void = GroupVoided(GROUP, NORMAL, 1, 1, name_of(alice[1], 1))
    assert town.do(alice[1], void) == GroupAccepted(name_of(alice[1], 1), b"", START, 0)
    assert town.do(alice[1], body) == NumberVoided(name_of(alice[1], 1))
    assert isinstance(town.write(alice[1], 2), GroupAccepted)
    assert town.do(bob[1], GroupVoided(GROUP + 2, NORMAL, 1, 1, name_of(bob[1], 1))) == UnknownGroup(GROUP + 2)


def test_keys_go_to_the_devices_they_name_in_the_streams_own_order(town: GroupWorld) -> None:
    alice, bob = town.join("alice", 2), town.join("bob", 2)
    town.make(alice[1], alice, bob)
    said = town.do(alice[1], town.group_sealed(alice[1], 1, alice[2], bob[1], bob[2], lane=NORMAL))
    assert isinstance(said, GroupAccepted)
    town.write(alice[1], 2, text="sealed with it")
    for device in (alice[2], bob[1], bob[2]):
        assert town.texts(device)[-2:] == ["key", "sealed with it"]
        assert [entry.group_seq for entry in town.entries(device)[-2:]] == [0, 1]
    assert town.do(alice[1], town.group_sealed(alice[1], 1, bob[1], lane=NORMAL)) == said


def test_a_device_that_the_group_does_not_know_is_left_out_and_its_author_told(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    town.do(alice[1], town.group_sealed(alice[1], 1, bob[1], carol[1]))
    assert (town.texts(bob[1], HIGH), town.texts(carol[1], HIGH)) == (["key"], [])
    key = (alice[1], GROUP, HIGH, carol[1], MessageState.FAILED, 1)
    assert town.receipts(alice[1]) == [PendingReceipt(key, 1, START, Reason.DEVICE_REMOVED, [1, 1])]


def test_a_message_is_sealed_again_only_for_who_was_a_member_when_it_was_written(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.make(alice[1], alice, bob)
    said = town.write(alice[1])
    assert isinstance(said, GroupAccepted)
    town.add(alice[1], carol)
    again = town.group_sealed(alice[1], 2, bob[1], carol[1], text="again", of=said.id, of_seq=1, lane=NORMAL)
    town.do(alice[1], again)
    assert town.texts(bob[1])[-1] == "again"
    assert "again" not in town.texts(carol[1])
    key = (alice[1], GROUP, NORMAL, carol[1], MessageState.FAILED, 2)
    assert [receipt.key for receipt in town.receipts(alice[1])] == [key]
