from __future__ import annotations

import pytest

from nightmail.model.ids import account_id, device_id
from nightmail.model.words import Lane
from sim.judges.history import Fate, History, Message
from sim.judges.story import FATES, FAULTS, LAST_LINES, MESSAGES, tell_story
from sim.world.world import World

ADA, BOB = account_id("ada"), account_id("bob")
PHONE, TABLET = device_id(ADA, 1), device_id(BOB, 1)


class Day:
    def __init__(self) -> None:
        self.world = World(1)
        self.history = History(self.world)
        self.history.names |= {PHONE: "ada.1", TABLET: "bob.1"}

    def write(self, n: int) -> Message:
        message = Message(f"{PHONE:x}:{n:05}", PHONE, BOB, Lane.NORMAL, n, None, 0)
        message.envelopes[1] = frozenset({TABLET})
        self.history.add(message)
        return message

    def wait(self, ms: int = 1_000) -> None:
        self.world.run_until(self.world.now + ms)

    def told(self, broken: str) -> list[str]:
        return tell_story(self.world, self.history, broken)


@pytest.fixture
def day() -> Day:
    return Day()


def test_what_became_of_the_message_that_was_named_is_told_with_the_faults_of_its_time(day: Day) -> None:
    day.world.hit("disk full for log-")
    day.wait(4_000)
    day.write(1)
    lost = day.write(2)
    day.wait()
    day.world.hit("failed sync lost data")
    day.history.note(lost.id, PHONE, "is accepted")
    day.wait()
    day.history.gaps[TABLET] = [Fate(day.world.now, TABLET, "hears that NORMAL 1 to 1 are gone: expired")]
    day.world.tell("checker", "nothing lost")
    assert day.told(f"nothing lost: {lost.id} never reached {TABLET:x}") == [
        f"what became of {lost.id}:",
        "    4.000  ada.1          is written, NORMAL 2 to bob",
        "    5.000  ada.1          is accepted",
        "    6.000  bob.1          hears that NORMAL 1 to 1 are gone: expired",
        "faults in that time:",
        "    5.000  disk           fails a sync, and lost data",
        "the last that happened:",
        "    6.000  checker        nothing lost",
    ]


def test_a_message_is_known_by_its_number_too(day: Day) -> None:
    message = day.write(3)
    assert day.told(f"bob read {message.key}, untold")[0] == f"what became of {message.id}:"


def test_what_happens_again_is_counted(day: Day) -> None:
    message = day.write(1)
    for _ in range(3):
        day.wait()
        day.history.note(message.id, PHONE, "is answered OutOfOrder")
    assert "    1.000  ada.1          is answered OutOfOrder (3 times)" in day.told(message.id)


def test_whatever_happened_the_story_stays_short(day: Day) -> None:
    messages = [day.write(n) for n in range(1, 10)]
    for nth in range(100):
        day.wait(4_000)
        day.world.hit("write failed")
        day.world.tell("ada", f"writes {nth}")
        for message in messages:
            day.history.note(message.id, PHONE, f"is sent the {nth}th time")
    story = day.told(" ".join(message.id for message in messages))
    assert len(story) == MESSAGES * (2 + FATES) + 2 + FAULTS + 1 + LAST_LINES
    assert "          … 80 more" in story
