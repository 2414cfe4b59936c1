"""What the golden logs tell of messages for later, of calls to webhooks, and of dead letters that are settled.

Knows:   a town in which nobody of these people lives yet.
"""

from __future__ import annotations

from nightmail.model.effects import Call
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import (
    Acked,
    Blocked,
    CallOutcome,
    CallScheduled,
    ClockSetBack,
    Closed,
    Discarded,
    KeysAsked,
    LettersSettled,
    Read,
    Record,
    Replayed,
    Resealed,
    ScheduleCancelled,
    SchedulesAsked,
    Span,
    Unlinked,
    encode_record,
)
from nightmail.model.roster import Removal
from nightmail.model.schedule_rows import SCHEDULED_FROM
from nightmail.model.words import Lane
from tests.core.group_world import GROUP
from tests.core.schedule_world import URL, ScheduleWorld, call_id
from tests.core.world import Person, published

SLOT, SECOND, MINUTE, HOUR = 50, 1_000, 60_000, 3_600_000
SOME_GROUP = GROUP + 10
OK, AGAIN, NO = CallOutcome


def tell_of_schedules(town: ScheduleWorld) -> None:
    una, vic, wes = town.join("una", 2), town.join("vic", 2), town.join("wes")
    town.limit()
    _into_conversations(town, una, vic, wes)
    _sealed_again(town, una, vic)
    _into_a_group(town, una, vic, wes)
    _calls(town, una)
    _letters(town, una)
    _by_a_wrong_clock(town, una, vic)
    _bounds(town, una, vic)
    _endings(town, una, vic, wes)


def _into_conversations(town: ScheduleWorld, una: Person, vic: Person, wes: Person) -> None:
    """Taken, repeated, cancelled, fired, delivered and read; to oneself, and to somebody who blocks."""
    first = town.scheduled(una[1], vic, 2 * SECOND, name="a")
    town.do(una[1], first)
    town.do(una[1], first)
    town.do(una[1], town.scheduled(una[1], vic, SECOND, text="another", name="a"))
    town.do(una[1], town.scheduled(una[1], vic, 3 * SECOND, name="b", life_ms=MINUTE))
    town.schedule(una[2], una, SECOND, name="to myself")
    town.schedule(una[1], wes, SECOND, name="blocked")
    town.do(wes[1], Blocked(wes.account, una.account, on=True))
    town.schedule(una[1], vic, HOUR, name="never")
    for _ in range(2):
        town.cancel(una[2], "never", una[1])
    town.cancel(una[1], "unknown")
    town.do(vic[1], ScheduleCancelled(una.account, town.id(una[1], "b")))
    town.reseal(una[1], vic, name="never")
    town.send(una[1], vic, 1, text="meanwhile")
    for ms in (SECOND, SECOND, SECOND):
        town.wait(ms)
    town.cancel(una[1], "a")
    town.do(una[2], SchedulesAsked((1, 2, 5, 99)))
    town.do(una[1], KeysAsked(vic[1]))
    town.do(vic[1], published(vic[1], range(2, 4), range(2, 4)))
    town.do(una[1], KeysAsked(vic[1]))
    town.do(una[1], KeysAsked(vic[1] + 9))
    box = town.mailbox(vic[1])
    assert box is not None
    town.do(vic[1], Acked(Lane.NORMAL, box.lanes[Lane.NORMAL].head))
    town.do(vic[1], Read(una.account, (Span(una[1], Lane.NORMAL, SCHEDULED_FROM + 1, SCHEDULED_FROM + 9),)))
    town.wait(MINUTE)


def _sealed_again(town: ScheduleWorld, una: Person, vic: Person) -> None:
    """Before its time, too late for its time, by another device, and never; and by a device that is gone."""
    for name in ("in time", "late", "by another", "never sealed"):
        town.schedule(una[1], vic, MINUTE, name=name)
    third = town.link(una)
    town.schedule(third, vic, MINUTE, name="by one that is gone")
    town.do(una[1], Unlinked(third))
    town.link(vic)
    town.reseal(una[1], vic, name="in time")
    town.do(una[1], Resealed(town.id(una[1], "late"), town.group_content()))
    town.wait(MINUTE)
    town.reseal(una[1], vic, name="late")
    town.reseal(una[2], vic, name="by another", maker=una[1])
    town.reseal(una[1], vic, name="unknown")
    town.wait(DAY_MS)
    town.reseal(una[1], vic, name="never sealed")


def _into_a_group(town: ScheduleWorld, una: Person, vic: Person, wes: Person) -> None:
    """Among other messages; when the group has moved on; by somebody who is no member any more; into no group."""
    town.make(una[1], una, vic, group=SOME_GROUP)
    for name in ("x", "y"):
        town.do(una[1], town.group_scheduled(una[1], MINUTE, SOME_GROUP, name))
    town.write(una[1], 1, group=SOME_GROUP, head=town.heads[SOME_GROUP])
    town.wait(MINUTE + SLOT)
    town.do(una[1], town.group_scheduled(una[1], MINUTE, SOME_GROUP, "z"))
    town.do(vic[1], town.group_scheduled(vic[1], 2 * MINUTE, SOME_GROUP, "removed"))
    town.do(wes[1], town.group_scheduled(wes[1], MINUTE, SOME_GROUP + 2, "no group"))
    town.change(una[1], Removal((vic.account,)), group=SOME_GROUP)
    town.wait(MINUTE + SLOT)
    town.do(una[1], town.group_resealed(una[1], "z", SOME_GROUP))
    town.wait(MINUTE + SLOT)


def _called(town: ScheduleWorld, ms: int) -> list[Call]:
    """What is called when so much time has passed, and the moment that it ends in."""
    town.wait(ms + SLOT)
    return town.calls()


def _calls(town: ScheduleWorld, una: Person) -> None:
    """Delivered; repeated with a key; asked for again; failing for a while; too late to be cancelled."""
    town.schedule_call(una, SECOND, name=call_id("call one"), key="a key")
    town.schedule_call(una, SECOND, name=call_id("call two"), key="a key")
    town.schedule_call(una, SECOND, name=call_id("call two"), key="a key", content=b"another")
    town.schedule_call(una, HOUR, name=call_id("call three"))
    town.do(una[1], ScheduleCancelled(una.account, call_id("call three")))
    (call,) = _called(town, SECOND)
    town.do(una[1], ScheduleCancelled(una.account, call_id("call one")))
    (again,) = _called(town, 30 * SECOND)
    town.end_call(again, AGAIN, "http_503", retry_after_ms=MINUTE)
    town.end_call(call, AGAIN, "http_503")
    (call,) = _called(town, MINUTE)
    town.end_call(call, OK)
    town.end_call(call, OK)


def _failed(town: ScheduleWorld, una: Person, *names: str) -> list[Call]:
    for name in names:
        town.schedule_call(una, SECOND, name=call_id(name))
    calls = _called(town, SECOND)
    for call in calls:
        town.end_call(call, NO, "http_404")
    return calls


def _letter(town: ScheduleWorld, una: Person, name: str) -> int:
    seen = town.one(una, call_id(name))
    assert seen is not None
    return seen.schedule.letter


def _letters(town: ScheduleWorld, una: Person) -> None:
    """Replayed, discarded, several at once, delivered after all, left to time."""
    names = ("replayed", "discarded", "several", "after all", "left")
    calls = _failed(town, una, *names)
    letters = [_letter(town, una, name) for name in names]
    for kind, letter in ((Replayed, 0), (Replayed, 0), (Discarded, 1), (Discarded, 1)):
        town.command(una, kind(letters[letter]))
    town.command(una, Replayed(1 << 40))
    town.command(una, LettersSettled((letters[0], letters[2], letters[2], 1 << 40), replay=True))
    for call in (*town.calls(), calls[3]):
        town.end_call(call, OK)
    town.schedule_call(una, SECOND, name=call_id("six times"))
    for ms in (SECOND, 2 * SECOND, 3 * SECOND, 5 * SECOND, 9 * SECOND, 18 * SECOND):
        for call in _called(town, ms):
            if call.id == "six times":
                town.end_call(call, AGAIN, "timeout")
    for _ in range(3):
        town.wait(30 * DAY_MS)


def _by_a_wrong_clock(town: ScheduleWorld, una: Person, vic: Person) -> None:
    """What is planned, called and buried while a clock is ten days ahead."""
    town.schedule(una[1], vic, 12 * DAY_MS, name="before the wrong clock")
    town.wait(10 * DAY_MS)
    town.schedule_call(una, SECOND, name=call_id("meanwhile"))
    town.wait(SECOND)
    _failed(town, una, "buried meanwhile")
    wrong, town.now = town.now, town.now - 10 * DAY_MS
    for node in list(town.nodes.values()):
        node.fold(town.now, encode_record(Record(SERVER, 0, ClockSetBack(town.now, wrong))))
    for call in _called(town, MINUTE):
        town.end_call(call, OK)
    for ms in (12 * DAY_MS, 18 * DAY_MS, 30 * DAY_MS):
        town.wait(ms)


def _bounds(town: ScheduleWorld, una: Person, vic: Person) -> None:
    """Too late, too early, too many, too much."""
    town.schedule(una[1], vic, -2 * MINUTE, name="past")
    town.schedule(una[1], vic, 30 * DAY_MS, name="far")
    town.schedule_call(una, 366 * DAY_MS, name=call_id("far, too"))
    town.limit(schedules=1)
    town.schedule(una[1], vic, HOUR, name="one")
    town.schedule(una[1], vic, HOUR, name="two")
    town.limit(schedule_calls=0)
    town.schedule_call(una, HOUR, name=call_id("no calls"))
    town.limit(schedule_bytes=10)
    town.schedule(una[1], vic, HOUR, name="too much")
    town.limit(schedules_kept_ms=0)
    town.wait(HOUR)
    town.wait(2 * MINUTE)
    town.limit()


def _endings(town: ScheduleWorld, una: Person, vic: Person, wes: Person) -> None:
    """Accounts that are closed: of the author, and of somebody who is written to."""
    town.schedule(una[1], vic, MINUTE, name="to nobody")
    town.schedule(wes[1], una, HOUR, name="of nobody")
    town.schedule_call(wes, HOUR, name=call_id("of nobody, too"))
    town.do(SERVER, Closed(vic.account))
    town.do(SERVER, Closed(wes.account))
    town.do(SERVER, CallScheduled(wes.account, call_id("closed"), "", bytes(16), town.now, URL, "text/plain", b""))
    town.wait(MINUTE)
    town.wait(DAY_MS)
    town.wait(8 * DAY_MS)
