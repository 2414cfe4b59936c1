"""One connection, without its socket."""

from __future__ import annotations

import pytest

from nightmail.gateway.limits import LINGER_MS, GatewayLimits
from nightmail.model.answers import Accepted, Done
from nightmail.model.ids import account_of, device_id
from nightmail.model.records import Acked, Closed, Listed, ReceiptsSet, Unlinked, Voided
from nightmail.model.refusals import AckAboveHead, Malformed, NotAllowed, RateLimited, UnknownRecipient
from nightmail.model.words import Lane
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import encode
from nightmail.wire.items import (
    REF_MAX,
    Answered,
    Ask,
    Entries,
    Goodbye,
    Hello,
    Ping,
    Pong,
)
from tests.gateway.rig import BEN, PHONE, TABLET, a_message, a_town, as_entry, numbers_of

# --- asking ------------------------------------------------------------------------------------


def test_a_message_is_answered_under_its_ref_and_handed_to_its_recipient() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    sent = a_message()
    ada.say(Ask(77, sent))
    assert ada.take() == [Answered(77, Accepted(sent.id, sent.tag, town.clock, 1))]
    assert ben.link.take() == [Entries(Lane.NORMAL, 1, (as_entry(sent, town.clock),))]


def test_nothing_is_answered_or_handed_out_before_it_is_durable() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    town.log.holds = True
    ada.ask(a_message())
    assert (ada.take(), ben.take()) == ([], [])
    town.log.succeed()
    town.turn()
    assert (len(ada.link.take()), len(ben.link.take())) == (1, 1)


def test_everything_that_came_in_one_frame_is_answered_in_one_frame() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.ask(*(a_message(n) for n in range(1, 51)))
    town.turn()
    assert [len(frame) for frame in ada.link.frames] == [50]
    assert [len(frame) for frame in ben.link.frames] == [1]


def test_a_storm_of_retries_is_answered_in_one_frame_too() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    town.write(50)
    ada.ask(*(a_message(n) for n in range(1, 51)))
    town.turn()
    assert [len(frame) for frame in ada.link.frames] == [50]


def test_ref_0_wants_no_answer_and_gets_none() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.say(Ask(0, a_message(1)), Ask(0, a_message(1)), Ask(0, a_message(3)))
    assert ada.take() == []
    assert ben.numbers() == [1]


def test_what_is_malformed_is_refused_under_its_ref_and_the_rest_of_the_frame_is_taken() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.ask(a_message(0), a_message(1))
    said = ada.take()
    assert said == [
        Answered(1, Malformed("n is not between 1 and 9007199254740991")),
        Answered(2, Accepted(a_message(1).id, bytes(16), town.clock, 1)),
    ]
    assert ben.numbers() == [1]


def test_what_is_malformed_and_wants_no_answer_ends_the_connection() -> None:
    ada = a_town().connect(PHONE)
    ada.say(Ask(0, a_message(0)))
    sentence = "malformed: n is not between 1 and 9007199254740991"
    assert ada.link.closed == (CloseCode.MALFORMED, sentence)
    assert ada.goodbye == Goodbye(CloseCode.MALFORMED, sentence, 0)


def test_a_message_id_with_another_devices_prefix_is_refused() -> None:
    ada = a_town().connect(PHONE)
    ada.ask(a_message(1, by=TABLET))
    assert ada.take() == [Answered(1, Malformed("the id begins with another device"))]


def test_an_unknown_recipient_is_named() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    nobody = device_id(12_345, 1)
    ada.ask(a_message(1, to=nobody))
    assert ada.take() == [Answered(1, UnknownRecipient(12_345))]


def test_nobody_speaks_for_another_account() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.ask(Closed(BEN), Unlinked(TABLET), Listed(BEN, 2, (), b""), ReceiptsSet(BEN, False))
    assert ada.take() == [Answered(ref, NotAllowed()) for ref in (1, 2, 3, 4)]
    assert town.loop.state.accounts.there(BEN).listed == {TABLET: 7}


def test_an_ack_above_the_head_is_refused_and_frees_nothing() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.ask(Acked(Lane.NORMAL, 4))
    assert ben.take() == [Answered(1, AckAboveHead(3))]
    assert town.loop.state.mailboxes.there(TABLET).lanes[Lane.NORMAL].waiting == 3


@pytest.mark.parametrize("ref", [-1, REF_MAX + 1, (1 << 64) - 1])
def test_a_ref_out_of_range_ends_the_connection(ref: int) -> None:
    ada = a_town().connect(PHONE)
    ada.say(Ask(ref, a_message()))
    assert ada.link.closed == (CloseCode.MALFORMED, "a ref out of range")


def test_garbage_ends_the_connection_and_says_where_not_what() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.say_raw(encode([Ping(1)])[:-1] + b"\xa6secret")
    assert ada.link.closed == (CloseCode.MALFORMED, "not a frame: wrong at $[0][1]")
    assert town.gateway.counters.malformed == 1


def test_an_ack_beside_a_malformed_message_still_gives_credit_back() -> None:
    town = a_town(GatewayLimits(credit_entries=2))
    ben = town.connect()
    town.write(4)
    assert ben.numbers() == [1, 2]
    ben.say(Ask(1, a_message(0, by=TABLET, to=PHONE)), Ask(0, Acked(Lane.NORMAL, 2)))
    assert ben.numbers() == [3, 4]


def test_answers_to_a_connection_that_is_gone_go_nowhere() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    town.log.holds = True
    ada.ask(a_message())
    town.turn()
    ada.session.lost()
    again = town.connect(PHONE)
    town.log.succeed()
    assert (ada.link.take(), again.take()) == ([], [])


# --- frames ------------------------------------------------------------------------------------


def test_no_frame_is_larger_than_a_device_was_told() -> None:
    town = a_town(GatewayLimits(frame_bytes=4_096))
    ada = town.connect(PHONE)
    ada.link.sizes.clear()
    ada.ask(*(a_message(0) for _ in range(500)))
    town.turn()
    assert max(ada.link.sizes) <= 4_096
    assert [item.ref for item in ada.link.take() if isinstance(item, Answered)] == list(range(1, 501))


# --- limits ------------------------------------------------------------------------------------


def test_who_sends_too_fast_is_told_when_to_try_again() -> None:
    town = a_town(GatewayLimits(sends_per_s=10, sends_burst=3))
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.ask(*(a_message(n) for n in range(1, 6)))
    said = ada.take()
    assert [item for item in said if isinstance(item, Answered) and isinstance(item.said, RateLimited)] == [
        Answered(4, RateLimited(101)),
        Answered(5, RateLimited(101)),
    ]
    assert ben.numbers() == [1, 2, 3]
    ben.ack(3)
    town.wait(200)
    ada.ask(a_message(4), a_message(5))
    ada.take()
    assert ben.numbers() == [4, 5]
    assert town.gateway.counters.rate_limited == 2


def test_a_number_given_up_counts_as_a_message() -> None:
    """Each to another account would be a stream for ever."""
    town = a_town(GatewayLimits(sends_per_s=10, sends_burst=2))
    ada = town.connect(PHONE)
    void = [Voided(BEN, Lane.NORMAL, n, 1, f"{PHONE:x}:1:{n}:a") for n in range(1, 4)]
    ada.ask(a_message(1), *void[1:])
    said = [item.said for item in ada.take() if isinstance(item, Answered)]
    assert [type(each) for each in said] == [RateLimited, Accepted, Accepted]
    town.wait(101)
    ada.ask(void[2])
    assert [type(item.said) for item in ada.take() if isinstance(item, Answered)] == [Accepted]
    assert town.gateway.counters.rate_limited == 1


def test_nothing_is_read_for_a_moment_from_a_device_that_sent_too_fast() -> None:
    town = a_town(GatewayLimits(sends_burst=1))
    ada = town.connect(PHONE)
    ada.ask(a_message(1))
    held = [ada.link.held]
    ada.ask(a_message(2))
    held.append(ada.link.held)
    town.wait(300)
    assert [*held, ada.link.held] == [False, True, False]


def test_who_sends_too_fast_without_wanting_an_answer_gets_none() -> None:
    town = a_town(GatewayLimits(sends_per_s=10, sends_burst=1))
    ada = town.connect(PHONE)
    ada.say(Ask(0, a_message(1)), Ask(0, a_message(2)))
    assert ada.take() == []


def test_acks_do_not_count_as_messages() -> None:
    town = a_town(GatewayLimits(sends_per_s=1, sends_burst=1))
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.ask(Acked(Lane.NORMAL, 1), Acked(Lane.NORMAL, 2), Acked(Lane.NORMAL, 3))
    assert ben.take() == [Answered(ref, Done()) for ref in (1, 2, 3)]


def test_more_items_than_any_honest_client_sends_end_the_connection() -> None:
    town = a_town(GatewayLimits(items_per_s=10, items_burst=20))
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ada.say(*(Ping(nonce) for nonce in range(21)))
    assert ada.link.closed == (CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST])
    assert ada.goodbye == Goodbye(CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST], 0)
    ben.say(Ping(1))
    assert ben.take() == [Pong(1, town.clock)]


@pytest.mark.parametrize("n", [0, 1], ids=["malformed", "beyond the rate"])
def test_asking_for_refusals_is_no_way_around_the_limit(n: int) -> None:
    town = a_town(GatewayLimits(sends_per_s=1, sends_burst=1, items_per_s=1, items_burst=20))
    ada = town.connect(PHONE)
    for ref in range(1, 40):
        if not ada.link.closed:
            ada.say(Ask(ref, a_message(n)))
    assert ada.link.closed == (CloseCode.TOO_FAST, SENTENCES[CloseCode.TOO_FAST])


# --- staying -----------------------------------------------------------------------------------


def test_a_heartbeat_is_answered_with_the_servers_clock() -> None:
    town = a_town()
    ben = town.connect()
    ben.say(Ping((1 << 64) - 1), Ping(-5))
    assert ben.take() == [Pong((1 << 64) - 1, town.clock), Pong(-5, town.clock)]


def test_who_says_something_every_thirty_seconds_stays() -> None:
    town = a_town()
    ben = town.connect()
    for _ in range(20):
        town.wait(30_000)
        ben.say(Ping(1))
    assert ben.link.closed is None


def test_who_says_nothing_for_ninety_seconds_is_let_go() -> None:
    town = a_town()
    ben = town.connect()
    town.wait(89_980)
    assert ben.link.closed is None
    town.wait(60)
    assert ben.link.closed == (CloseCode.SILENT, SENTENCES[CloseCode.SILENT])


def test_who_does_not_read_for_a_minute_is_let_go() -> None:
    town = a_town()
    ben = town.connect()
    ben.link.unsent_bytes = 1 << 20
    for _ in range(20):
        town.wait(10_000)
        if ben.link.closed:
            break
        ben.say(Ping(1))
    assert ben.link.closed == (CloseCode.UNREAD, SENTENCES[CloseCode.UNREAD])


def test_a_device_that_stays_keeps_its_seat() -> None:
    town = a_town()
    ben = town.connect()
    for _ in range(20):
        town.wait(20_000)
        ben.say(Ping(1))
        assert town.registry.seat_of(TABLET, town.pace) == ben.session.seat


def test_who_is_sent_away_has_two_seconds_to_hear_it_however_long_it_was_silent() -> None:
    town = a_town()
    ben = town.connect()
    town.wait(80_000)
    town.connect()
    assert ben.link.closed == (CloseCode.DISPLACED, SENTENCES[CloseCode.DISPLACED])
    town.wait(LINGER_MS - 60)
    assert not ben.link.was_cut
    town.wait(120)
    assert ben.link.was_cut


# --- leaving -----------------------------------------------------------------------------------


def test_a_removed_device_is_told_and_let_go_at_once() -> None:
    town = a_town()
    ben = town.connect()
    town.fold(TABLET, Unlinked(TABLET))
    assert ben.link.closed == (CloseCode.REMOVED, SENTENCES[CloseCode.REMOVED])
    assert ben.goodbye == Goodbye(CloseCode.REMOVED, SENTENCES[CloseCode.REMOVED], 0)
    assert (town.gateway.devices, town.registry.seat_of(TABLET, town.pace)) == (0, None)


def test_what_was_still_to_be_said_is_said_before_the_goodbye() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    ada.say(Ping(7), Hello(1, PHONE, b"", 0, 0, 0))
    assert ada.link.take() == [
        Pong(7, town.clock),
        Goodbye(CloseCode.OUT_OF_STATE, SENTENCES[CloseCode.OUT_OF_STATE], 0),
    ]


def test_nothing_is_heard_or_said_after_the_goodbye() -> None:
    town = a_town()
    ada, ben = town.connect(PHONE), town.connect(TABLET)
    ben.hello()
    ben.link.take()
    ben.say(Ping(1), Ask(1, a_message(by=TABLET, to=PHONE)))
    ada.ask(a_message())
    assert ben.take() == []
    assert numbers_of(ada.take()) == []


def test_a_connection_that_ends_while_it_catches_up_leaves_nothing_behind() -> None:
    town = a_town()
    town.write(300)
    ben = town.stranger()
    ben.hello()
    while not ben.link.frames:
        town.turn_once()
    ben.session.lost()
    town.turn()
    assert (town.gateway.connections, town.gateway.devices, account_of(ben.session.device)) == (0, 0, BEN)
