"""A connection to Redis: one pipeline for each turn, outcomes as values, and a breaker.

Knows:   what waits for the next pipeline; whether Redis counts as away.
Touches: Redis, through one connection on the running event loop.
Never:   repeats a command by itself, or raises for what the network does: that is `Failed`. Never puts a password, or
         an address with one, into words.

Commands run in their order. If a pipeline fails, so does everything that waits behind it; then Redis counts as away for
half a second, in which everything fails at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha1
from importlib import import_module
from typing import Any, TypeAlias

from nightmail.engine.ports import EngineError, Failed

from .settings import RedisSettings

Done: TypeAlias = Callable[[Any], None]
Run: TypeAlias = Callable[[Callable[[], None]], None]
"""Calls a callback, and sees to what it raises."""

AWAY_MS = 500
PIPELINE = 2_000
"""Commands that are sent together."""

_driver: Any = import_module("redis.asyncio")
_retry: Any = import_module("redis.asyncio.retry")
_backoff: Any = import_module("redis.backoff")
_RedisError: type[Exception] = import_module("redis.exceptions").RedisError


class RedisLink:
    """Made on the running event loop. It connects when it is asked for something."""

    def __init__(self, settings: RedisSettings, pace: Callable[[], int], run: Run = lambda do: do()) -> None:
        """Raises EngineError if the settings make no sense."""
        self._settings, self._pace, self._run = settings, pace, run
        self._client = _connect(settings)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Sequence[str | int], Done]] = []
        self._task: asyncio.Task[None] | None = None
        self._scripts: dict[str, str] = {}
        self._loaded = False
        self._away_until = 0
        self._closed = False
        self.failures = 0

    def ask(self, command: Sequence[str | int], done: Callable[[Any], None]) -> None:
        if self._closed or self._pace() < self._away_until:
            done(Failed("Redis does not answer"))
            return
        self._waiting.append((command, done))
        if self._task is None:
            self._task = self._loop.create_task(self._go_on())

    def call(self, script: str, keys: Sequence[str], values: Sequence[str | int], done: Callable[[Any], None]) -> None:
        """Run a script. Redis is told it once, and again when it has forgotten it."""
        if (digest := self._scripts.get(script)) is None:
            digest = self._scripts[script] = sha1(script.encode(), usedforsecurity=False).hexdigest()
            self._loaded = False
        self.ask(("EVALSHA", digest, len(keys), *keys, *values), done)

    async def _go_on(self) -> None:
        while self._waiting and not self._closed:
            batch, self._waiting = self._waiting[:PIPELINE], self._waiting[PIPELINE:]
            await self._send(batch)
        self._task = None

    async def _send(self, batch: Sequence[tuple[Sequence[str | int], Done]]) -> None:
        loads = [] if self._loaded else [("SCRIPT", "LOAD", script) for script in self._scripts]
        self._loaded = True
        pipeline = self._client.pipeline(transaction=False)
        for command in (*loads, *(command for command, _ in batch)):
            pipeline.execute_command(*command)
        try:
            async with asyncio.timeout(self._settings.redis_timeout_ms / 1000):
                answers: list[Any] = await pipeline.execute(raise_on_error=False)
        except (_RedisError, OSError, TimeoutError) as error:
            await self._fail(batch, f"Redis: {type(error).__name__}")
            return
        for (_, done), answer in zip(batch, answers[len(loads) :], strict=True):
            if isinstance(answer, Exception):
                self._loaded = False  # It may have been started again, without the scripts.
                answer = Failed(f"Redis: {type(answer).__name__}")
            self._run(partial(done, answer))

    async def _fail(self, batch: Sequence[tuple[Sequence[str | int], Done]], why: str) -> None:
        self.failures += 1
        self._loaded, self._away_until = False, self._pace() + AWAY_MS
        failed, self._waiting = [*batch, *self._waiting], []
        # What is still on the old connection must not be taken for the answer to what comes next.
        await self._client.connection_pool.disconnect()
        for _, done in failed:
            self._run(partial(done, Failed(why)))

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.aclose()


def _connect(settings: RedisSettings) -> Any:
    tls: dict[str, Any] = {}
    if settings.redis_ca_file:
        tls["ssl_ca_certs"] = settings.redis_ca_file
    if settings.redis_cert_file:
        tls |= {"ssl_certfile": settings.redis_cert_file, "ssl_keyfile": settings.redis_key_file}
    seconds = settings.redis_timeout_ms / 1000
    try:
        return _driver.Redis.from_url(
            settings.redis_url, username=settings.redis_user or None, password=settings.redis_password or None,
            decode_responses=True, socket_timeout=seconds, socket_connect_timeout=seconds, max_connections=1,
            retry=_retry.Retry(_backoff.NoBackoff(), 0), **tls,
        )  # fmt: skip
    except ValueError:
        raise EngineError("cluster.redis_url must begin with redis:// or rediss://") from None
