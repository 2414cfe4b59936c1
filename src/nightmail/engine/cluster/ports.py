"""What the nodes of a cluster need of each other and of the engines they share.

Knows:   the log of all shards, who owns a shard, the way of an answer, which folds the nodes support.
Never:   promises more than a network can: a call may be lost, an owner may have been replaced.

The manner is that of `engine/ports.py`: a call never blocks; what takes time is answered by a callback on
the thread that the loops run on, possibly before the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from nightmail.engine.blobs.port import BlobRecords
from nightmail.engine.ports import Failed, Mailboxes, Rows, Schedules, Seat, Stored
from nightmail.model.effects import Answer

OpenRows: TypeAlias = Callable[[Callable[[Rows | Failed], None]], None]
"""Open the rows of one shard where their pointer stands; `WideRows.open` with a store and a shard."""


class Follower(Protocol):
    """What is told the batches of one shard's log."""

    def take(self, batch: Stored) -> None:
        """The next batch."""
        ...

    def trimmed_away(self) -> None:
        """The log now begins above the next batch: another owner has saved it. Nothing follows any more."""
        ...


PLACE_UNKNOWN = 0
"""An append is durable, and only reading the log tells where: its answer was lost, and a repetition was recognized."""


class SharedLog(Protocol):
    """One log per shard. Every node may append to each; each has its own offsets, from 1, as a `Log` has."""

    @property
    def shards(self) -> int:
        """How many there are. Never changes."""
        ...

    @property
    def span(self) -> int:
        """As `Log.span`."""
        ...

    @property
    def batch_bytes_max(self) -> int:
        """The most that one append may hold, counting `RECORD_OVERHEAD` for each record."""
        ...

    def append(self, shard: int, at: int, records: Sequence[bytes], done: Callable[[int | None], None]) -> None:
        """Make a batch durable. `done(first offset)`, `done(PLACE_UNKNOWN)`, or `done(None)`: nobody knows, for good.

        After None the batch, or a part of it, may be found in the log now, later or never. Calls may overlap;
        an implementation that can reorder what is under way sends one after the other.
        """
        ...

    def end(self, shard: int, done: Callable[[int | Failed], None]) -> None:
        """The end of the newest durable batch (`Stored.last`). Covers every append answered before the call."""
        ...

    def follow(self, shard: int, after: int, follower: Follower) -> Callable[[], None]:
        """Hand every batch that ends above `after` to `follower`, in order, as they come. Returns how to stop.

        `after` is the end of a batch, or 0.
        """
        ...

    def trim(self, shard: int, upto: int, now: int) -> None:
        """Offsets up to `upto` are never needed again, by any owner. `now` lets old bytes age, as in `Log.trim`."""
        ...


class OwnerQuestions(Mailboxes, Schedules, BlobRecords, Protocol):
    """What one owner answers. Questions about dead letters name its own shard."""


class Routing(Protocol):
    """Who owns which shard, as far as this node knows. It may be wrong: then a question is not answered, or late."""

    def owner(self, shard: int) -> OwnerQuestions | None:
        """The owner, in this process or a stand-in that asks another node. None: there is none at the moment."""
        ...

    def fold(self, shard: int) -> int:
        """A fold version that the shard is known to have reached. Since folds only rise, an old answer is safe."""
        ...


class AnswerDelivery(Protocol):
    """The way from an owner to the node that holds an answer's line (`answer_lines.node_of`)."""

    def deliver(self, answers: Sequence[Answer]) -> None:
        """Hand them to that node's `ClusterDesk.take_answers`.

        An answer to a node that is gone is lost; any may come twice.
        """
        ...


class Nodes(Protocol):
    """The nodes that belong to the cluster, each with the newest fold it supports, which it announces when it joins."""

    def folds(self) -> Collection[int]:
        """Of every node, as far as this one knows. A node that is missing here and too old stops by itself."""
        ...


# --- who is connected where ---------------------------------------------------------------------


class WakeClaim(NamedTuple):
    """What became of claiming a wake."""

    wait_ms: int
    """As `Registry.claim_wake` has it."""
    unsigned: Collection[int] = ()
    """Nodes of which it is not known whom they hold."""


class SharedSeats(Protocol):
    """Seats in a place that all nodes share, which may be slow, be away, and lose everything.

    What has failed may have happened all the same, and does not happen later. What is asked for happens in order; if
    something fails, so does all that was asked for behind it and is not answered. Each seat ends by itself after its
    lifetime.
    """

    def take(self, device: int, seat: Seat, done: Callable[[int | Failed], None], *, wins: bool) -> None:
        """Sit down: `done(since)`, by which the seat is stored; 0: somebody has sat down later, elsewhere.

        Who `wins` sits down in any case, with a `since` greater than that of the seat before.
        """
        ...

    def leave(self, device: int, seat: Seat, done: Callable[[bool | Failed], None]) -> None:
        """Get up, if the connection is that of `seat`."""
        ...

    def find(self, device: int, done: Callable[[Seat | None | Failed], None]) -> None: ...

    def sign(self, node: int, epoch: str, *, is_whole: bool, done: Callable[[str | Failed], None]) -> None:
        """`done(epoch)`: another one each time that everything was lost.

        A node that `is_whole`, that is, has all its seats here, signs for it, if the epoch is still `epoch`.
        """
        ...

    def claim(
        self, device: int, epoch: str, nodes: Collection[int], done: Callable[[WakeClaim | Failed], None]
    ) -> None:
        """WakeClaim to wake the device, and see which of `nodes` have not signed. Failed, if the epoch is another."""
        ...


class Peers(Protocol):
    """The other nodes, asked one by one."""

    @property
    def nodes(self) -> Collection[int]:
        """Their numbers, as far as they are known."""
        ...

    def claim_wake(self, node: int, device: int, then: Callable[[int], None]) -> None:
        """Ask one of them, as `Registry.claim_wake`, for what it knows itself. May never be answered."""
        ...
