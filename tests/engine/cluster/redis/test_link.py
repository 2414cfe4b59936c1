"""A real Redis that is stopped, paused, forgets its scripts, and asks for a password."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nightmail.engine.cluster.redis.link import RedisLink
from nightmail.engine.cluster.redis.scripts import RedisKeys
from nightmail.engine.cluster.redis.seats import RedisSeats
from nightmail.engine.cluster.redis.settings import RedisSettings
from nightmail.engine.ports import EngineError, Failed, Seat
from nightmail.server.heart import pace
from tests.engines.own_redis import PASSWORD, OwnRedis, own_redis

__all__ = ["own_redis"]

BOB = 7 << 12 | 1
SEAT = Seat("here", 1, 100)
TIMEOUT_MS = 300


def settings(url: str, password: str = PASSWORD) -> RedisSettings:
    return RedisSettings(redis_url=url, redis_password=password, redis_timeout_ms=TIMEOUT_MS)


async def answer(ask: Callable[[Callable[[Any], None]], None]) -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ask(future.set_result)
    return await future


async def ping(link: RedisLink) -> Any:
    return await answer(lambda done: link.ask(("PING",), done))


async def until_up(link: RedisLink) -> None:
    while isinstance(await ping(link), Failed):  # noqa: ASYNC110 (it starts by itself)
        await asyncio.sleep(0)


def test_what_is_asked_in_one_turn_goes_out_together_and_is_answered_in_order(
    redis: OwnRedis,
) -> None:
    async def story() -> list[Any]:
        link = RedisLink(settings(redis.url), pace)
        await until_up(link)
        answers: list[Any] = []
        for n in range(3):
            link.ask(("SET", f"key{n}", n), answers.append)
        link.ask(("GET", "key2"), answers.append)
        await ping(link)
        await link.close()
        return answers

    assert asyncio.run(story()) == [True, True, True, "2"]


def test_a_redis_that_is_paused_fails_everything_and_does_nothing_of_it_afterwards(
    redis: OwnRedis,
) -> None:
    async def story() -> tuple[Any, Any, Any]:
        link = RedisLink(settings(redis.url), pace)
        seats = RedisSeats(link, RedisKeys(""), 90_000, TIMEOUT_MS, pace)
        await until_up(link)
        epoch = await answer(lambda done: seats.sign(1, "", is_whole=False, done=done))
        assert isinstance(epoch, str)
        redis.pause()
        begun = pace()
        first = await answer(lambda done: seats.take(BOB, SEAT, done, wins=True))
        second = await ping(link)  # At once: it counts as away.
        while pace() - begun < 4 * TIMEOUT_MS:
            await ping(link)
            await asyncio.sleep(0)
        redis.go_on()
        await until_up(link)
        found = await answer(lambda done: seats.find(BOB, done))
        await link.close()
        return first, second, found

    assert asyncio.run(story()) == (Failed("Redis: TimeoutError"), Failed("Redis does not answer"), None)


def test_scripts_that_redis_has_forgotten_are_told_again(redis: OwnRedis) -> None:
    async def story() -> list[Any]:
        link = RedisLink(settings(redis.url), pace)
        seats = RedisSeats(link, RedisKeys(""), 90_000, TIMEOUT_MS, pace)
        await until_up(link)
        answers = [await answer(lambda done: seats.take(BOB, SEAT, done, wins=True))]
        await answer(lambda done: link.ask(("SCRIPT", "FLUSH"), done))
        answers += [await answer(lambda done: seats.take(BOB, SEAT, done, wins=False)) for _ in range(2)]
        await link.close()
        return answers

    first, forgotten, again = asyncio.run(story())
    assert (first, type(forgotten), again) == (SEAT.since, Failed, SEAT.since)


def test_without_its_password_nothing_is_answered_and_no_word_names_it(
    redis: OwnRedis,
) -> None:
    async def story() -> Any:
        with_password = RedisLink(settings(redis.url), pace)
        await until_up(with_password)
        link = RedisLink(settings(redis.url, "wrong"), pace)
        answered = await ping(link)
        await with_password.close()
        await link.close()
        return answered

    answered = asyncio.run(story())
    assert isinstance(answered, Failed)
    assert "wrong" not in answered.why


def test_an_address_of_another_kind_is_refused_in_words() -> None:
    async def make() -> None:
        RedisLink(settings("http://127.0.0.1"), pace)

    with pytest.raises(EngineError, match="redis_url"):
        asyncio.run(make())
