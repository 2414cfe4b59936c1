"""On a real Cassandra, through a relay that cuts the link."""

from __future__ import annotations

import asyncio

from engines.faults.relays import Relay, RelayThread
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.settings import CassandraSettings
from nightmail.engine.ports import Failed
from nightmail.testing.running import free_port
from tests.engines.started import StartedEngines

QUESTION = "SELECT release_version FROM system.local"


def test_what_is_asked_while_the_link_is_cut_fails_and_is_answered_again_afterwards(engines: StartedEngines) -> None:
    host, port = engines.address("cassandra").split(":")

    async def story() -> None:
        thread, relay = RelayThread(), Relay(int(port), lambda _port, _relay: "me")
        await thread.do(relay.start(free_port()))
        session = await CassandraSession.connect(CassandraSettings(hosts=host, cql_port=relay.port), keyspace=False)
        try:
            await session.prepare(QUESTION)
            relay.cut("me")
            assert isinstance(await session.ask(QUESTION, ()), Failed)
            relay.heal("me")
            while isinstance(await session.ask(QUESTION, ()), Failed):
                pass
        finally:
            await session.close()
            await thread.do(relay.close())
            thread.close()

    asyncio.run(story())
