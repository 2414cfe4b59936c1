"""The other nodes, asked whether a device may be woken: `Peers` over the links.

Never:   repeats a question that a link has lost: its vote ends, and is begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

import msgspec

from .exchange import Exchange

CLAIM_WAKE = "claim_wake"
_number = msgspec.msgpack.Decoder(int)


class LinkPeers:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def nodes(self) -> Collection[int]:
        return self._exchange.nodes

    def claim_wake(self, node: int, device: int, then: Callable[[int], None]) -> None:
        def replied(result: bytes) -> None:
            with suppress(msgspec.DecodeError):  # As good as no answer.
                then(_number.decode(result))

        self._exchange.ask_node(node, CLAIM_WAKE, msgspec.msgpack.encode(device), replied)

    def answer_by(self, asked: Callable[[int, int], int]) -> None:
        """What this node says to another one that asks: `ClusterRegistry.asked`."""
        self._exchange.answers[CLAIM_WAKE] = lambda node, arguments: msgspec.msgpack.encode(
            asked(node, _number.decode(arguments))
        )
