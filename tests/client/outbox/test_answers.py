"""What the server answers, and what each answer and each refusal leads to."""

from __future__ import annotations

import pytest

from nightmail.client.events import MessageFailed, SentAck
from nightmail.client.messages import DeviceDelivery, Tick
from nightmail.client.outbox.answers import RENUMBERED_MAX
from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.records import Sent, Voided
from nightmail.model.refusals import (
    DeadLettered,
    DiskFull,
    IdReused,
    MailboxFull,
    Malformed,
    NumberVoided,
    OutOfOrder,
    Overloaded,
    RateLimited,
    StaleDevices,
    Unavailable,
)
from nightmail.model.words import Lane
from nightmail.wire.items import Answered
from tests.client.script import BOB, PHONE, STEADY, TABLET, connected, numbers


def test_sent_is_told_with_the_servers_stamp() -> None:
    script = connected()
    message = script.write()
    script.bodies()
    script.accept()
    assert script.state(message) == ("sent", "")
    (ack,) = script.told(SentAck)
    found = script.store.message(message.id)
    assert found is not None
    assert (ack.message_id, ack.at) == (message.id, found.at)
    assert found.places == {TABLET: DeviceDelivery(Tick.SENT)}
    assert script.store.outgoing() == []


@pytest.mark.parametrize("refusal", [MailboxFull(1), Overloaded(), DiskFull(), Unavailable(), RateLimited(10)])
def test_what_may_succeed_later_is_tried_again_from_the_lowest_number(refusal: Said) -> None:
    script = connected()
    script.write()
    script.write()
    script.bodies()
    assert script.answer(refusal, OutOfOrder(1)) == []
    script.wait(999)
    assert script.bodies() == []
    script.wait(1)
    assert numbers(script.bodies()) == [1, 2]


def test_the_server_may_ask_for_a_longer_wait_than_the_schedule_has() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.answer(RateLimited(4_000))
    script.wait(3_999)
    assert script.bodies() == []
    script.wait(1)
    assert numbers(script.bodies()) == [1]


def test_a_void_that_is_too_fast_waits_and_what_stands_behind_it_follows() -> None:
    script = connected()
    first, second = script.write(), script.write()
    script.bodies()
    script.machine.give_up(first.id, script.now)
    (void,) = script.bodies()
    assert isinstance(void, Voided)
    script.asked = script.asked[-1:]
    assert script.answer(RateLimited(4_000)) == []
    script.wait(3_999)
    assert script.bodies() == []
    assert script.state(first) == ("pending", "")
    script.wait(1)
    again = script.bodies()
    assert (type(again[0]), numbers(again)) == (Voided, [1, 2])
    script.accept()
    assert (script.state(first), script.state(second)) == (("failed", "given_up"), ("sent", ""))


def test_what_came_too_early_is_sent_again_soon() -> None:
    script = connected()
    script.write()
    script.write()
    script.bodies()
    script.asked = script.asked[1:]
    script.answer(OutOfOrder(1))
    script.wait(STEADY.soon_ms)
    assert numbers(script.bodies()) == [1, 2]


def test_a_number_that_the_server_lost_and_nobody_remembers_is_voided_so_that_the_stream_goes_on() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.accept()
    script.write()
    script.bodies()
    script.answer(OutOfOrder(1))
    script.wait(STEADY.soon_ms)
    void, sent = script.bodies()
    assert isinstance(void, Voided)
    assert isinstance(sent, Sent)
    assert (void.n, sent.n, sent.floor) == (1, 2, 1)
    script.accept()
    assert script.store.outgoing() == []
    assert script.told(MessageFailed) == []


def test_a_stale_list_is_looked_up_again_and_the_message_is_sealed_again_under_the_same_id() -> None:
    script = connected()
    message = script.write()
    (first,) = script.bodies()
    script.lists[BOB] = (2, {TABLET: 7, TABLET + 1: 9})
    (again,) = script.answer(StaleDevices(2, (TABLET + 1,), (), ()))
    assert isinstance(first, Sent)
    assert isinstance(again, Sent)
    assert (again.id, again.n, again.tag) == (first.id, first.n, first.tag)
    assert [e.device for e in again.envelopes] == [TABLET, TABLET + 1]
    script.accept()
    found = script.store.message(message.id)
    assert found is not None
    assert found.places.keys() == {TABLET, TABLET + 1}


def test_a_stale_list_is_repaired_even_if_a_later_number_is_put_off_before() -> None:
    """What is too fast is answered before what is in the log: every round would end before the news is heard."""
    script = connected()
    script.write()
    script.write()
    script.bodies()
    first, second = script.asked
    script.lists[BOB] = (2, {TABLET: 7, TABLET + 1: 9})
    script.say(Answered(second.ref, RateLimited(10)))
    script.say(Answered(first.ref, StaleDevices(2, (TABLET + 1,), (), ())))
    script.wait(2_000)
    again = [body for body in script.bodies() if isinstance(body, Sent)]
    assert [(body.n, body.list_version, len(body.envelopes)) for body in again] == [(1, 2, 2), (2, 2, 2)]


def test_a_list_that_stays_stale_is_not_asked_for_in_a_circle() -> None:
    script = connected()
    script.write()
    script.bodies()
    assert script.answer(StaleDevices(2, (9,), (), ())) != []
    assert script.answer(StaleDevices(2, (9,), (), ())) == []
    script.wait(2_000)
    assert numbers(script.bodies()) == [1]


def test_an_answer_to_an_earlier_attempt_counts_with_the_devices_of_that_attempt() -> None:
    script = connected()
    message = script.write()
    (first,) = script.bodies()
    script.lose()
    script.connect()
    script.answer(StaleDevices(2, (TABLET + 1,), (), ()))
    script.lists[BOB] = (2, {TABLET + 1: 9})
    script.lose()
    script.connect()
    assert isinstance(first, Sent)
    script.answer(Accepted(first.id, first.tag, 5, 1))
    found = script.store.message(message.id)
    assert found is not None
    assert found.places.keys() == {TABLET}


def test_a_number_that_was_given_up_before_fails_its_message_and_nothing_more_is_said() -> None:
    script = connected()
    message = script.write()
    script.bodies()
    assert script.answer(NumberVoided("x")) == []
    assert script.state(message) == ("failed", "number_voided")
    assert script.store.outgoing() == []


@pytest.mark.parametrize("answer", [IdReused("x"), Settled("x")])
def test_a_message_whose_number_was_used_before_takes_the_next_one_and_keeps_its_id(answer: Said) -> None:
    script = connected()
    message = script.write()
    script.bodies()
    (again,) = script.answer(answer)
    assert isinstance(again, Sent)
    assert (again.n, again.floor, again.id) == (2, 2, message.id)
    (third,) = script.answer(answer)
    assert numbers([third]) == [3]
    script.accept()
    assert script.state(message) == ("sent", "")
    assert script.store.outgoing() == []
    assert [row.id for row in script.store.numbered(PHONE, BOB, Lane.NORMAL, 1, 9)] == ["", "", message.id]


def test_a_server_that_knows_every_number_already_is_asked_by_the_schedule() -> None:
    script = connected()
    message = script.write()
    said, count = script.bodies(), 0
    while said:
        count += 1
        said = script.answer(Settled("x"))
    assert count == RENUMBERED_MAX
    script.wait(5_000)
    assert len(script.bodies()) == 1
    script.accept()
    assert script.state(message) == ("sent", "")


@pytest.mark.parametrize(("answer", "reason"), [(Malformed("x"), "malformed"), (DeadLettered(), "dead_lettered")])
def test_a_message_that_will_never_be_taken_fails_and_its_number_is_voided(answer: Said, reason: str) -> None:
    script = connected()
    message, behind = script.write(), script.write()
    script.bodies()
    (void,) = script.answer(answer)
    assert isinstance(void, Voided)
    assert script.state(message) == ("failed", reason)
    script.accept()
    assert [row.id for row in script.store.outgoing()] == [behind.id]


def test_a_void_that_is_refused_as_well_does_not_become_an_endless_loop() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.answer(Malformed("x"))
    assert script.answer(Malformed("x")) == []
    assert script.store.outgoing() == []


def test_an_answer_to_something_else_ends_the_connection() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.answer(Accepted("other", b"t" * 16, 5, 1))
    assert script.hang_up
