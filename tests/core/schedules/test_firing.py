from __future__ import annotations

from nightmail.model.answers import Accepted, Done, ScheduleTaken
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Acked, Blocked, Closed, Read, Span, Unlinked
from nightmail.model.refusals import AlreadySent
from nightmail.model.rows import Entry
from nightmail.model.schedule_rows import SCHEDULED_FROM, ScheduleState
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.schedule_world import ScheduleWorld

PENDING, DELIVERED, FAILED = ScheduleState.PENDING, ScheduleState.DELIVERED, ScheduleState.FAILED


def test_it_is_delivered_at_its_time_and_not_before(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob", 2)
    due_at = world.now + 10_000
    assert world.schedule(ada[1], bob, 10_000) == ScheduleTaken(world.id(ada[1], "a"), 1, due_at)
    world.wait(9_999)
    assert (world.texts(bob[1]), world.state(ada)) == ([], PENDING)
    world.wait(1)
    assert world.texts(bob[1]) == world.texts(bob[2]) == world.texts(ada[2]) == ["later"]
    assert world.state(ada) is DELIVERED
    assert world.kept_content(ada) is None
    world.wait(DAY_MS)
    assert world.texts(bob[1]) == ["later"]


def test_it_is_numbered_in_a_count_of_its_own(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    assert isinstance(world.send(ada[1], bob, 1), Accepted)
    world.wait(1_000)
    assert isinstance(world.send(ada[1], bob, 2), Accepted)
    entries = [item[1] for item in world.offer(bob[1]) if isinstance(item, tuple)]
    assert [entry.n for entry in entries] == [1, SCHEDULED_FROM + 1, 2]
    assert sorted(entry.at for entry in entries) == [entry.at for entry in entries]
    assert all(type(entry) is Entry for entry in entries)
    row = world.row(ada)
    assert row is not None
    assert (row.n, row.at) == (SCHEDULED_FROM + 1, entries[1].at)


def test_its_author_hears_that_it_is_delivered_and_read(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.wait(1_000)
    world.do(bob[1], Acked(Lane.NORMAL, 1))
    n = SCHEDULED_FROM + 1
    world.do(bob[1], Read(ada.account, (Span(ada[1], Lane.NORMAL, n, n + 5),)))
    heard = {receipt.state: receipt.numbers for receipt in world.receipts(ada[1]) if receipt.key[0]}
    assert heard == {MessageState.DELIVERED: [n, n], MessageState.READ: [n, n]}


def test_every_device_of_the_author_is_told_to_look_at_it(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob")
    for name in ("a", "b", "c"):
        world.schedule(ada[1], bob, 1_000, name=name)
    assert world.news(ada[1]) == []
    world.wait(1_000)
    assert world.news(ada[1]) == world.news(ada[2]) == [1, 3]


def test_a_stale_list_sends_it_back_until_it_is_sealed_again(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(bob)
    world.wait(1_000)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.is_stale, row.retry_count) == (PENDING, True, 1)
    assert (world.news(ada[1]), world.texts(bob[1])) == ([1, 1], [])
    assert isinstance(world.reseal(ada[1], bob, "again"), ScheduleTaken)
    assert world.texts(bob[1]) == world.texts(bob[2]) == ["again"]
    assert world.state(ada) is DELIVERED
    assert world.reseal(ada[1], bob, "twice") == AlreadySent(world.id(ada[1], "a"))
    world.wait(2 * DAY_MS)
    assert world.texts(bob[1]) == ["again"]


def test_a_list_that_is_only_signed_again_does_not_make_it_stale(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    assert world.list_devices(bob[1], bob, (bob[1],)) == Done()
    world.wait(1_000)
    assert world.texts(bob[1]) == ["later"]


def test_one_that_nobody_seals_again_fails(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(bob)
    world.wait(1_000)
    world.wait(DAY_MS)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.error) == (FAILED, "stale_devices")
    assert world.kept_content(ada) is None


def test_another_device_of_the_author_may_seal_it_again(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(bob)
    world.wait(1_000)
    world.reseal(ada[2], bob, maker=ada[1])
    (item,) = world.offer(bob[1])
    assert isinstance(item, tuple)
    assert item[1].by == ada[2]


def test_what_is_sealed_again_before_its_time_still_waits_for_it(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(bob)
    world.reseal(ada[1], bob, "better")
    assert world.texts(bob[1]) == []
    world.wait(1_000)
    assert world.texts(bob[1]) == world.texts(bob[2]) == ["better"]


def test_a_revoked_author_does_not_fire(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob")
    world.schedule(ada[2], bob, 1_000)
    world.do(ada[1], Unlinked(ada[2]))
    world.wait(1_000)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.error, world.texts(bob[1])) == (FAILED, "device_removed", [])


def test_a_closed_account_takes_back_what_it_has_scheduled(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    for number in range(300):
        world.schedule(ada[1], bob, 1_000, name=f"n{number}")
    world.do(ada[1], Closed(ada.account))
    assert {world.state(ada, serial) for serial in (1, 255, 256, 300)} == {ScheduleState.CANCELLED}
    assert world.kept_content(ada, 300) is None
    world.wait(1_000)
    assert world.texts(bob[1]) == []


def test_to_nobody_it_fails(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.do(bob[1], Closed(bob.account))
    world.wait(1_000)
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.error) == (FAILED, "unknown_recipient")


def test_without_room_it_fails_and_where_there_is_room_it_does_not(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob", 2)
    world.limit(mailbox_entries=1)
    world.send(ada[1], bob, 1)
    world.do(bob[2], Acked(Lane.NORMAL, 1))
    world.schedule(ada[1], bob, 1_000, name="a")
    world.wait(1_000)
    assert (world.texts(bob[2]), world.state(ada)) == (["later"], DELIVERED)
    failures = [(r.key[3], r.reason) for r in world.receipts(ada[1]) if r.state is MessageState.FAILED]
    assert failures == [(bob[1], Reason.MAILBOX_FULL)]
    world.schedule(ada[1], bob, 1_000, name="b")
    world.wait(1_000)
    row = world.row(ada, 2)
    assert row is not None
    assert (row.state, row.error) == (FAILED, "mailbox_full")


def test_a_blocked_author_learns_nothing(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.do(bob[1], Blocked(bob.account, ada.account, on=True))
    world.schedule(ada[1], bob, 1_000)
    world.wait(1_000)
    assert (world.state(ada), world.texts(bob[1])) == (DELIVERED, [])


def test_a_note_to_oneself_can_be_scheduled(world: ScheduleWorld) -> None:
    ada = world.join("ada", 2)
    world.schedule(ada[1], ada, 1_000)
    world.wait(1_000)
    assert (world.state(ada), world.texts(ada[2])) == (DELIVERED, ["later"])


def test_its_author_hears_of_an_own_device_that_was_linked_since(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.schedule(ada[1], bob, 1_000)
    world.link(ada)
    world.wait(1_000)
    assert world.texts(bob[1]) == ["later"]
    failures = [(r.key[3], r.reason, r.numbers) for r in world.receipts(ada[1]) if r.state is MessageState.FAILED]
    n = SCHEDULED_FROM + 1
    assert failures == [(ada[2], Reason.STALE_DEVICES, [n, n])]
