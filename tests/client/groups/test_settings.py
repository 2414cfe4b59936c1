"""Names, timers, mentions, and who may write."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.client.errors import Misused
from nightmail.client.events import Disappeared, LifeDiffers
from nightmail.client.group_errors import NotGroupAdmin, NotInGroup
from nightmail.client.group_events import GroupUpdated, UpdateKind
from nightmail.client.groups import controls
from nightmail.client.groups.names import check_name
from nightmail.e2ee.content import Content
from nightmail.e2ee.identity import Address
from nightmail.model.records import GroupSealed, GroupSent
from nightmail.model.roster import Departure, GroupSettings, Removal, Role, SettingsChange
from nightmail.model.words import Kind, Lane
from tests.client.groups.town import a_group, a_town, change, texts, writes
from tests.client.sealed_town import said_by

MINUTE = 60_000


def test_everybody_sees_a_new_name_and_a_newcomer_learns_it() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, _ = people
    group = a_group(town, *people)
    bob.machine.groups(town.now).names.rename(group, "  Best   friends ")
    bob.look()
    town.settle()
    for person in people:
        row = person.store.group(group)
        assert row is not None
        assert row.name == "Best friends"
    told = ada.told(GroupUpdated)[-1]
    assert (told.what, told.by_handle, told.name) == (UpdateKind.RENAMED, "bob", "Best friends")


def test_a_picture_reaches_everybody() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    ada.machine.groups(town.now).names.set_picture(group, b"picture")
    ada.look()
    town.settle()
    row = bob.store.group(group)
    assert row is not None
    assert row.picture == b"picture"


@pytest.mark.parametrize("name", ["", "  ", "n" * 101, "a\x1b[2Jb"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(Misused):
        check_name(name)


def test_messages_disappear_as_the_settings_say() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    assert change(town, ada, group, SettingsChange(GroupSettings(timer_ms=MINUTE))) == group
    assert bob.told(GroupUpdated)[-1].timer_ms == MINUTE
    message = writes(ada, group, "soon gone")
    town.settle()
    assert said_by(ada, GroupSent)[-1].life_ms == MINUTE
    bob.machine.mark_read(group, town.now)
    bob.look()
    town.settle()
    town.wait(MINUTE + 1)
    town.settle()
    assert texts(ada, group) == texts(bob, group) == []
    assert [event.message_ids for event in bob.told(Disappeared)] == [(message.id,)]
    assert not bob.told(LifeDiffers)


def test_a_mention_goes_in_the_high_lane_with_its_key_before_it() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, _ = people
    group = a_group(town, *people)
    content = Content(Kind.TEXT, "look", mentions=(bob.me.account,))
    ada.machine.write(group, content, town.now, lane=Lane.HIGH)
    ada.look()
    town.settle()
    assert [sent.lane for sent in said_by(ada, GroupSent)] == [Lane.HIGH]
    message = bob.store.history(group, 1)[0]
    assert (message.text, message.content.mentions) == ("look", (bob.me.account,))


def test_where_only_admins_write_a_member_is_refused() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people, settings=replace(GroupSettings(), writers=Role.ADMIN))
    message = writes(bob, group, "me too")
    writes(ada, group, "an admin")
    town.settle()
    assert bob.state(message) == "failed"
    assert texts(ada, group) == ["an admin"]
    refused = change(town, bob, group, Removal((ada.me.account,)))
    assert isinstance(refused, NotGroupAdmin)


def test_who_has_left_writes_no_more() -> None:
    town, people = a_town("ada", "bob")
    _, bob = people
    group = a_group(town, *people)
    assert change(town, bob, group, Departure()) == group
    with pytest.raises(NotInGroup):
        writes(bob, group, "still there?")


def test_a_change_that_can_be_judged_at_once_may_stand_behind_a_message() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    bob.cut()
    for minutes in (1, 2):
        change(town, ada, group, SettingsChange(GroupSettings(timer_ms=minutes * MINUTE)))
        writes(ada, group, f"after change {minutes}")
        town.settle()
    bob.connect()
    town.settle()
    assert bob.hung_up is None
    assert texts(bob, group) == ["after change 1", "after change 2"]


def test_a_message_whose_life_is_over_is_not_sealed_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people, settings=GroupSettings(timer_ms=MINUTE))
    bob.cut()
    message = writes(ada, group, "soon gone")
    town.settle(ada)
    town.wait(MINUTE + 1)
    town.settle(ada)
    erased = ada.store.message(message.id)
    assert erased is not None
    assert erased.is_erased
    bob.connect()
    town.settle()
    lacks = controls.Wanted(ids=(message.id,))
    ada.machine.groups(town.now).seen_by.answer(group, Address(bob.me.device, bob.me.registration), lacks)
    ada.look()
    town.settle()
    assert [sealed for sealed in said_by(ada, GroupSealed) if sealed.of == message.id] == []
