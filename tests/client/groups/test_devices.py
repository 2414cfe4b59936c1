"""Devices come and go: own ones, and those of other members."""

from __future__ import annotations

from nightmail.client.group_events import MemberMissing, MembersDiffer
from nightmail.client.messages import Message
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.roster import Removal
from nightmail.wire.items import LogFetch
from tests.client.groups.town import a_group, a_town, add, change, members, texts, writes
from tests.client.sealed_town import register_again, revoke


def test_own_other_devices_read_and_write_too() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    group = a_group(town, ada, bob)
    for device, text in ((ada, "one"), (tablet, "two"), (bob, "three")):
        writes(device, group, text)
        town.settle()
    for device in (ada, tablet, bob):
        assert texts(device, group) == ["one", "two", "three"]


def test_a_new_own_device_knows_the_groups_before_the_first_message() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    writes(bob, group, "before")
    town.settle()
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    row = tablet.store.group(group)
    assert row is not None
    assert (row.standing, row.name) == (GroupStanding.JOINED, "Friends")
    writes(bob, group, "after")
    town.settle()
    assert texts(tablet, group) == ["after"]
    writes(tablet, group, "from the tablet")
    town.settle()
    assert texts(bob, group) == ["before", "after", "from the tablet"]


def test_a_revoked_device_reads_no_more() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    writes(bob, group, "before")
    town.settle()
    before = bob.machine.groups(0).keys.chain(group)
    tablet.cut()
    revoke(town, ada, tablet)
    town.settle()
    writes(bob, group, "after")
    town.settle()
    after = bob.machine.groups(0).keys.chain(group)
    assert before is not None
    assert after is not None
    assert before.key_id != after.key_id
    assert texts(ada, group) == ["before", "after"]
    assert texts(tablet, group) == ["before"]


def test_who_registers_again_is_out_until_an_admin_adds_the_new_key() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(cleo, group, "before")
    town.settle()
    again = register_again(town, bob)
    again.connect()
    town.settle()
    writes(cleo, group, "while out")
    town.settle()
    assert texts(again, group) == []
    assert [event.state for event in ada.told(MemberMissing)] == ["suspended"]
    assert add(town, ada, group, again) == group
    for device, text in ((cleo, "after"), (again, "back")):
        writes(device, group, text)
        town.settle()
    assert texts(again, group) == ["after", "back"]
    assert texts(ada, group) == ["before", "while out", "after", "back"]
    assert again.me.account in members(cleo, group)


def test_an_account_moves_with_its_groups() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    writes(bob, group, "read before")
    town.settle()
    new = town.pair(ada, hand_over=True)
    new.connect()
    town.settle()
    town.wait(3_000)
    town.settle()
    assert texts(new, group) == ["read before"]
    assert new.machine.parts.inbox is not None
    writes(bob, group, "after")
    town.settle()
    assert texts(new, group) == ["read before", "after"]
    assert [message.group for message in new.told(Message)][-1] == group
    writes(new, group, "from the new one")
    town.settle()
    assert texts(bob, group) == ["read before", "after", "from the new one"]


def test_a_message_before_the_welcome_to_somebody_who_was_added_again_is_no_alarm() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    change(town, ada, group, Removal((bob.me.account,)))
    ada.machine.groups(town.now).changes.add(group, [bob.me.account], lambda _: None)
    ada.look()
    ada.exchange()
    ada.exchange()
    ada.cut()  # before it has welcomed bob
    town.settle()
    writes(cleo, group, "early")
    town.settle()
    assert bob.told(MembersDiffer) == []
    ada.connect()
    town.settle()
    assert texts(bob, group) == ["early"]
    assert bob.told(MembersDiffer) == []


def test_a_device_that_does_not_know_its_account_yet_fetches_no_log() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, ada, bob)
    tablet = town.pair(bob)
    tablet.connect()
    tablet.exchange()
    assert tablet.machine.sealer.awaits_provisioning
    tablet.machine.groups(town.now).logs.grew(group, 3)
    asked = [item for item in tablet.machine.parts.context.items if isinstance(item, LogFetch)]
    assert asked == []
    town.settle()
    row = tablet.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.JOINED
    writes(ada, group, "after")
    town.settle()
    assert texts(tablet, group) == ["after"]
