"""Sending: in order, under one id and number, by the schedule, until it is answered."""

from __future__ import annotations

from nightmail.client.events import WaitingForNetwork
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Sent, Voided
from nightmail.model.refusals import (
    OutOfOrder,
    UnknownRecipient,
)
from nightmail.model.words import Lane
from tests.client.script import BOB, STEADY, TABLET, Script, accepted, connected, numbers


def test_no_more_than_the_window_waits_for_answers_and_it_opens_with_the_lowest() -> None:
    script = connected(window=3)
    for _ in range(5):
        script.write()
    sent = script.bodies()
    assert numbers(sent) == [1, 2, 3]
    first, second, third = script.asked
    assert script.answer(accepted(first.body)) != []
    assert numbers([ask.body for ask in script.asked]) == [4]
    script.asked = [third]
    assert script.accept() == []
    script.asked = [second]
    assert numbers(script.accept()) == [5]


def test_every_retry_has_the_same_id_number_and_tag() -> None:
    script = connected()
    script.write()
    (first,) = script.bodies()
    script.wait(6_000)
    (again,) = script.bodies()
    script.lose()
    script.now += 1
    (third,) = script.connect()
    assert first == again == third


def test_attempts_follow_the_schedule_and_after_three_failed_retries_the_app_is_told() -> None:
    script = connected()
    message = script.write()
    script.bodies()
    times: list[int] = []
    start = script.now
    for _ in range(200):
        script.wait(500)
        if script.bodies():
            times.append(script.now - start)
    waits = [b - a for a, b in zip([0, *times], times, strict=False)]
    assert waits == [5_000 + wait for wait in (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)]
    (told,) = script.told(WaitingForNetwork)
    assert told.message_ids == (message.id,)


def test_offline_the_app_is_told_too_and_a_restart_goes_on_trying() -> None:
    script = Script(limits=STEADY)
    message = script.write()
    script.wait(60_000)
    assert [event.message_ids for event in script.told(WaitingForNetwork)] == [(message.id,)]
    script.turn()
    again = Script(limits=STEADY, store=script.store)
    again.wait(60_000)
    assert [event.message_ids for event in again.told(WaitingForNetwork)] == [(message.id,)]
    assert numbers(again.connect()) == [1]


def test_a_reconnect_sends_everything_unanswered_at_once_and_in_order() -> None:
    script = connected()
    for _ in range(3):
        script.write()
    script.write(lane=Lane.HIGH)
    script.bodies()
    script.lose()
    assert numbers(script.connect()) == [1, 2, 3, 1]


def test_to_nobody_fails_at_once_and_its_number_is_voided_quietly_when_there_is_somebody() -> None:
    script = connected()
    script.lists[BOB] = (0, {})
    first, second = script.write(), script.write()
    assert script.bodies() == []
    assert script.state(first) == script.state(second) == ("failed", "unknown_recipient")
    script.wait(1_000)
    voids = script.bodies()
    assert [type(body) for body in voids] == [Voided, Voided]
    script.answer(UnknownRecipient(BOB), OutOfOrder(1))
    # Another try of the person's is answered at once, too, and does not wait behind the voids.
    third = script.write()
    assert numbers(script.bodies()) == [1, 2]
    script.answer(UnknownRecipient(BOB), OutOfOrder(1))
    assert script.state(third) == ("failed", "unknown_recipient")
    # They have joined: what was given up makes way.
    script.lists[BOB] = (1, {TABLET: 7})
    fourth = script.write()
    assert numbers(script.bodies()) == [1, 2, 3, 4]
    script.accept()
    assert script.state(fourth) == ("sent", "")
    assert script.store.outgoing() == []
    assert script.told(WaitingForNetwork) == []


def test_older_than_29_days_fails_and_the_stream_goes_on() -> None:
    script = Script(limits=STEADY)
    message = script.write()
    script.wait(29 * DAY_MS)
    assert script.state(message) == ("pending", "")
    script.wait(2)
    assert script.state(message) == ("failed", "too_old")
    young = script.write()
    void, sent = script.connect()
    assert isinstance(void, Voided)
    assert isinstance(sent, Sent)
    assert (void.id, sent.id) == (message.id, young.id)


def test_what_fits_in_no_frame_fails_instead_of_being_sent_forever() -> None:
    script = Script(limits=STEADY)
    script.connect(frame_bytes=10_000)
    message = script.write(b"x" * 20_000)
    (void,) = script.bodies()
    assert isinstance(void, Voided)
    assert script.state(message) == ("failed", "too_large")
