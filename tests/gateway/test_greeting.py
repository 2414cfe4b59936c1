"""The first exchange on a connection: who is it?"""

from __future__ import annotations

from hashlib import sha256

import pytest

from nightmail.gateway.greeting import Rejection, check_hello, cursors_of, recognize
from nightmail.gateway.session import Stage
from nightmail.model.ids import device_id
from nightmail.model.records import Unlinked
from nightmail.model.rows import Account, Device
from nightmail.model.words import Platform
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.items import (
    GROUP_ITEMS,
    NEWEST_SINCE,
    Drained,
    Hello,
    Look,
    Ping,
    Welcome,
)
from tests.gateway.rig import BEN, PHONE, TABLET, Town, a_town, token_of


def welcome(town: Town) -> Welcome:
    return Welcome(1, town.clock, "node", 30_000, 256, 65_536, 1_048_576, NEWEST_SINCE, GROUP_ITEMS)


def test_a_device_that_says_who_it_is_is_welcomed_and_told_that_its_queue_is_empty() -> None:
    town = a_town()
    ben = town.stranger()
    ben.hello()
    assert ben.take() == [welcome(town), Drained(0, 0, 0)]


def test_the_token_of_another_device_and_a_device_that_never_was_hear_the_same() -> None:
    town = a_town()
    wrong, nobody = town.stranger(), town.stranger(device_id(BEN, 9))
    wrong.hello(token=token_of(PHONE))
    nobody.hello()
    town.turn()
    end = CloseCode.UNAUTHORIZED, SENTENCES[CloseCode.UNAUTHORIZED]
    assert (wrong.link.closed, wrong.link.frames) == (end, [])
    assert (nobody.link.closed, nobody.link.frames) == (end, [])
    assert town.gateway.counters.unauthorized == 2


def test_an_empty_token_and_the_kept_digest_itself_open_nothing() -> None:
    town = a_town()
    for token in (b"", bytes(32), token_of(TABLET)[:-1], town.loop.state.accounts.there(BEN).devices[TABLET].token):
        ben = town.stranger()
        ben.hello(token=token)
        town.turn()
        assert ben.link.closed is not None
        assert ben.link.closed[0] == CloseCode.UNAUTHORIZED


def test_a_revoked_device_hears_it_when_it_comes_back() -> None:
    town = a_town()
    town.fold(TABLET, Unlinked(TABLET))
    ben = town.stranger()
    ben.hello()
    town.turn()
    assert ben.link.closed == (CloseCode.UNAUTHORIZED, SENTENCES[CloseCode.UNAUTHORIZED])


def test_a_version_that_is_not_spoken_is_refused_as_that() -> None:
    ben = a_town().stranger()
    ben.hello(version=2)
    assert ben.link.closed == (CloseCode.UNSUPPORTED, SENTENCES[CloseCode.UNSUPPORTED])


@pytest.mark.parametrize(
    "hello",
    [
        Hello(1, 0, b"", 0, 0, 0),
        Hello(1, -1, b"", 0, 0, 0),
        Hello(1, 1 << 61, b"", 0, 0, 0),
        Hello(1, TABLET, b"", -1, 0, 0),
        Hello(1, TABLET, b"", 0, 1 << 53, 0),
        Hello(1, TABLET, b"", 0, 0, -1),
    ],
)
def test_a_hello_with_numbers_out_of_range_is_malformed(hello: Hello) -> None:
    ben = a_town().stranger()
    ben.say(hello)
    assert ben.link.closed == (CloseCode.MALFORMED, "a Hello with numbers out of range")


@pytest.mark.parametrize("first", [[], [Ping(1)], [Look(1, BEN)], [Hello(1, TABLET, b"", 0, 0, 0), Ping(1)]])
def test_the_first_frame_is_one_hello_and_nothing_else(first: list[Hello | Ping | Look]) -> None:
    ben = a_town().stranger()
    ben.say(*first)
    assert ben.link.closed is not None
    assert ben.link.closed[0] == CloseCode.MALFORMED


def test_a_second_hello_is_out_of_state() -> None:
    ben = a_town().connect()
    ben.hello()
    assert ben.link.closed == (CloseCode.OUT_OF_STATE, SENTENCES[CloseCode.OUT_OF_STATE])


def test_whoever_does_not_wait_for_the_welcome_is_out_of_state() -> None:
    ben = a_town().stranger()
    ben.hello()
    ben.say(Ping(1))
    ben.town.turn()
    assert ben.link.closed == (CloseCode.OUT_OF_STATE, SENTENCES[CloseCode.OUT_OF_STATE])
    assert ben.link.frames == []


def test_a_stranger_who_hangs_up_while_it_is_looked_at_is_forgotten() -> None:
    town = a_town()
    ben = town.stranger()
    ben.hello()
    ben.session.lost()
    town.turn()
    assert (ben.link.frames, ben.link.closed, town.gateway.connections, town.gateway.devices) == ([], None, 0, 0)


def test_whoever_says_nothing_is_let_go_after_ten_seconds() -> None:
    town = a_town()
    quiet = town.stranger()
    town.wait(9_980)
    assert quiet.link.closed is None
    town.wait(40)
    assert quiet.link.closed == (CloseCode.HELLO_TIMEOUT, SENTENCES[CloseCode.HELLO_TIMEOUT])


def test_rows_that_do_not_come_in_time_let_the_stranger_go_too() -> None:
    town = a_town()
    town.loop.save(at_once=True)
    again = Town(log=town.log, rows=town.rows)
    again.rows.holds_loads = True
    ben = again.stranger()
    ben.hello()
    again.turn()
    assert ben.session.stage is Stage.CHECKING
    again.wait(10_040)
    assert ben.link.closed == (CloseCode.HELLO_TIMEOUT, SENTENCES[CloseCode.HELLO_TIMEOUT])
    again.rows.holds_loads = False
    again.rows.answer_load()
    again.turn()
    assert (ben.link.frames, again.gateway.devices) == ([], 0)


# --- by itself --------------------------------------------------------------------------------


def test_only_the_right_token_of_a_linked_device_is_recognized() -> None:
    device = Device(7, sha256(b"secret").digest(), "phone", Platform.CLI)
    row = Account("ben", {TABLET: device})
    hello = Hello(1, TABLET, b"secret", 1, 2, 3)
    assert recognize(hello, row) is device
    assert recognize(hello, None) is None
    assert recognize(Hello(1, TABLET, b"guess", 1, 2, 3), row) is None
    assert recognize(Hello(1, TABLET + 1, b"secret", 1, 2, 3), row) is None


def test_a_rejection_is_a_close_code_and_its_sentence() -> None:
    assert check_hello(Hello(1, TABLET, b"", 0, 0, 0)) is None
    assert check_hello(Hello(2, TABLET, b"", 0, 0, 0)) == Rejection(CloseCode.UNSUPPORTED)
    assert check_hello(Hello(1, 0, b"", 0, 0, 0)) == Rejection(CloseCode.MALFORMED, "a Hello with numbers out of range")


def test_cursors_are_normal_high_and_receipts() -> None:
    assert cursors_of(Hello(1, TABLET, b"", 1, 2, 3)) == (1, 2, 3)
