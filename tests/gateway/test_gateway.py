"""Which devices are connected, and what each of them is told."""

from __future__ import annotations

from nightmail.engine.trace import trace_message
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.notes import ConnectionChanged
from nightmail.model.records import Acked, Closed
from nightmail.model.words import Lane, Reason
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.items import Ask, Drained, Entries, Gone, Goodbye, Ping, Pong
from tests.gateway.rig import BEN, PHONE, TABLET, a_message, a_town, people

# --- what the delivery log is told ------------------------------------------------------------


def test_of_two_messages_the_one_to_a_connected_device_is_told_as_online_and_the_other_as_queued() -> None:
    town = a_town()
    phone = town.connect()
    (online,) = town.write(1)
    phone.session.lost()
    (queued,) = town.write(1, first=2)
    town.loop.save(at_once=True)
    ways = [trace_message(town.rows, sent.id).events[1].what for sent in (online, queued)]
    assert ways == ["online:1", "queued:2"]


def test_a_device_whose_newer_connection_displaced_an_older_one_is_still_there() -> None:
    town = a_town()
    older, _ = town.connect(), town.connect()
    older.session.lost()
    (sent,) = town.write(1)
    town.loop.save(at_once=True)
    assert trace_message(town.rows, sent.id).events[1].what == "online:1"


def test_a_connection_costs_two_lines_and_a_message_none() -> None:
    town = a_town()
    town.loop.state.notes.clear()
    phone = town.connect()
    town.write(3)
    phone.session.lost()
    lines = [note for note in town.loop.state.notes if isinstance(note, ConnectionChanged)]
    assert lines == [ConnectionChanged(town.clock, TABLET, True), ConnectionChanged(town.clock, TABLET, False)]


# --- displacement -----------------------------------------------------------------------------


def test_a_newer_connection_of_the_same_device_displaces_the_older_one() -> None:
    town = a_town()
    older = town.connect()
    newer = town.connect()
    end = CloseCode.DISPLACED, SENTENCES[CloseCode.DISPLACED]
    assert (older.link.closed, older.goodbye) == (end, Goodbye(*end, 0))
    assert (newer.link.closed, town.gateway.connections, town.gateway.devices) == (None, 1, 1)
    assert town.registry.seat_of(TABLET, town.pace) == newer.session.seat


def test_what_arrives_goes_to_the_newer_connection_only() -> None:
    town = a_town()
    older, newer = town.connect(), town.connect()
    older.link.take()
    town.write(1)
    assert (older.take(), newer.numbers()) == ([], [1])


def test_the_older_connection_going_away_late_does_not_unseat_the_newer_one() -> None:
    town = a_town()
    older, newer = town.connect(), town.connect()
    older.session.lost()
    town.write(1)
    assert newer.numbers() == [1]
    assert town.registry.seat_of(TABLET, town.pace) == newer.session.seat


def test_what_the_older_connection_had_not_acknowledged_comes_on_the_newer_one() -> None:
    town = a_town()
    older = town.connect()
    town.write(3)
    assert older.numbers() == [1, 2, 3]
    newer = town.stranger()
    newer.hello(normal=1)
    assert newer.numbers() == [2, 3]


def test_a_stranger_with_a_wrong_token_displaces_nobody() -> None:
    town = a_town()
    ben = town.connect()
    thief = town.stranger()
    thief.hello(token=b"guessed")
    town.turn()
    assert (ben.link.closed, town.gateway.devices) == (None, 1)


def test_connections_of_one_device_that_come_at_once_leave_one() -> None:
    town = a_town()
    crowd = [town.stranger() for _ in range(50)]
    for each in crowd:
        each.hello()
    town.turn()
    assert [each.link.closed is None for each in crowd] == [False] * 49 + [True]
    assert (town.gateway.connections, town.gateway.counters.displaced) == (1, 49)


# --- removal ----------------------------------------------------------------------------------


def test_an_account_that_ends_takes_its_connections_with_it_and_nobody_elses() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ben.ask(Closed(BEN))
    town.turn()
    assert (ada.link.closed, ben.link.closed) == (None, (CloseCode.REMOVED, SENTENCES[CloseCode.REMOVED]))


# --- stopping ---------------------------------------------------------------------------------


def test_a_server_that_stops_sends_everybody_elsewhere_one_after_the_other() -> None:
    town = a_town(GatewayLimits(stop_ms=1_000))
    phones = [town.connect(device) for device in people(town, 10)]
    town.gateway.stop(town.pace)
    left: list[int] = []
    for _ in range(5):
        town.wait(200)
        left.append(town.gateway.connections)
    end = CloseCode.DRAINING, SENTENCES[CloseCode.DRAINING]
    assert left == [7, 5, 3, 1, 0]
    assert [phone.link.closed for phone in phones] == [end] * 10
    assert [phone.goodbye for phone in phones] == [Goodbye(*end, 0)] * 10
    assert town.gateway.stopped


def test_a_server_that_stops_lets_nobody_in() -> None:
    town = a_town()
    town.gateway.stop(town.pace)
    assert town.gateway.admit() > 0


def test_what_was_asked_while_the_server_stops_is_answered_or_can_be_asked_again() -> None:
    town = a_town(GatewayLimits(stop_ms=1))
    ada = town.connect(PHONE)
    ada.ask(a_message(1))
    town.turn()
    town.gateway.stop(town.pace)
    town.wait(20)
    answers = [type(item).__name__ for item in ada.link.take()]
    assert answers == ["Answered", "Goodbye"]
    assert town.gateway.stopped


# --- counting ---------------------------------------------------------------------------------


def test_what_comes_and_goes_is_counted() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.ask(a_message(1), a_message(2))
    town.turn()
    ben.say(Ask(1, Acked(Lane.NORMAL, 2)))
    ben.take()
    counters = town.gateway.counters
    assert (counters.connected, counters.submitted, counters.closed) == (2, 3, 0)
    frames, size = (len(ada.link.sizes) + len(ben.link.sizes), sum(ada.link.sizes + ben.link.sizes))
    assert (counters.frames_out, counters.bytes_out) == (frames, size)


def test_a_gateway_nobody_talks_to_comes_to_rest() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    assert ben.numbers() == [1, 2, 3]
    ben.ack(3)
    ben.take()
    town.wait(1_000)
    assert not town.turn_once()
    ben.say(Ping(1))
    assert ben.take() == [Pong(1, town.clock)]


def test_a_cursor_ahead_of_the_mailbox_harms_nobody_but_whoever_says_it() -> None:
    town = a_town()
    town.write(3)
    ben = town.stranger()
    ben.hello(normal=(1 << 53) - 1)
    assert ben.take()[1:] == [Drained((1 << 53) - 1, 0, 0)]
    honest = town.stranger()
    honest.hello()
    assert honest.numbers() == [1, 2, 3]


def test_a_device_that_forgot_what_it_acknowledged_hears_that_it_is_gone_and_goes_on() -> None:
    town = a_town()
    town.write(3)
    ben = town.connect()
    ben.ack(2)
    town.turn()
    restored = town.stranger()
    restored.hello()
    town.turn()
    _, gone, entries, drained = restored.take()
    assert gone == Gone(Lane.NORMAL, 1, 2, Reason.ACKNOWLEDGED)
    assert isinstance(entries, Entries)
    assert entries.first == 3
    assert drained == Drained(3, 0, 0)
