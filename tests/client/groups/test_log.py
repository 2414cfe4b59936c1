"""Large groups: entries are fetched from the group's log."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import QueueEmpty
from nightmail.client.messages import Message
from nightmail.model.group_rows import FanOut
from nightmail.model.limits import FoldLimits
from nightmail.model.records import GroupAcked
from nightmail.model.roster import Removal
from nightmail.wire.items import FromServer, GroupLog, LogFetch
from tests.client.groups.town import a_group, a_town, change, texts, writes
from tests.client.sealed_town import said_by
from tests.client.town import Device, Town

LARGE = FoldLimits(group_write_members=2, group_read_members=3)


def a_large_group(*handles: str) -> tuple[Town, list[Device], int]:
    town, people = a_town(*handles, limits=LARGE)
    return town, people, a_group(town, *people)


def test_everybody_reads_a_large_group_from_its_log() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    for number in range(20):
        writes(people[number % 4], group, f"message {number}")
        town.settle()
    state = town.loop.state.groups[group]
    assert state is not None
    assert state.fan_out is FanOut.READ
    for person in people:
        assert texts(person, group) == [f"message {number}" for number in range(20)]


def test_what_came_while_a_device_was_away_is_fetched_once() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    ada, bob = people[:2]
    bob.cut()
    for number in range(30):
        writes(ada, group, f"message {number}")
        town.settle()
    bob.connect()
    town.settle()
    assert texts(bob, group) == [f"message {number}" for number in range(30)]
    bob.cut()
    bob.connect()
    town.settle()
    assert len(bob.told(Message)) == 30
    assert said_by(bob, GroupAcked)[-1].upto == bob.machine.groups(0).known.row(group).cursor  # pyright: ignore[reportOptionalMemberAccess]


def test_a_crash_between_two_pages_loses_nothing() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    ada, bob = people[:2]
    bob.cut()
    for number in range(20):
        writes(ada, group, f"message {number}")
        town.settle()
    bob.connect()
    for _ in range(6):
        bob.exchange()
    bob.crash()
    bob.connect()
    town.settle()
    assert texts(bob, group) == [f"message {number}" for number in range(20)]


def test_somebody_who_was_removed_fetches_up_to_the_end() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    ada, bob = people[:2]
    bob.cut()
    writes(ada, group, "before")
    town.settle()
    change(town, ada, group, Removal((bob.me.account,)))
    writes(ada, group, "after")
    town.settle()
    bob.connect()
    town.settle()
    assert texts(bob, group) == ["before"]


def test_news_without_entries_is_a_reason_to_fetch() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    bob = people[1]
    writes(people[0], group, "one")
    town.settle()
    row, context = bob.store.group(group), bob.machine.parts.context
    assert row is not None
    for head, fetches in ((row.cursor, 0), (row.cursor + 1, 1)):
        bob.machine.groups(town.now).logs.take(GroupLog(0, group, 0, (), head))
        assert sum(isinstance(item, LogFetch) for item in context.items) == fetches


def test_an_answer_that_news_has_outrun_is_followed_by_another_question() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    bob = people[1]
    writes(people[0], group, "one")
    town.settle()
    logs, row, context = bob.machine.groups(town.now).logs, bob.store.group(group), bob.machine.parts.context
    assert row is not None
    logs.fetch(group)
    asked = [item for item in context.items if isinstance(item, LogFetch)]
    logs.take(GroupLog(asked[0].ref, group, row.cursor - 1, (), row.cursor + 1))
    assert [item.after for item in context.items if isinstance(item, LogFetch)] == [row.cursor, row.cursor]


def test_nothing_is_confirmed_before_the_log_is_fetched() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    ada, bob = people[:2]
    bob.cut()
    written = [f"message {number}" for number in range(20)]
    for text in written:
        writes(ada, group, text)
        town.settle()
    bob.connect()
    for _ in range(100):
        bob.exchange()
        bob.machine.confirm(town.now)
        bob.look()
        if bob.told(QueueEmpty) and bob.machine.is_confirmed:
            break
    assert texts(bob, group) == written
    town.settle()
    assert bob.machine.is_confirmed


def test_a_server_that_has_not_come_as_far_as_the_news_is_asked_again() -> None:
    town, people, group = a_large_group("ada", "bob", "cleo", "dan")
    ada, bob = people[:2]
    writes(ada, group, "one")
    town.settle()
    row = bob.store.group(group)
    assert row is not None

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, GroupLog) and item.ref:
            return replace(item, items=(), head=row.cursor)  # by an owner that lags
        return item

    town.meddle = meddle
    writes(ada, group, "two")
    town.settle()
    assert texts(bob, group) == ["one"]
    town.meddle = lambda device, item: item
    town.wait(5_000)
    town.settle()
    assert texts(bob, group) == ["one", "two"]
