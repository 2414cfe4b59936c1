"""The nodes of a cluster, as a table in Cassandra: each says that it lives, and for how long that counts.

Knows:   the nodes that were alive a second ago, and this node's own number.
Touches: two small tables.
Never:   decides who owns what: that is the group's. A node that is missing here for a moment costs time only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from secrets import randbelow, token_hex

from msgspec import Struct

from nightmail.engine.cluster.answer_lines import NODES_MAX
from nightmail.engine.ports import EngineError, Failed

from .session import CassandraSession, Rows

BEAT_MS = 1_000
NODE_S = 10
"""A node that has not said that it lives for so long does not count any more."""
NUMBER_S = 600
"""A number is not given again for so long: the log may still name lines of the node that had it."""
TRIES = 20

CLAIM = f"INSERT INTO node_number (number, life) VALUES (?, ?) IF NOT EXISTS USING TTL {NUMBER_S}"  # noqa: S608
KEEP = f"UPDATE node_number USING TTL {NUMBER_S} SET life=? WHERE number=?"  # noqa: S608
BEAT = (
    f"INSERT INTO node (cluster, name, number, address, fold, started, url) VALUES (0, ?, ?, ?, ?, ?, ?) "  # noqa: S608
    f"USING TTL {NODE_S}"
)
LEAVE = "DELETE FROM node WHERE cluster=0 AND name=?"
READ = "SELECT name, number, address, fold, started, url FROM node WHERE cluster=0"


class NodeSeen(Struct, frozen=True):
    name: str
    number: int
    address: str
    """Where other nodes reach it."""
    fold: int
    """The newest that it supports."""
    started: int
    url: str
    """Where clients reach it."""


async def read_nodes(session: CassandraSession) -> list[NodeSeen]:
    """For a command. Raises EngineError."""
    await session.prepare(READ)
    found = await session.ask(READ, ())
    if isinstance(found, Failed):
        raise EngineError(found.why)
    return [NodeSeen(*row) for row in found]


class CassandraNodes:
    """`Nodes`. Made by `join`; call `tick` often, and `leave` at the end."""

    def __init__(
        self, session: CassandraSession, number: int, life: str, pace: Callable[[], int],
        on_changed: Callable[[Mapping[int, NodeSeen]], None],
    ) -> None:  # fmt: skip
        self._session, self.number, self._life, self._pace = session, number, life, pace
        self._on_changed = on_changed
        self.me: NodeSeen | None = None
        self.others: Mapping[int, NodeSeen] = {}
        """By number."""
        self._beat_at = self._kept_at = pace()
        self._under_way = False

    @classmethod
    async def join(
        cls, session: CassandraSession, pace: Callable[[], int], on_changed: Callable[[Mapping[int, NodeSeen]], None]
    ) -> CassandraNodes:
        """Get a number that no node has. Raises EngineError."""
        await session.prepare(CLAIM, KEEP, BEAT, LEAVE, READ)
        life = token_hex(8)
        for _ in range(TRIES):
            number = 1 + randbelow(NODES_MAX - 1)
            found = await session.ask(CLAIM, (number, life))
            if not isinstance(found, Failed) and found[0][0]:
                return cls(session, number, life, pace, on_changed)
        raise EngineError("no number is free for this node, or Cassandra does not answer")

    def folds(self) -> Collection[int]:
        return [each.fold for each in (self.me, *self.others.values()) if each]

    async def announce(self, me: NodeSeen) -> None:
        """Be seen by the others, and see them. Raises EngineError."""
        self.me = me
        outcome = await self._session.ask(BEAT, self._row(me))
        if isinstance(outcome, Failed):
            raise EngineError(outcome.why)
        self._read(await self._session.ask(READ, ()))

    def tick(self) -> None:
        now = self._pace()
        if self.me is None or self._under_way or now - self._beat_at < BEAT_MS:
            return
        self._beat_at, self._under_way = now, True
        self._session.execute(BEAT, self._row(self.me), lambda _: self._session.execute(READ, (), self._read))
        if now - self._kept_at >= NUMBER_S * 1_000 // 4:
            self._kept_at = now
            self._session.execute(KEEP, (self._life, self.number), lambda _: None)

    def _row(self, me: NodeSeen) -> tuple[str, int, str, int, int, str]:
        return me.name, me.number, me.address, me.fold, me.started, me.url

    def _read(self, found: Rows | Failed) -> None:
        self._under_way = False
        if isinstance(found, Failed):
            return
        seen = [NodeSeen(*row) for row in found]
        others = {each.number: each for each in seen if each.number != self.number}
        if others != self.others:
            self.others = others
            self._on_changed(others)

    async def leave(self) -> None:
        if self.me:
            await self._session.ask(LEAVE, (self.me.name,))
