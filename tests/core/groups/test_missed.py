"""What a device leaves behind in a group's log when it goes."""

from __future__ import annotations

from nightmail.model.answers import GroupAccepted
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER, log_of
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Closed, GroupAcked, Record, Unlinked, encode_record
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP, GroupWorld
from tests.core.world import Person

NORMAL, HIGH = Lane


def failed(town: GroupWorld, author: Person) -> list[tuple[int, Lane, int, Reason]]:
    """(Device, lane, number, why)."""
    receipts = [receipt for receipt in town.receipts(author[1]) if receipt.state is MessageState.FAILED]
    return [
        (receipt.key[3], Lane(receipt.key[2]), n, receipt.reason) for receipt in receipts
        for n in range(receipt.numbers[0], receipt.numbers[1] + 1)
    ]  # fmt: skip


def test_what_an_unlinked_device_had_not_fetched_has_failed_there(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob", 2)
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.write(alice[1], 1)
    town.do(bob[2], GroupAcked(GROUP, 1))
    town.write(alice[1], 2)
    town.write(alice[1], 1, lane=HIGH)
    town.write(bob[1], 1)
    town.do(bob[1], Unlinked(bob[2]))
    assert failed(town, alice) == [(bob[2], NORMAL, 2, Reason.DEVICE_REMOVED), (bob[2], HIGH, 1, Reason.DEVICE_REMOVED)]
    assert town.fetched(bob[1]) == ["hello", "hello", "hello", "gap 4-4 kept_elsewhere"]


def test_of_a_closed_account_every_device_has_missed_its_rest_and_only_that(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob", 2), town.join("carol")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, carol)
    town.write(alice[1], 1)
    town.add(alice[1], bob)
    town.write(alice[1], 2)
    town.do(bob[1], Closed(bob.account))
    town.write(alice[1], 3)
    missed = [(device, NORMAL, 2, Reason.DEVICE_REMOVED) for device in (bob[1], bob[2])]
    assert failed(town, alice) == missed


def test_what_fills_many_pages_is_told_completely(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1, ring_acks=2)
    town.make(alice[1], alice, bob)
    for n in range(1, 601):
        town.write(alice[1], n, floor=n)
    town.do(bob[1], Closed(bob.account))
    assert [n for _, _, n, _ in failed(town, alice)] == list(range(1, 601))


def test_a_member_without_devices_fails_as_a_whole(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.limit(group_write_members=1)
    town.make(alice[1], alice, bob)
    town.do(bob[1], Unlinked(bob[1]))
    town.write(alice[1])
    assert failed(town, alice) == [(bob.account << 12, NORMAL, 1, Reason.DEVICE_REMOVED)]


def test_a_buried_message_takes_its_numbers_and_fails_for_the_group_after_thirty_days(town: GroupWorld) -> None:
    alice, bob = town.join("alice"), town.join("bob")
    town.make(alice[1], alice, bob)
    sent = town.group_sent(alice[1])
    record = Record(alice[1], 5, sent)
    node = town.of(GROUP)
    group = town.group()
    assert group is not None
    (answer,) = node.bury(town.now, encode_record(record), "Mistake in GroupSent", record)
    assert isinstance(answer, Answer)
    assert isinstance(answer.said, GroupAccepted)
    assert (answer.said.id, answer.said.group_seq) == (sent.id, group.seq + 1)
    assert town.do(alice[1], sent) == answer.said
    town.write(alice[1], 2, text="behind")
    assert town.messages(bob[1]) == ["behind"]
    town.wait(30 * DAY_MS + 100)
    assert (log_of(GROUP), NORMAL, 1, Reason.EXPIRED) in failed(town, alice)
    assert node.state.shard.dead == 0


def test_a_leaver_of_a_group_that_fans_out_on_write_again_may_fetch_its_rest(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(group_write_members=2)
    town.make(alice[1], alice, bob, carol)
    town.write(alice[1], text="in the log")
    town.do(SERVER, Closed(carol.account))
    town.limit(group_write_members=100)
    dave = town.join("dave")
    town.add(alice[1], dave)
    town.remove(alice[1], bob)
    for person in (alice, dave):
        group = town.group()
        assert group is not None
        town.do(person[1], GroupAcked(GROUP, group.seq))
    town.wait(60_000)
    assert town.fetched(bob[1])[0] == "in the log"
