"""An account moves to another device: what the old one had sealed for later does not end with it."""

from __future__ import annotations

from nightmail.client.events import Moved
from nightmail.model.records import Resealed
from nightmail.model.schedule_rows import ScheduleState
from tests.client.sealed_town import pass_time, said_by

from .town import a_town, cancels, history, own, schedules, until


def test_what_the_old_device_sealed_is_sealed_again_by_the_device_that_the_account_moved_to() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later", 60_000)
    town.settle()
    new = town.pair(ada, hand_over=True)
    new.connect()
    pass_time(town, 0, *[2_500] * 4)
    assert Moved(new.me.device) in new.told(Moved)
    assert [body.id for body in said_by(new, Resealed)] == [row.id]
    assert (own(new, row).by, own(new, row).is_stale) == (new.me.device, False)
    ada.cut()
    town.devices.remove(ada)
    until(town, row)
    assert (bob.heard(), history(new, bob)) == (["later"], [("later", "delivered")])


def test_only_what_the_old_device_sealed_is_sealed_again() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    by_phone, by_tablet = schedules(ada, bob, "by phone", 60_000), schedules(tablet, bob, "by tablet", 60_000)
    ended = schedules(ada, bob, "ended", 60_000)
    town.settle()
    cancels(ada, ended)
    town.settle()
    scheduling = tablet.machine.parts.scheduling
    assert scheduling is not None
    scheduling.adopt(ada.me.device)
    tablet.look()
    town.settle()
    assert [body.id for body in said_by(tablet, Resealed)] == [by_phone.id]
    assert [own(tablet, each).by for each in (by_phone, by_tablet)] == [tablet.me.device] * 2
    assert own(tablet, ended).state is ScheduleState.CANCELLED
