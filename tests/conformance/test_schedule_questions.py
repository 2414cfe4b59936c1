"""`Schedules`: what is asked about scheduled messages and dead letters, at the desk of one node and of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.desk import LoopDesk
from nightmail.engine.ports import Schedules
from nightmail.model.ids import SERVER, shard_of
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.records import (
    AnyBody,
    CallEnded,
    CallOutcome,
    CallScheduled,
    FoldRaised,
    ScheduleCancelled,
    Scheduled,
)
from nightmail.model.schedule_rows import PairContent, PairTarget, ScheduleState
from nightmail.model.words import Kind
from tests.engine.cluster.rig import SHARDS, Told, with_people
from tests.engine.rig import ALICE, BOB, PHONE, START, a_message, started

URL = "https://example.com/hook"


class Side:
    """One implementation, with Alice and Bob."""

    desk: Schedules
    say: Callable[[int, AnyBody], object]
    shard = 0
    """Of Alice."""

    def ask(self, question: Callable[..., None], *asked: Any) -> Any:
        answers: list[Any] = []
        question(*asked, answers.append)
        (answer,) = answers
        return answer


class Embedded(Side):
    def __init__(self) -> None:
        rig = started()
        rig.say(SERVER, FoldRaised(NEWEST_FOLD))
        self.desk = desk = LoopDesk(bytes, lambda: 0)
        desk.attend(rig.loop, Told())
        self.say = rig.say


class Clustered(Side):
    def __init__(self) -> None:
        cluster, node = with_people()
        cluster.announced.append(NEWEST_FOLD)
        cluster.wait(1_000)
        self.desk, self.shard = node.desk, shard_of(ALICE, SHARDS)
        self.say = node.say


@pytest.fixture(params=[Embedded, Clustered])
def side(request: pytest.FixtureRequest) -> Side:
    return request.param()


def wish(n: int) -> Scheduled:
    content = PairContent(1, a_message(n).envelopes, ())
    return Scheduled(
        f"{PHONE:x}:{START}:{n:05d}:later", bytes(16), Kind.TEXT, 0, START + 60_000, PairTarget(BOB), content
    )


def test_a_schedule_is_found_by_its_id_and_only_in_its_account(side: Side) -> None:
    side.say(PHONE, wish(1))
    seen = side.ask(side.desk.schedule, ALICE, wish(1).id)
    assert (seen.serial, seen.schedule.state) == (1, ScheduleState.PENDING)
    assert side.ask(side.desk.schedule, BOB, wish(1).id) is None
    assert side.ask(side.desk.schedule, ALICE, wish(2).id) is None


def test_schedules_are_listed_by_state_newest_first(side: Side) -> None:
    for n in (1, 2, 3):
        side.say(PHONE, wish(n))
    side.say(PHONE, ScheduleCancelled(ALICE, wish(2).id))
    listing = side.ask(side.desk.schedules, ALICE, ScheduleState.PENDING, 0)
    assert ([seen.serial for seen in listing.schedules], listing.before) == ([3, 1], 0)
    older = side.ask(side.desk.schedules, ALICE, None, 3)
    assert [seen.serial for seen in older.schedules] == [2, 1]


def test_dead_letters_are_counted_listed_and_shown(side: Side) -> None:
    ident = f"{PHONE:x}:{START}:00001:call"
    side.say(SERVER, CallScheduled(ALICE, ident, "", bytes(16), START, URL, "text/plain", b"content"))
    side.say(SERVER, CallEnded(ALICE, 1, 1, CallOutcome.REFUSED, "http_404"))
    assert side.ask(side.desk.letter_counts, side.shard) == {"webhook http_404": 1}
    listing = side.ask(side.desk.letters, side.shard, "webhook http_404", 0)
    (offset,) = listing.offsets
    letter = side.ask(side.desk.letter, side.shard, offset)
    assert (letter.original.msg_id, letter.original.recipient, letter.original.content) == (ident, URL, (b"content",))
    assert (letter.status, letter.is_replayable) == (LetterStatus.WAITING, True)
    assert side.ask(side.desk.letter, side.shard, offset + 100) is None
    assert side.ask(side.desk.letters, side.shard, "nothing", 0).offsets == []
