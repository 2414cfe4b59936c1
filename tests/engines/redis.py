"""Registries of two nodes on a real Redis, for tests that wait for every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nightmail.engine.cluster.redis.link import RedisLink
from nightmail.engine.cluster.redis.scripts import RedisKeys
from nightmail.engine.cluster.redis.seats import RedisSeats
from nightmail.engine.cluster.redis.settings import RedisSettings
from nightmail.engine.ports import Registry, Seat
from nightmail.server.heart import pace
from tests.conformance.registry_rig import SEAT_MS, two_nodes
from tests.engines.started import StartedEngines

AGE = """
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[2]) end
end
"""
FORGET = "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', key) end"
PATIENCE_MS = 10_000
"""A machine that is busy must not pass for a Redis that is away."""


class OnRedis:
    """RedisKeys of its own in a Redis that all tests share."""

    def __init__(self, engines: StartedEngines) -> None:
        self._prefix = engines.new_name("test") + ":"
        url = f"redis://{engines.address('redis')}/0"
        self.settings = RedisSettings(redis_url=url, redis_prefix=self._prefix, redis_timeout_ms=PATIENCE_MS)
        self._passed_ms = 0
        self._loop = asyncio.new_event_loop()
        self._links: list[RedisLink] = []
        self.displaced: list[tuple[int, Seat]] = []
        self._loop.run_until_complete(self._open())
        self.settle()

    async def _open(self) -> None:
        self._clustered = two_nodes(self._new_seats, lambda: self.now, self.displaced)
        self.nodes: dict[str, Registry] = dict(self._clustered)

    def _new_seats(self) -> RedisSeats:
        self._links.append(link := RedisLink(self.settings, lambda: self.now))
        return RedisSeats(link, RedisKeys(self._prefix), SEAT_MS, PATIENCE_MS, lambda: self.now)

    @property
    def now(self) -> int:
        return pace() + self._passed_ms

    def answer(self, ask: Callable[[Callable[[Any], None]], None]) -> Any:
        async def answered() -> Any:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            ask(future.set_result)
            return await future

        return self._loop.run_until_complete(answered())

    def settle(self) -> None:
        """Each node signs twice: once to hear of the epoch. What was said before is answered by then."""
        for _ in range(2):
            for node, link in zip(self._clustered.values(), self._links, strict=True):
                node._sign_at = 0  # pyright: ignore[reportPrivateUsage]
                self._loop.run_until_complete(self._tick(node.tick))
                self.answer(lambda done, link=link: link.ask(("PING",), done))

    async def _tick(self, tick: Callable[[], None]) -> None:
        tick()

    def wait(self, ms: int) -> None:
        """What has an end has it sooner."""
        self.answer(lambda done: self._links[0].call(AGE, [], (self._prefix, ms), done))
        self._passed_ms += ms
        self.settle()

    def lose(self) -> None:
        self.answer(lambda done: self._links[0].call(FORGET, [], (self._prefix,), done))
        self.settle()
        self.settle()

    def close(self) -> None:
        for link in self._links:
            self._loop.run_until_complete(link.close())
        self._loop.close()
