"""Acknowledgements that somebody waits for."""

from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.records import Acked, Read, Span
from nightmail.model.refusals import AckAboveHead, Overloaded
from nightmail.model.words import Lane
from tests.client.script import BOB, TABLET, an_entry, connected, entries


def test_what_was_received_is_confirmed_when_the_server_has_answered_its_ack() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.machine.confirm(script.now)
    assert script.bodies() == [Acked(Lane.NORMAL, 2)]
    assert not script.machine.is_confirmed
    script.answer(Done())
    assert script.machine.is_confirmed
    script.say(entries(3, an_entry(3)))
    assert not script.machine.is_confirmed
    script.wait(script.limits.ack_ms)
    assert script.bodies() == [Acked(Lane.NORMAL, 3)]
    script.answer(Done())
    assert script.machine.is_confirmed


def test_what_was_read_is_confirmed_when_the_server_has_answered_its_read_mark() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.machine.confirm(script.now)
    script.bodies()
    script.answer(Done())
    script.machine.mark_read(BOB, script.now)
    assert script.bodies() == [Read(BOB, (Span(TABLET, Lane.NORMAL, 1, 1),))]
    assert not script.machine.is_confirmed
    script.answer(Done())
    assert script.machine.is_confirmed


def test_an_ack_that_the_server_could_not_take_is_repeated_until_it_is_confirmed() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.machine.confirm(script.now)
    script.bodies()
    script.answer(Overloaded())
    assert not script.machine.is_confirmed
    script.wait(script.limits.backoff_ms_max)
    assert script.bodies() == [Acked(Lane.NORMAL, 1)]
    script.answer(Done())
    assert script.machine.is_confirmed


def test_a_lost_connection_delays_the_confirmation() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.machine.confirm(script.now)
    script.lose()
    assert not script.machine.is_confirmed
    assert script.connect() == [Acked(Lane.NORMAL, 1)]
    script.answer(Done())
    assert script.machine.is_confirmed


def test_nobody_waits_for_a_server_that_knows_less_than_this_device() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.machine.confirm(script.now)
    script.bodies()
    script.answer(AckAboveHead(0))
    assert script.machine.is_confirmed
