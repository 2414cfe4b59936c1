"""Asking the other nodes, one by one, whether a device may be woken.

Knows:   which votes are open, and since when a node has not answered.
Touches: the other nodes, by one question each.
Never:   takes silence for consent, until the node has been silent for as long as a seat lasts: then it is gone, or so
         cut off that it serves nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from msgspec import Struct

from .ports import Peers


class Vote(Struct):
    begun: int
    waiting: set[int]
    """Nodes that have not answered."""
    then: Callable[[int | None], None]


class Silence(Struct):
    since: int
    asked: int
    """The last time in vain."""


class WakeVotes:
    """Call `tick` several times a second."""

    def __init__(self, peers: Peers, vote_ms: int, silent_ms: int) -> None:
        self._peers, self._vote_ms, self._silent_ms = peers, vote_ms, silent_ms
        self._open: dict[int, Vote] = {}
        """By device; the oldest first."""
        self._silent: dict[int, Silence] = {}

    def is_open(self, device: int) -> bool:
        return device in self._open

    def begin(self, device: int, nodes: Collection[int], now: int, then: Callable[[int | None], None]) -> None:
        """`then(0)`: none of the nodes has anything against it; what the first says that has; None: nobody knows."""
        asked = [node for node in nodes if not self._is_gone(node, now)]
        if device in self._open:
            then(None)
        elif not asked:
            then(0)
        else:
            vote = self._open[device] = Vote(now, set(asked), then)
            for node in asked:
                self._peers.claim_wake(node, device, partial(self._answered, device, vote, node))

    def _answered(self, device: int, vote: Vote, node: int, wait_ms: int) -> None:
        self._silent.pop(node, None)
        if self._open.get(device) is not vote:
            return
        vote.waiting.discard(node)
        if wait_ms or not vote.waiting:
            del self._open[device]
            vote.then(wait_ms)

    def tick(self, now: int) -> None:
        while self._open:
            device, vote = next(iter(self._open.items()))
            if now - vote.begun < self._vote_ms:
                return
            del self._open[device]
            for node in vote.waiting:
                silence = self._silent.get(node)
                if silence is None or now - silence.asked > self._silent_ms:
                    self._silent[node] = Silence(vote.begun, now)  # Nobody has asked it for so long.
                else:
                    silence.asked = now
            vote.then(None)

    def _is_gone(self, node: int, now: int) -> bool:
        silence = self._silent.get(node)
        return silence is not None and now - silence.since > self._silent_ms >= now - silence.asked
