"""Where to connect next, and when."""

from __future__ import annotations

from random import Random

import pytest

from nightmail.client.errors import Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.link.route import Next, ServerAddress, ServerRoute
from nightmail.wire.closing import CloseCode

LIMITS = ClientLimits()
FIRST, SECOND = ServerAddress.parse("ws://one:1"), ServerAddress.parse("wss://two/under/")


def a_route(*servers: str) -> ServerRoute:
    return ServerRoute(servers or ("ws://one:1", "wss://two/under/"), LIMITS, Random(1))


def test_an_address_has_two_doors() -> None:
    assert ServerAddress("ws://one:1/v1/connect", "http://one:1") == FIRST
    assert ServerAddress("wss://two/under/v1/connect", "https://two/under") == SECOND
    assert ServerAddress.parse("https://two/under") == SECOND


@pytest.mark.parametrize("text", ["one:1", "ftp://one", "ws://", "ws://one?x=1", "ws://me:secret@one"])
def test_what_is_no_address_is_refused_without_showing_a_secret(text: str) -> None:
    with pytest.raises(Misused) as refused:
        ServerAddress.parse(text)
    assert "secret" not in str(refused.value)


def test_a_client_needs_an_address() -> None:
    with pytest.raises(Misused):
        ServerRoute((), LIMITS, Random(1))


def test_addresses_are_tried_in_turn_with_waits_that_grow_up_to_a_bound() -> None:
    route = a_route()
    tried = [route.ended(1006, 0, 0) for _ in range(40)]
    assert [step.address for step in tried[:3]] == [SECOND, FIRST, SECOND]
    for failures, step in enumerate(tried):
        assert 0 <= step.in_ms <= min(LIMITS.backoff_ms_min << failures, LIMITS.backoff_ms_max)
    assert max(step.in_ms for step in tried) > LIMITS.backoff_ms_max // 2


def test_after_a_connection_that_lasted_the_waits_begin_again() -> None:
    route = a_route()
    for _ in range(20):
        route.ended(1006, 0, 0)
    assert route.ended(1006, 0, LIMITS.settled_ms).in_ms <= LIMITS.backoff_ms_min


def test_a_draining_server_is_left_at_once_for_the_next_one() -> None:
    assert a_route().ended(CloseCode.DRAINING, 0, 5) == Next(SECOND, 0)


def test_servers_that_all_drain_are_not_asked_in_a_circle() -> None:
    route = a_route()
    waits = [route.ended(CloseCode.DRAINING, 0, 0).in_ms for _ in range(30)]
    assert waits[:2] == [0, 0]
    assert sum(waits[2:]) > 0


def test_a_busy_server_says_when_to_come_back() -> None:
    assert 5_000 <= a_route().ended(CloseCode.BUSY, 5_000, 0).in_ms <= 5_500
