"""Making the tables, and what a cluster decides once.

Knows:   the names of what was decided.
Touches: the keyspace. Repeating it changes nothing.
"""

from __future__ import annotations

from nightmail.engine.ports import EngineError, Failed, TooNew

from .schema import SCHEMA_VERSION, TABLES
from .session import CassandraSession
from .settings import CassandraSettings

DECIDE = "INSERT INTO decided (name, value) VALUES (?, ?) IF NOT EXISTS"
READ_DECIDED = "SELECT name, value FROM decided"


async def make_tables(settings: CassandraSettings) -> None:
    """Raises EngineError."""
    if not settings.keyspace.isidentifier():
        raise EngineError(f"{settings.keyspace} cannot be the name of a keyspace: letters, digits and _ are allowed")
    session = await CassandraSession.connect(settings, keyspace=False)
    try:
        await session.command(
            f"CREATE KEYSPACE IF NOT EXISTS {settings.keyspace} WITH replication = {settings.replication}"
        )
        for table in TABLES:
            await session.command(table.replace("EXISTS ", f"EXISTS {settings.keyspace}.", 1))
    finally:
        await session.close()


async def decide(session: CassandraSession, **values: int) -> dict[str, int]:
    """Have these decided, unless they are. Returns all that is decided. Raises EngineError."""
    await session.prepare(DECIDE)
    for name, value in {"schema": SCHEMA_VERSION, **values}.items():
        if isinstance(outcome := await session.ask(DECIDE, (name, value)), Failed):
            raise EngineError(outcome.why)
    return await decided(session)


async def decided(session: CassandraSession) -> dict[str, int]:
    """Raises EngineError: also if a newer program has made the tables."""
    await session.prepare(READ_DECIDED)
    found = await session.ask(READ_DECIDED, ())
    if isinstance(found, Failed):
        raise EngineError(found.why)
    values: dict[str, int] = {str(name): int(value) for name, value in found}
    if values.get("schema", 0) > SCHEMA_VERSION:
        raise TooNew(f"the cluster's tables are of version {values['schema']}, and this program knows {SCHEMA_VERSION}")
    return values
