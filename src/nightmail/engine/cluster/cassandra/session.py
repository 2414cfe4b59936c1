"""A connection to Cassandra: prepared statements, and outcomes as values.

Knows:   how the driver is set, and what of its errors is worth repeating.
Touches: Cassandra, through one session on the running event loop.
Never:   raises for what the network does: that is `Failed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from nightmail.engine.ports import EngineError, Failed

from .settings import CassandraSettings

Values: TypeAlias = Sequence[int | bytes | str | None]
Rows: TypeAlias = list[list[Any]]
Run: TypeAlias = Callable[[Callable[[], None]], None]
"""Calls a callback, and sees to what it raises."""

REQUEST_S = 4.0
DEADLINE_S = REQUEST_S + 2
"""Then it has failed, whatever the driver says later."""

_driver: Any = import_module("acsylla")  # It has no types.
_CassError: type[Exception] = import_module("acsylla.errors").CassException


class CassandraSession:
    """Make it with `connect`. Every statement is prepared once, and may be repeated: none counts anything."""

    def __init__(self, session: Any, run: Run) -> None:
        self._session, self._run = session, run
        self._loop = asyncio.get_running_loop()
        self._prepared: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def connect(
        cls, settings: CassandraSettings, run: Run = lambda callback: callback(), *, keyspace: bool = True
    ) -> CassandraSession:
        """Raises EngineError. Without the `keyspace`: to make it."""
        # Two copies of a request go out when the first is late: a node that dies or is paused costs no time.
        cluster: Any = _driver.create_cluster(
            [host.strip() for host in settings.hosts.split(",")], port=settings.cql_port,
            username=settings.cql_user or None, password=settings.cql_password or None,
            request_timeout=REQUEST_S, connect_timeout=3, constant_reconnect_delay_ms=300,
            heartbeat_interval_sec=1, idle_timeout_sec=3, log_level="critical",
            consistency="QUORUM", serial_consistency="SERIAL",
            speculative_execution_policy=_driver.SpeculativeExecutionPolicy(100, 2), **_tls(settings),
        )  # fmt: skip
        try:
            return cls(await cluster.create_session(settings.keyspace if keyspace else None), run)
        except _CassError as error:
            raise EngineError(f"Cassandra at {settings.hosts}:{settings.cql_port} cannot be used: {error}") from None

    async def prepare(self, *statements: str) -> None:
        """Before they are used. Raises EngineError: a table is missing, perhaps."""
        for statement in statements:
            try:
                self._prepared[statement] = await self._session.create_prepared(statement, timeout=REQUEST_S)
            except _CassError as error:
                raise EngineError(f"Cassandra does not know these tables: {error}") from None

    async def command(self, words: str) -> None:
        """What is said once. Raises EngineError."""
        try:
            await self._session.execute(_driver.create_statement(words, timeout=30.0))
        except _CassError as error:
            raise EngineError(f"Cassandra refuses: {error}") from None

    async def ask(self, statement: str, values: Values) -> Rows | Failed:
        return await self._ask(self._bind(statement, values), self._session.execute)

    def execute(self, statement: str, values: Values, done: Callable[[Rows | Failed], None]) -> None:
        self._begin(self._ask(self._bind(statement, values), self._session.execute), done)

    def execute_batch(self, writes: Sequence[tuple[str, Values]], done: Callable[[Rows | Failed], None]) -> None:
        """All of them, in one partition, as one mutation: unlogged."""
        if len(writes) == 1:
            self.execute(*writes[0], done)
            return
        batch: Any = _driver.create_batch_unlogged(timeout=REQUEST_S)
        batch.set_is_idempotent(True)
        for statement, values in writes:
            batch.add_statement(self._bind(statement, values))
        self._begin(self._ask(batch, self._session.execute_batch), done)

    def wait_for(self, statement: str, values: Values) -> Rows:
        """For another thread than the loop's. Raises EngineError."""
        found = asyncio.run_coroutine_threadsafe(self.ask(statement, values), self._loop).result()
        if isinstance(found, Failed):
            raise EngineError(found.why)
        return found

    def _bind(self, statement: str, values: Values) -> Any:
        bound = self._prepared[statement].bind(timeout=REQUEST_S)
        bound.bind_list(list(values))
        bound.set_is_idempotent(True)
        return bound

    async def _ask(self, request: Any, execute: Callable[[Any], Any]) -> Rows | Failed:
        asked: asyncio.Future[Any] = asyncio.ensure_future(execute(request))
        # The driver's own time-out is not enough: what is under way when a link is cut may never be answered, not even
        # when the link is back. It is not cancelled, because the driver would answer what is gone.
        await asyncio.wait((asked,), timeout=DEADLINE_S)
        if not asked.done():
            asked.add_done_callback(_forget)
            return Failed("Cassandra does not answer")
        try:
            return [row.as_list() for row in asked.result()]
        except _CassError as error:
            return Failed(f"Cassandra: {error}")

    def _begin(self, asked: Any, done: Callable[[Rows | Failed], None]) -> None:
        task = self._loop.create_task(self._then(asked, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _then(self, asked: Any, done: Callable[[Rows | Failed], None]) -> None:
        found = await asked
        self._run(partial(done, found))

    async def settle(self) -> None:
        """Returns when nothing is under way any more."""
        await asyncio.sleep(0)  # What was written in this turn goes out at its end.
        while self._tasks:
            await asyncio.wait(self._tasks)
            await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._session.close()


def _forget(asked: asyncio.Future[Any]) -> None:
    """Look at what it came to, so that nobody warns of an error that was never looked at."""
    if not asked.cancelled():
        asked.exception()


def _tls(settings: CassandraSettings) -> dict[str, Any]:
    if not settings.cql_ca_file:
        return {}
    found: dict[str, Any] = {"ssl_enabled": True, "ssl_trusted_cert": Path(settings.cql_ca_file).read_text()}
    if settings.cql_cert_file:
        found["ssl_cert"] = Path(settings.cql_cert_file).read_text()
        found["ssl_private_key"] = Path(settings.cql_key_file).read_text()
    return found
