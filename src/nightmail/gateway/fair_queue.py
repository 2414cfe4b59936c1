"""A queue in which networks take turns: one that brings many waits behind itself, not before the others.

Knows:   what waits, by network, oldest first.
Touches: nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    def __init__(self) -> None:
        self._by_network: dict[str, deque[T]] = {}
        """The network that is next comes first. None is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, what: T, network: str) -> None:
        """An unknown network ("") is one like the others."""
        if (waiting := self._by_network.get(network)) is None:
            waiting = self._by_network[network] = deque()
        waiting.append(what)
        self._count += 1

    def take(self) -> T:
        """The oldest of the network whose turn it is. Then it is the next network's turn."""
        network = next(iter(self._by_network))
        waiting = self._by_network.pop(network)
        what = waiting.popleft()
        if waiting:
            self._by_network[network] = waiting
        self._count -= 1
        return what
