"""The registry of a node, put together: Redis if there is one, and the links to the other nodes.

Knows:   the settings of each.
Touches: Redis, by its link.
Never:   keeps a node from starting: while Redis is away, nodes ask each other.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.cluster.links.exchange import Exchange
from nightmail.engine.cluster.links.peers import LinkPeers
from nightmail.engine.cluster.redis.link import RedisLink
from nightmail.engine.cluster.redis.scripts import RedisKeys
from nightmail.engine.cluster.redis.seats import RedisSeats
from nightmail.engine.cluster.redis.settings import RedisSettings
from nightmail.engine.cluster.registry import ClusterRegistry, RegistryLimits
from nightmail.server.heart import pace
from nightmail.server.observe import log


class NodeRegistry:
    """Made on the event loop. Call `tick` often, and `close` at the end."""

    def __init__(
        self, settings: RedisSettings, number: int, exchange: Exchange, seat_ms: int,
        run: Callable[[Callable[[], None]], None],
    ) -> None:  # fmt: skip
        """Raises EngineError if the settings make no sense."""
        self._link = RedisLink(settings, pace, run) if settings.redis_url else None
        keys = RedisKeys(settings.redis_prefix)
        seats = RedisSeats(self._link, keys, seat_ms, settings.redis_timeout_ms, pace) if self._link else None
        peers = LinkPeers(exchange)
        self.registry = ClusterRegistry(number, seats, peers, pace, RegistryLimits(seat_ms))
        peers.answer_by(self.registry.asked)
        self._was_away = False
        if self._link is None:
            log.warning("cluster.redis_url is not set: before each push all nodes are asked who is connected")

    @property
    def is_away(self) -> bool:
        """Whether there is a Redis, and it does not answer."""
        return self._link is not None and self.registry.away

    @property
    def failures(self) -> int:
        """Pipelines that Redis did not answer."""
        return self._link.failures if self._link else 0

    def tick(self) -> None:
        self.registry.tick()
        if self.is_away != self._was_away:
            self._was_away = self.is_away
            if self._was_away:
                log.warning("Redis does not answer; nodes ask each other who is connected")
            else:
                log.info("Redis answers")

    async def close(self) -> None:
        if self._link:
            await self._link.close()
