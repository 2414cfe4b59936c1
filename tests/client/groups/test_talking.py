"""People make a group, and talk."""

from __future__ import annotations

from nightmail.client.events import QueueEmpty
from nightmail.client.group_events import GroupUpdated
from nightmail.client.messages import Message
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.records import GroupSealed, GroupSent
from nightmail.model.roster import Departure, Removal, Role, RoleChange
from tests.client.groups.town import a_group, a_town, accounts, add, change, members, texts, writes
from tests.client.sealed_town import said_by


def test_everybody_who_is_added_knows_the_members() -> None:
    town, people = a_town("ada", "bob", "cleo")
    group = a_group(town, *people)
    for person in people:
        row = person.store.group(group)
        assert row is not None
        assert (row.standing, row.name) == (GroupStanding.JOINED, "Friends")
        assert members(person, group) == accounts(people)


def test_everybody_reads_what_anybody_writes() -> None:
    town, people = a_town("ada", "bob", "cleo")
    group = a_group(town, *people)
    for person, text in zip(people, ("one", "two", "three"), strict=True):
        writes(person, group, text)
        town.settle()
    for person in people:
        assert texts(person, group) == ["one", "two", "three"]


def test_a_newcomer_hears_of_the_group_before_it_hears_what_is_written_there() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    bob.cut()
    group = a_group(town, *people)
    writes(ada, group, "hello")
    town.settle()
    bob.connect()
    town.settle()
    assert [type(event) for event in bob.events if isinstance(event, GroupUpdated | Message)] == [GroupUpdated, Message]


def test_a_message_is_sealed_once_for_everybody() -> None:
    town, people = a_town("ada", "bob", "cleo")
    group = a_group(town, *people)
    for text in ("one", "two"):
        writes(people[0], group, text)
        town.settle()
    assert len(said_by(people[0], GroupSent)) == 2
    keys = [sealed for sealed in said_by(people[0], GroupSealed) if len(sealed.envelopes) == 2]
    assert len(keys) == 1


def test_somebody_who_is_removed_reads_no_more() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(ada, group, "before")
    town.settle()
    key = ada.machine.groups(0).keys.chain(group)
    assert change(town, ada, group, Removal((cleo.me.account,))) == group
    writes(ada, group, "after")
    town.settle()
    after = ada.machine.groups(0).keys.chain(group)
    assert key is not None
    assert after is not None
    assert key.key_id != after.key_id
    assert texts(bob, group) == ["before", "after"]
    assert texts(cleo, group) == ["before"]
    row = cleo.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.REMOVED


def test_a_newcomer_reads_from_then_on() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, ada, bob)
    writes(ada, group, "before")
    town.settle()
    assert add(town, ada, group, cleo) == group
    for person, text in zip(people, ("one", "two", "three"), strict=True):
        writes(person, group, text)
        town.settle()
    assert texts(cleo, group) == ["one", "two", "three"]
    assert texts(bob, group) == ["before", "one", "two", "three"]


def test_two_admins_change_at_once_and_both_changes_are_made() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan")
    ada, bob, cleo, dan = people
    group = a_group(town, ada, bob)
    assert change(town, ada, group, RoleChange(bob.me.account, Role.ADMIN)) == group
    done: list[object] = []
    ada.machine.groups(town.now).changes.add(group, [cleo.me.account], done.append)
    bob.machine.groups(town.now).changes.add(group, [dan.me.account], done.append)
    for person in (ada, bob):
        person.look()
    town.settle()
    assert done == [group, group]
    for person in people:
        assert members(person, group) == accounts(people)


def test_the_last_admin_leaves_by_naming_another() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    assert change(town, ada, group, Departure(bob.me.account)) == group
    writes(bob, group, "without her")
    town.settle()
    assert texts(ada, group) == []
    assert texts(cleo, group) == ["without her"]
    row = ada.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.LEFT


def test_what_was_written_offline_comes_later() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    ada.cut()
    writes(ada, group, "offline")
    assert change(town, bob, group, Departure()) == group
    ada.connect()
    town.settle()
    assert texts(cleo, group) == ["offline"]
    assert texts(bob, group) == []


def test_many_changes_at_once_are_judged_in_order_over_one_connection() -> None:
    town, people = a_town("ada", "bob", "cleo", "dan")
    ada, bob, cleo, dan = people
    group = a_group(town, ada, bob, cleo)
    bob.cut()
    add(town, ada, group, dan)
    for text, role in (("one", Role.ADMIN), ("two", Role.MEMBER), ("three", Role.ADMIN)):
        writes(ada, group, text)
        town.settle()
        change(town, ada, group, RoleChange(cleo.me.account, role))
    before = len(bob.events)
    bob.connect()
    town.settle()
    assert bob.hung_up is None
    assert texts(bob, group) == ["one", "two", "three"]
    assert [event.what for event in bob.told(GroupUpdated)][-4:] == ["added", "role", "role", "role"]
    told = [type(event) for event in bob.events[before:]]
    assert told.count(QueueEmpty) == 1
    assert QueueEmpty not in told[: len(told) - 1 - told[::-1].index(GroupUpdated)]
