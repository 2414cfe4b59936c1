"""Sending: in order, under one id and number, until it is answered; and what each refusal leads to."""

from __future__ import annotations

import pytest

from nightmail.client.errors import TooLarge
from nightmail.client.events import MessageFailed, SentAck, WaitingForNetwork
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import Place, Tick
from nightmail.client.outbox import RENUMBERED_MAX
from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.limits import DAY_MS
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
    UnknownRecipient,
)
from nightmail.model.words import Lane
from nightmail.wire.items import Answered
from tests.client.script import ALICE, BOB, LAPTOP, PHONE, TABLET, Script, accepted, numbers

STEADY = ClientLimits(retry_jitter=0)


def connected(limits: ClientLimits = STEADY, *, window: int = 256) -> Script:
    script = Script(limits=limits)
    script.connect(window=window)
    return script


def test_nothing_is_sent_before_it_is_committed() -> None:
    script = connected()
    script.write()
    assert script.store.dirty
    assert script.bodies()
    assert not script.store.dirty
    assert len(script.store.outgoing()) == 1


def test_many_messages_of_one_turn_cost_one_commit() -> None:
    script = connected()
    before = script.store.commits
    for _ in range(100):
        script.write()
    script.machine.settle()
    assert script.store.commits == before + 1


def test_a_message_is_sealed_for_every_device_of_the_recipient_and_every_other_own_one() -> None:
    script = connected()
    script.lists[ALICE] = (4, {PHONE: 7, LAPTOP: 8})
    script.lists[BOB] = (9, {TABLET: 7, TABLET + 1: 5})
    script.write(b"hello")
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert [(e.device, e.registration) for e in sent.envelopes] == [(TABLET, 7), (TABLET + 1, 5)]
    assert [(e.device, e.registration) for e in sent.own_envelopes] == [(LAPTOP, 8)]
    assert (sent.list_version, sent.n, sent.floor, sent.of) == (9, 1, 1, None)


def test_a_note_to_oneself_is_sealed_once_for_each_other_own_device() -> None:
    script = connected()
    script.lists[ALICE] = (4, {PHONE: 7, LAPTOP: 8})
    script.machine.compose(ALICE, b"note", script.now)
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert ([e.device for e in sent.envelopes], sent.own_envelopes) == ([LAPTOP], ())


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
    assert found.places == {TABLET: Place(Tick.SENT)}
    assert script.store.outgoing() == []


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
    script.machine.settle()
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


def test_a_stale_list_is_looked_up_again_and_the_message_sealed_anew_under_the_same_id() -> None:
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


def test_a_void_that_came_too_late_tells_the_truth() -> None:
    script = connected()
    message = script.write()
    (sent,) = script.bodies()
    assert script.machine.give_up(message.id, script.now)
    (void,) = script.bodies()
    assert isinstance(void, Voided)
    script.answer(accepted(sent))
    assert script.state(message) == ("sent", "")
    assert script.store.outgoing() == []


def test_what_is_given_up_is_failed_once_the_server_says_so() -> None:
    script = connected()
    message = script.write()
    script.bodies()
    script.machine.give_up(message.id, script.now)
    script.bodies()
    script.accept()
    assert script.state(message) == ("failed", "given_up")
    assert not script.machine.give_up(message.id, script.now)


def test_a_body_above_the_limit_is_not_queued() -> None:
    script = connected()
    with pytest.raises(TooLarge):
        script.write(b"x" * 65_537)
    assert script.store.outgoing() == []


def test_what_fits_in_no_frame_fails_instead_of_being_sent_for_ever() -> None:
    script = Script(limits=STEADY)
    script.connect(frame_bytes=10_000)
    message = script.write(b"x" * 20_000)
    (void,) = script.bodies()
    assert isinstance(void, Voided)
    assert script.state(message) == ("failed", "too_large")


def test_an_answer_to_something_else_ends_the_connection() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.answer(Accepted("other", b"t" * 16, 5, 1))
    assert script.machine.hangup


def test_the_stamp_of_what_was_displayed_last_goes_with_every_message() -> None:
    script = connected()
    script.write()
    script.bodies()
    script.accept()
    script.write()
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert sent.seen == script.store.conversation(BOB).seen > 0
