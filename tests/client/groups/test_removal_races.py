"""Somebody leaves, is removed or registers again, while other things are under way."""

from __future__ import annotations

from nightmail.client.group_events import GroupBroken, GroupChangeRefused, MembersDiffer
from nightmail.client.outbox.answers import NOT_MEMBER_MS
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.records import GroupVoided
from nightmail.model.refusals import NotMember
from nightmail.model.roster import Departure, GroupReceipts, GroupSettings, Removal, Role, RoleChange, SettingsChange
from nightmail.model.words import Lane, Reason
from nightmail.wire.items import Answered, Devices, Entries, FromServer, Gone, GroupMembers
from tests.client.groups.town import a_group, a_town, change, members, texts, writes
from tests.client.sealed_town import register_again, said_by


def test_a_removal_is_learned_although_the_server_no_longer_shows_the_chain() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob = people[:2]
    group = a_group(town, *people)
    bob.cut()
    message = writes(bob, group, "am I in?")
    for made in (SettingsChange(GroupSettings(receipts=GroupReceipts.NONE)), Removal((bob.me.account,))):
        change(town, ada, group, made)
    kept: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == bob.me.device and isinstance(item, Devices):
            kept.append(item)  # the list by which the changes are judged comes late
            return None
        return item

    town.meddle = meddle
    bob.connect()
    for _ in range(4):
        bob.exchange()
    town.meddle = lambda device, item: item
    assert bob.session is not None
    bob.session.out += kept
    town.settle()
    row = bob.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.REMOVED
    assert bob.state(message) == "failed"


def test_a_message_to_a_group_that_the_server_keeps_refusing_fails_in_the_end() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob = people[:2]
    group = a_group(town, *people)
    bob.cut()
    change(town, ada, group, Removal((bob.me.account,)))

    def meddle(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, Entries):
            return Gone(item.lane, item.first, item.first + len(item.entries) - 1, Reason.EXPIRED)
        return item

    town.meddle = meddle  # it was away for so long that the notice has expired
    bob.connect()
    message = writes(bob, group, "is anybody there?")
    town.settle()
    assert bob.state(message) == "pending"
    town.wait(NOT_MEMBER_MS)
    town.settle()
    failed = bob.store.message(message.id)
    assert failed is not None
    assert (failed.state.name, failed.reason) == ("FAILED", "not_member")


def test_a_message_that_was_given_up_is_voided_under_its_own_id() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(bob, group, "before")
    town.settle()
    bob.machine.groups(town.now).changes.change(group, lambda _: Departure(), lambda _: None)
    message = writes(bob, group, "after all")  # on its way behind the departure
    bob.carry_up()
    answers = bob.machine.parts.answers
    stream = next(each for each in bob.machine.parts.streams if message.id in {r.id for r in each.rows.values()})
    n = stream.floor
    town.settle(ada, cleo)
    bob.carry_down()
    assert stream.rows[n].void == "not_member"
    answers.take(stream, n, stream.round, NotMember(group), is_void=False)  # to a copy that was sent before
    town.settle()
    assert [(voided.n, voided.id) for voided in said_by(bob, GroupVoided)][-1] == (n, message.id)
    assert bob.state(message) == "failed"


def test_a_change_is_believed_although_its_author_has_registered_again_since() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(ada, group, "before")
    town.settle()
    bob.cut()
    change(town, ada, group, Removal((cleo.me.account,)))
    register_again(town, ada).connect()
    town.settle()
    bob.connect()
    town.settle()
    assert members(bob, group) == sorted([ada.me.account, bob.me.account])
    assert bob.told(GroupChangeRefused) == []
    assert texts(bob, group) == ["before"]


def test_what_stands_before_an_own_departure_alarms_nobody() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    tablet = town.pair(bob)
    tablet.connect()
    town.settle()
    writes(ada, group, "before")
    town.settle()
    tablet.cut()
    change(town, ada, group, RoleChange(cleo.me.account, Role.ADMIN))
    writes(ada, group, "in the lane that has no notices", lane=Lane.HIGH)
    town.settle()
    change(town, bob, group, Departure())
    kept: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == tablet.me.device and isinstance(item, Entries) and item.lane is Lane.NORMAL:
            kept.append(item)  # the notices come after the high lane
            return None
        return item

    town.meddle = meddle
    tablet.connect()
    town.settle()
    town.meddle = lambda device, item: item
    assert tablet.session is not None
    tablet.session.out += kept
    town.settle()
    assert tablet.told(MembersDiffer) == []
    assert texts(tablet, group) == ["before", "in the lane that has no notices"]


def test_a_welcome_counts_although_who_gave_it_has_registered_again_since() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob = people[:2]
    ada.says(bob, "Hello")
    town.settle()
    bob.cut()
    group = a_group(town, *people)
    again = register_again(town, ada)
    again.connect()
    town.settle()
    again.says(bob, "It is me")
    town.settle()
    kept: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == bob.me.device and isinstance(item, GroupMembers):
            kept.append(item)  # the members are shown after the new list
            return None
        return item

    town.meddle = meddle
    bob.connect()
    town.settle()
    town.meddle = lambda device, item: item
    assert (len(kept), bob.heard()) == (1, ["Hello", "It is me"])
    assert bob.session is not None
    bob.session.out += kept
    town.settle()
    row = bob.store.group(group)
    assert row is not None
    assert row.standing is GroupStanding.JOINED
    assert bob.told(GroupBroken) == []


def test_a_chain_that_the_server_does_not_show_is_asked_for_once() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob = people[:2]
    group = a_group(town, *people)
    refused: list[FromServer] = []

    def lose(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, Entries):
            return Gone(item.lane, item.first, item.first + len(item.entries) - 1, Reason.EXPIRED)
        return item

    def watch(to: int, item: FromServer) -> FromServer:
        if to == bob.me.device and isinstance(item, Answered) and isinstance(item.said, NotMember):
            refused.append(item)
        return item

    town.meddle = lose
    change(town, ada, group, SettingsChange(GroupSettings(receipts=GroupReceipts.NONE)))
    town.meddle = watch
    change(town, ada, group, Removal((bob.me.account,)))
    town.settle()
    assert len(refused) == 1
