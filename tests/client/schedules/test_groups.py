from __future__ import annotations

from nightmail.e2ee.content import Content
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Resealed
from nightmail.model.roster import GroupSettings, Removal
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind
from tests.client.sealed_town import pass_time, said_by

from .town import (
    a_group,
    a_town,
    add,
    cancels,
    change,
    history,
    own,
    schedules,
    shown,
    states,
    texts,
    until,
)


def test_it_is_shown_to_everybody_in_the_group_once_and_ticked() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    group = a_group(town, ada, bob, cleo)
    row = schedules(ada, group, "later")
    town.settle()
    until(town, row, -1)
    assert texts(bob, group) == []
    until(town, row)
    assert [texts(each, group) for each in (ada, bob, cleo)] == [["later"]] * 3
    assert [len(shown(each, row)) for each in (ada, bob, cleo)] == [1, 1, 1]
    message = ada.store.message(row.id)
    assert message is not None
    assert message.group_seq > 0
    bob.machine.mark_read(group, town.now)
    bob.look()
    pass_time(town, 2_000, 2_000)
    assert history(ada, group) == [("later", "read")]


def test_it_is_delivered_while_its_author_is_off_in_order_with_later_messages() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    group = a_group(town, ada, bob, cleo)
    row = schedules(ada, group, "second", DAY_MS)
    town.settle()
    ada.machine.write(group, Content(Kind.TEXT, "first"), town.now)
    ada.look()
    town.settle()
    ada.cut()
    until(town, row)
    assert texts(bob, group) == texts(cleo, group) == ["first", "second"]
    ada.connect()
    town.settle()
    assert texts(ada, group) == ["first", "second"]
    assert states(ada, row) == ["pending", "delivered"]


def test_the_own_devices_of_its_author_show_it_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    group = a_group(town, ada, bob)
    row = schedules(ada, group, "later")
    town.settle()
    assert own(tablet, row).to == group
    until(town, row)
    assert texts(tablet, group) == texts(ada, group) == texts(bob, group) == ["later"]
    assert [len(shown(each, row)) for each in (ada, tablet, bob)] == [1, 1, 1]
    assert own(tablet, row).state is ScheduleState.DELIVERED


def test_a_newcomer_reads_it_because_it_is_sealed_again() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    group = a_group(town, bob, ada)
    row = schedules(ada, group, "later", 120_000)
    town.settle()
    add(town, bob, group, cleo)
    until(town, row)
    pass_time(town, 1_000)
    assert texts(bob, group) == texts(cleo, group) == ["later"]
    assert said_by(ada, Resealed) != []


def test_who_was_removed_cannot_read_it() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    group = a_group(town, ada, bob, cleo)
    row = schedules(ada, group, "later", 120_000)
    town.settle()
    change(town, ada, group, Removal((cleo.me.account,)))
    until(town, row)
    pass_time(town, 1_000)
    assert (texts(bob, group), texts(cleo, group)) == (["later"], [])


def test_a_new_device_of_a_member_reads_it() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    group = a_group(town, ada, bob)
    row = schedules(ada, group, "later", 120_000)
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    until(town, row)
    pass_time(town, 2_000, 2_000)
    assert texts(bob, group) == texts(laptop, group) == ["later"]


def test_another_own_device_seals_it_again_with_its_own_chain() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    group = a_group(town, bob, ada)
    row = schedules(ada, group, "later", 120_000)
    town.settle()
    ada.cut()
    add(town, bob, group, cleo)
    until(town, row)
    pass_time(town, 1_000, 1_000)
    assert texts(bob, group) == texts(cleo, group) == texts(tablet, group) == ["later"]
    ada.connect()
    town.settle()
    assert texts(ada, group) == ["later"]
    assert [len(shown(each, row)) for each in (ada, tablet, bob, cleo)] == [1, 1, 1, 1]


def test_who_is_no_member_any_more_hears_that_it_failed() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    group = a_group(town, ada, bob)
    row = schedules(bob, group, "later")
    town.settle()
    change(town, ada, group, Removal((bob.me.account,)))
    until(town, row)
    assert (texts(ada, group), states(bob, row)[-1]) == ([], "failed (not_member)")


def test_a_cancelled_one_is_never_shown() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    group = a_group(town, ada, bob)
    row = schedules(ada, group, "later")
    town.settle()
    cancels(ada, row)
    town.settle()
    until(town, row, DAY_MS)
    assert (texts(bob, group), states(ada, row)[-1]) == ([], "cancelled")


def test_the_timer_of_the_group_counts_from_its_delivery() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    group = a_group(town, ada, bob, settings=GroupSettings(timer_ms=60_000))
    row = schedules(ada, group, "later", DAY_MS)
    town.settle()
    until(town, row)
    bob.machine.mark_read(group, town.now)
    bob.look()
    pass_time(town, 50_000)
    assert texts(bob, group) == ["later"]
    pass_time(town, 12_000)
    assert texts(bob, group) == []


def test_written_when_nobody_has_the_chain_yet_it_waits_for_that() -> None:
    town, [ada, bob, cleo] = a_town("ada", "bob", "cleo")
    group = a_group(town, ada, bob, cleo)
    ada.cut()
    rows = [schedules(bob, group, f"{n}", 60_000) for n in range(3)]
    assert all(own(bob, row).serial == 0 for row in rows)
    town.settle()
    ada.connect()
    town.settle()
    until(town, rows[-1])
    assert sorted(texts(ada, group)) == sorted(texts(cleo, group)) == ["0", "1", "2"]
