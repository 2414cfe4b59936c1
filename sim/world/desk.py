"""The counter of a cluster: whoever asks at one node is answered by the owner of the shard.

Knows:   which questions still wait, and which answers.
Touches: partitions, by appending; owners, by looking. The owner that is asked may be one that was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from nightmail.engine.desk import LoopDesk
from nightmail.engine.ports import REF_BITS, Offered
from nightmail.model.answers import Said
from nightmail.model.ids import account_of, shard_of
from nightmail.model.records import Record, encode_record
from nightmail.model.refusals import Unavailable
from nightmail.model.rows import Account, PendingReceipt
from nightmail.model.traces import Trace
from nightmail.model.words import Lane

from .world import Broken

if TYPE_CHECKING:
    from .cluster import Cluster, Owner

ASK_AGAIN_MS = 300
"""Then a question is asked again: whoever was asked may be no more."""
Look: TypeAlias = "Callable[[Owner, LoopDesk], None]"
Question: TypeAlias = "tuple[int, Look, int]"
REF_MASK = (1 << REF_BITS) - 1


class Lines:
    """Who waits for which answer, all over the cluster."""

    def __init__(self) -> None:
        self._lines: dict[int, Callable[[int, Said], None]] = {}
        self._waiting: set[int] = set()
        self._said: dict[int, Said] = {}
        self._last = 0

    def open(self, on_answer: Callable[[int, Said], None]) -> int:
        self._last += 1
        self._lines[self._last] = on_answer
        return self._last

    def close(self, line: int) -> None:
        self._lines.pop(line, None)

    def expect(self, via: int) -> None:
        self._waiting.add(via)

    def fail(self, via: int) -> None:
        """Nobody knows what became of it."""
        self._answer(via, Unavailable())

    def answer(self, via: int, said: Said) -> None:
        """What one owner says, every owner says."""
        if not via:
            return
        if (first := self._said.setdefault(via, said)) != said:
            raise Broken("owners agree", f"one was answered {first!r}, then {said!r}")
        self._answer(via, said)

    def _answer(self, via: int, said: Said) -> None:
        if via in self._waiting:
            self._waiting.discard(via)
            if on_answer := self._lines.get(via >> REF_BITS):
                on_answer(via & REF_MASK, said)


class ClusterDesk:
    """A `Desk` at one node."""

    def __init__(self, cluster: Cluster, node: int) -> None:
        self._cluster, self._node, self._world = cluster, node, cluster.world
        self._waiting: dict[int, Question] = {}
        self._asked = 0
        self.devices: set[int] = set()
        """Whose mailboxes were looked into."""

    def open_line(self, on_answer: Callable[[int, Said], None]) -> int:
        return self._cluster.lines.open(on_answer)

    def close_line(self, line: int) -> None:
        self._cluster.lines.close(line)

    def submit(self, records: Sequence[Record]) -> None:
        cluster = self._cluster
        homes: dict[int, list[Record]] = {}
        for record in records:
            if record.via:
                cluster.lines.expect(record.via)
            homes.setdefault(shard_of(record.body.home(record.by), cluster.shards), []).append(record)
        for shard, mine in homes.items():
            self._append(shard, mine)

    def _append(self, shard: int, records: list[Record]) -> None:
        def appended(first: int | None) -> None:
            if first is not None:
                return
            for record in records:
                if record.via:
                    self._cluster.lines.fail(record.via)
            # Nobody waits for an answer to the others, so nobody else would say them again.
            if unheard := [record for record in records if not record.via]:
                self._world.later(ASK_AGAIN_MS, lambda: self._append(shard, unheard))

        data = [encode_record(record) for record in records]
        self._cluster.partitions[shard].append(self._cluster.clock(self._node), data, appended)

    def note_connection(self, device: int, *, here: bool) -> None:
        shard = shard_of(account_of(device), self._cluster.shards)
        self._ask(shard, lambda _, desk: desk.note_connection(device, here=here))

    # --- looking ------------------------------------------------------------------------------------

    def offer(
        self, device: int, lane: Lane, after: int, limit: int, limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:  # fmt: skip
        number = self._number()
        self.devices.add(device)

        def found(items: Sequence[Offered], more: bool) -> None:
            if self._waiting.pop(number, None):
                then(items, more)

        def look(owner: Owner, desk: LoopDesk) -> None:
            if owner.head(device, lane) < after:
                self._world.hit("owner behind client")
            desk.offer(device, lane, after, limit, limit_bytes, found)

        self._begin(number, account_of(device), look)

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        number = self._number()

        def found(receipts: Sequence[PendingReceipt]) -> None:
            if self._waiting.pop(number, None):
                then(receipts)

        self._begin(number, account_of(device), lambda _, desk: desk.receipts(device, after, limit, found))

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        number = self._number()

        def found(row: Account | None) -> None:
            if self._waiting.pop(number, None):
                then(row)

        self._begin(number, account, lambda _, desk: desk.account(account, found))

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        then(None)

    def _number(self) -> int:
        self._asked += 1
        return self._asked

    def _begin(self, number: int, account: int, ask: Look) -> None:
        shard = shard_of(account, self._cluster.shards)
        self._waiting[number] = shard, ask, self._world.now
        self._ask(shard, ask)

    def _ask(self, shard: int, ask: Look) -> None:
        owner = self._cluster.whoever_serves(shard)
        if owner.desk:
            ask(owner, owner.desk)

    def tick(self) -> None:
        late = self._world.now - ASK_AGAIN_MS
        for number, (shard, ask, asked) in list(self._waiting.items()):
            if asked <= late and number in self._waiting:
                self._waiting[number] = shard, ask, self._world.now
                self._ask(shard, ask)
