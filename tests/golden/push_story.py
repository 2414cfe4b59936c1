"""What the golden logs tell of devices that sleep: tokens, wakes, and what becomes of pushes.

Knows:   a town in which nobody of these people lives yet.
"""

from __future__ import annotations

from nightmail.core.pushes.reading import needs_push, push_seen
from nightmail.model.ids import SERVER, account_of
from nightmail.model.limits import DAY_MS
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import (
    Acked,
    Discarded,
    GroupMarked,
    Pushed,
    PushOutcome,
    PushRemoved,
    PushSet,
    Record,
    Replayed,
    Unlinked,
    encode_record,
)
from nightmail.model.rows import Kept
from nightmail.model.words import Kind, Lane, PushPlatform
from tests.core.group_world import GROUP
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import Person

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
OK, AGAIN, NO, GONE = PushOutcome
SOME_GROUP = GROUP + 20


def tell_of_pushes(town: ScheduleWorld) -> None:
    kim, lou = town.join("kim", 2), town.join("lou", 2)
    town.limit()
    _tokens(town, kim, lou)
    _repeats(town, kim, lou)
    _failures(town, kim, lou)
    _letters(town, kim, lou)
    _marks(town, lou)
    _ends(town, lou)


def _set(town: ScheduleWorld, device: int, token: str) -> None:
    town.do(device, PushSet(PushPlatform.UNIFIEDPUSH, f"https://push.example/{token}"))


def _seen(town: ScheduleWorld, device: int) -> PushSeen:
    node = town.of(account_of(device))
    node.load(lambda state: needs_push(state, device))
    seen = push_seen(node.state, device)
    assert seen is not None
    return seen


def _end(town: ScheduleWorld, seen: PushSeen, outcome: PushOutcome, error: str = "", asked_ms: int = 0) -> None:
    town.do(SERVER, Pushed(seen.device, seen.since, seen.woke_at, seen.attempt, outcome, error, asked_ms))


def _tokens(town: ScheduleWorld, kim: Person, lou: Person) -> None:
    """Set before and after something waits, again, replaced while a push is under way, gone, removed."""
    _set(town, lou[1], "a")
    _set(town, lou[1], "a")
    town.send(kim[1], lou, 1)
    _set(town, lou[2], "b")
    old = _seen(town, lou[1])
    _set(town, lou[1], "c")
    _end(town, old, GONE, "http_410")
    _end(town, _seen(town, lou[2]), GONE, "http_410")
    _end(town, _seen(town, lou[1]), OK)
    town.do(kim[1], PushRemoved())
    town.do(kim[1] + 7, PushRemoved())
    _set(town, lou[2], "d")
    town.do(lou[2], PushRemoved())


def _repeats(town: ScheduleWorld, kim: Person, lou: Person) -> None:
    """Asked again where nobody tells, repeated three times, drained, and begun again at once."""
    town.do(lou[1], Acked(Lane.NORMAL, 1))
    town.send(kim[1], lou, 2)
    town.wait(20 * SECOND)
    _end(town, _seen(town, lou[1]), OK)
    _end(town, _seen(town, lou[1]), OK)
    for ms in (15 * MINUTE, 45 * MINUTE, 5 * HOUR):
        town.wait(ms)
        _end(town, _seen(town, lou[1]), OK)
    town.wait(DAY_MS)
    town.do(lou[1], Acked(Lane.NORMAL, 2))
    town.do(kim[1], town.sent(kim[1], lou, 3, kind=Kind.CONTROL))
    for n in (4, 5):
        town.send(kim[1], lou, n)
        town.do(lou[1], Acked(Lane.NORMAL, n))
    town.wait(MINUTE)


def _failures(town: ScheduleWorld, kim: Person, lou: Person) -> None:
    """Tried again, with a delay that was asked for, and given up; an outcome that comes twice, or too late."""
    town.send(kim[1], lou, 6)
    first = _seen(town, lou[1])
    for asked_ms in (0, 9 * SECOND, 2 * HOUR, 0):
        seen = _seen(town, lou[1])
        _end(town, seen, AGAIN, "http_503", asked_ms)
        _end(town, seen, AGAIN, "http_503", asked_ms)
        town.wait(10 * SECOND)
        town.wait(HOUR)
    _end(town, first, OK)


def _letters(town: ScheduleWorld, kim: Person, lou: Person) -> None:
    """Replayed, discarded, settled by a success, and settled by time."""
    for n, ending in enumerate(("replayed", "discarded", "delivered", "expired"), 7):
        town.do(lou[1], Acked(Lane.NORMAL, n - 1))
        town.send(kim[1], lou, n)
        _end(town, _seen(town, lou[1]), NO, "http_400")
        letter = town.of(lou.account).row(Kept.PUSH, lou[1]).letter
        if ending in ("replayed", "discarded"):
            body = Replayed(letter) if ending == "replayed" else Discarded(letter)
            node = town.of(lou.account)
            node.fold(town.now, encode_record(Record(SERVER, 0, body)))
        town.wait(15 * MINUTE)
        if ending == "delivered":
            _end(town, _seen(town, lou[1]), OK)
    town.wait(31 * DAY_MS)
    town.wait(31 * DAY_MS)


def _marks(town: ScheduleWorld, lou: Person) -> None:
    """A group's log has something: that wakes, once."""
    node = town.of(lou.account)
    for seq in (1, 2):
        marked = GroupMarked(SOME_GROUP, seq, ((lou.account, 1),), ())
        node.fold(town.now, encode_record(Record(SERVER, 0, marked)))
    town.wait(20 * SECOND)


def _ends(town: ScheduleWorld, lou: Person) -> None:
    seen = _seen(town, lou[1])
    town.do(SERVER, Unlinked(lou[1]))
    _end(town, seen, NO, "http_400")
    town.wait(HOUR)
