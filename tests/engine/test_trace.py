"""`trace`, as an operator would ask: through the loop, the checkpoints and the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.engine.ports import Rows
from nightmail.engine.sqlite import SqliteRows
from nightmail.engine.trace import trace_message
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Acked, AnyBody, Blocked, Envelope, Linked, Listed, Read, Record, Sent, Span
from nightmail.model.traces import Event, Trace
from nightmail.model.words import Kind, Lane, MessageState, Platform
from sim.judges.strict import StrictState
from tests.engine.rig import ALICE, BOB, PHONE, START, TABLET, a_person

NORMAL = Lane.NORMAL
LAPTOP, WATCH = device_id(ALICE, 2), device_id(BOB, 2)
CAROL, CAROLS = account_id("carol"), device_id(account_id("carol"), 1)


def sqlite_rows(folder: Path) -> Rows:
    return SqliteRows(folder, post=lambda job: job(), execute=lambda job: job(), entropy=bytes)


@pytest.fixture(params=[lambda _: MemoryRows(), sqlite_rows], ids=["memory", "sqlite"])
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Town]:
    made = Town(request.param(tmp_path))
    yield made
    made.rows.close()


class Town:
    """Alice and Bob with two devices each, and Carol. Each thing said is saved by itself, one second apart."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.now = rows, START - 100_000
        self.loop = Loop(MemoryLog(), rows, lambda: self.now, lambda _: None, new_state=StrictState)
        self.loop.recover()
        for handle in ("alice", "bob", "carol"):
            self.say(SERVER, a_person(handle))
        for device in (PHONE, TABLET):
            account = device >> 12
            self.say(device, Linked(account, 102, b"token 2".ljust(32), "second", Platform.CLI))
            self.say(device, Listed(account, 2, (device, device + 1), b"signed"))
        self.now = START

    def say(self, by: int, body: AnyBody) -> None:
        self.loop.submit(Record(by, 0, body))
        self.loop.flush()
        self.loop.save(at_once=True)
        self.now += 1_000

    def send(
        self, n: int = 1, *, of: str | None = None, life_ms: int = 0, to: tuple[int, ...] = (TABLET, WATCH)
    ) -> str:
        name = f"{PHONE:x}:{START}:{n:05d}:abc"
        seal = tuple(Envelope(device, 100 + (device & 0xFFF), b"sealed") for device in to)
        own = () if of else (Envelope(LAPTOP, 102, b"sealed"),)
        self.say(PHONE, Sent(BOB, NORMAL, n, 1, 0, name, bytes(16), Kind.TEXT, of, life_ms, 2, seal, own))
        return name

    def tick(self) -> None:
        self.loop.tick()
        self.loop.save(at_once=True)

    def life(self, name: str, since: int = 0) -> list[tuple[int, int, str]]:
        """(seconds after the start, device, what)."""
        found = trace_message(self.rows, name, since).events
        return [((event.at - START) // 1_000, event.device, event.what) for event in found]


def test_a_whole_life_with_copies(town: Town) -> None:
    name = town.send()
    town.say(TABLET, Acked(NORMAL, 1))
    town.say(LAPTOP, Acked(NORMAL, 1))
    town.say(TABLET, Read(ALICE, (Span(PHONE, NORMAL, 1, 1),)))
    assert town.life(name) == [
        (0, 0, "accepted"),
        (0, TABLET, "queued:1"),
        (0, WATCH, "queued:1"),
        (0, 0, "copied"),
        (0, LAPTOP, "queued:1"),
        (1, TABLET, "delivered"),
        (1, TABLET, "deleted"),
        (2, LAPTOP, "delivered"),
        (2, LAPTOP, "deleted"),
        (3, TABLET, "read"),
    ]
    states = {TABLET: MessageState.READ, WATCH: MessageState.SENT, LAPTOP: MessageState.DELIVERED}
    assert trace_message(town.rows, name).states == states


def test_who_is_connected_is_told_as_online_until_it_goes_or_the_server_begins_anew(town: Town) -> None:
    town.loop.note_connection(TABLET, here=True)
    town.loop.note_connection(LAPTOP, here=True)
    first, second = town.send(1), town.send(2)
    town.loop.note_connection(TABLET, here=False)
    third = town.send(3)
    town.loop.note_connection(SERVER, here=False)
    fourth = town.send(4)
    ways = [[what for _, device, what in town.life(name) if device] for name in (first, second, third, fourth)]
    assert ways == [
        ["online:1", "queued:1", "online:1"],
        ["online:2", "queued:2", "online:2"],
        ["queued:3", "queued:3", "online:3"],
        ["queued:4", "queued:4", "queued:4"],
    ]


def test_what_could_not_be_opened_and_was_sealed_again(town: Town) -> None:
    name = town.send()
    town.say(TABLET, Acked(NORMAL, 1, (1,)))
    town.send(2, of=name, to=(TABLET,))
    town.say(TABLET, Acked(NORMAL, 2))
    assert [event for event in town.life(name) if event[1] == TABLET] == [
        (0, TABLET, "queued:1"),
        (1, TABLET, "failed:undecryptable"),
        (1, TABLET, "deleted"),
        (2, TABLET, "queued:2"),
        (3, TABLET, "delivered"),
        (3, TABLET, "deleted"),
    ]


def test_a_message_that_nobody_fetched_in_time(town: Town) -> None:
    name = town.send(life_ms=5_000)
    town.now = START + 5_000
    town.tick()
    assert [event for event in town.life(name) if event[1] in (TABLET, WATCH)][2:] == [
        (5, TABLET, "failed:expired"),
        (5, TABLET, "deleted"),
        (5, WATCH, "failed:expired"),
        (5, WATCH, "deleted"),
    ]


def test_a_message_from_somebody_who_is_blocked(town: Town) -> None:
    town.say(TABLET, Blocked(BOB, ALICE, True))
    name = town.send()
    assert town.life(name) == [(1, 0, "blocked"), (1, 0, "copied"), (1, LAPTOP, "queued:1")]


def test_what_is_older_than_asked_for_is_not_told(town: Town) -> None:
    name = town.send()
    assert town.life(name, since=START + 1) == []
    assert len(town.life(name, since=START)) == 5


def test_what_was_forgotten_is_not_told(town: Town) -> None:
    name = town.send()
    town.rows.forget(START + 1)
    assert trace_message(town.rows, name) == Trace(name, [], {})


def test_each_event_is_told_once_however_many_devices_a_block_speaks_of(town: Town) -> None:
    """Everything is in one block of the log, which speaks of all devices."""
    town.loop.submit(Record(TABLET, 0, Acked(NORMAL, 1)))
    name = f"{PHONE:x}:{START}:00001:abc"
    seal = tuple(Envelope(device, 100 + (device & 0xFFF), b"sealed") for device in (TABLET, WATCH))
    message = Sent(BOB, NORMAL, 1, 1, 0, name, bytes(16), Kind.TEXT, None, 0, 2, seal, ())
    for by, body in ((PHONE, message), (TABLET, Acked(NORMAL, 1)), (WATCH, Acked(NORMAL, 1))):
        town.loop.submit(Record(by, 0, body))
    town.loop.flush()
    town.loop.save(at_once=True)
    events = trace_message(town.rows, name).events
    assert len(events) == len({(event.device, event.what) for event in events}) == 7


def test_a_message_of_somebody_else_is_not_told(town: Town) -> None:
    town.send()
    assert trace_message(town.rows, f"{CAROLS:x}:{START}:00001:abc").events == []
    assert trace_message(town.rows, f"{PHONE:x}:{START}:00002:abc").events == []


def test_what_is_no_id_is_refused(town: Town) -> None:
    with pytest.raises(ValueError, match="not a message id"):
        trace_message(town.rows, "hello")


def test_no_content_is_in_the_delivery_log(town: Town) -> None:
    town.send()
    assert [block for block in town.rows.recall((PHONE,), 0) if b"sealed" in block] == []
    assert trace_message(town.rows, town.send(2)).events[0] == Event(START + 1_000, 0, "accepted")
