"""The `Desk` of one node in a cluster: records go into the logs of their shards, questions to the shards' owners.

Knows:   which questions and answers this node still waits for.
Touches: the shared log, by appending; owners, through `Routing`; the node's devices, by prompts.
Never:   folds anything, or needs to know whether an owner was replaced: a record that is durable is answered by
         every owner that folds it, and a question that is not answered is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct

from nightmail.core.step import FOLDS
from nightmail.core.tracing import merged
from nightmail.engine.listeners import together
from nightmail.engine.ports import LetterSeen, Listener, Listing, Offered, ScheduleListing, ScheduleSeen
from nightmail.engine.questions import Questions
from nightmail.model.answers import Said
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.effects import Answer
from nightmail.model.group_questions import GroupAnswer, GroupQuestion, ToldSoFar
from nightmail.model.ids import DEVICE_BITS, MessageId, account_of, shard_of
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import Record
from nightmail.model.refusals import NotYet, Overloaded, Unavailable
from nightmail.model.rows import Account, KnownAccounts, PendingReceipt
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.traces import Trace
from nightmail.model.words import Lane, PushPlatform

from .answer_lines import AnswerLines
from .append_queue import AppendQueue, QueueLimits
from .ports import OwnerQuestions, Routing, SharedLog
from .prompts import PromptLimits, Prompts

T = TypeVar("T")


class DeskLimits(Struct, frozen=True):
    ask_again_ms: int = 300
    """Then a question is asked again: the owner may have been replaced, or the question lost."""
    queue: QueueLimits = QueueLimits()
    prompts: PromptLimits = PromptLimits()


class ClusterDesk:
    """Call `attend` before the first device connects, `take_answers` with what owners answer, and `tick` often."""

    def __init__(
        self,
        log: SharedLog,
        routing: Routing,
        lines: AnswerLines,
        clock: Callable[[], int],
        pace: Callable[[], int],
        limits: DeskLimits | None = None,
    ) -> None:
        self._lines, self._routing = lines, routing
        self._pace, self._limits = pace, limits or DeskLimits()
        self._questions = Questions(pace, self._limits.ask_again_ms)
        self._queues = [
            AppendQueue(log, shard, clock, pace, self._on_unknown, self._limits.queue) for shard in range(log.shards)
        ]
        self._listener: Listener | None = None
        self._prompts: Prompts | None = None

    def attend(self, *listeners: Listener) -> None:
        """Prompt these when news may have been lost. Owners' news reach them by the node's own links."""
        self._listener = together(*listeners)
        self._prompts = Prompts(self._listener, self.account, len(self._queues), self._pace, self._limits.prompts)

    def owner_changed(self, shard: int) -> None:
        """The shard has another owner: have its devices look again."""
        if self._prompts:
            self._prompts.owner_changed(shard)

    def tick(self) -> None:
        for queue in self._queues:
            queue.flush()
        self._lines.tick()
        self._questions.tick()
        if self._prompts:
            self._prompts.tick()

    @property
    def is_idle(self) -> bool:
        """Everything submitted is durable, or was answered: a node that stops waits for it."""
        return all(queue.is_idle for queue in self._queues)

    # --- records ------------------------------------------------------------------------------

    def open_line(self, on_answer: Callable[[int, Said], None]) -> int:
        return self._lines.open(on_answer)

    def close_line(self, line: int) -> None:
        self._lines.close(line)

    def submit(self, records: Sequence[Record]) -> None:
        self._submit([(self._shard_of(record.body.home(record.by)), record) for record in records])

    @property
    def shards(self) -> int:
        return len(self._queues)

    def submit_to(self, shard: int, record: Record) -> None:
        self._submit([(shard, record)])

    def _submit(self, records: Sequence[tuple[int, Record]]) -> None:
        touched: dict[int, AppendQueue] = {}
        refused: list[Answer] = []
        for shard, record in records:
            if record.via:
                self._lines.expect(record.via)
            queue = self._queues[shard]
            if refusal := self._refusal(record, shard, queue):
                refused.append(Answer(record.via, refusal))
            else:
                queue.add(record)
                touched[shard] = queue
        for queue in touched.values():
            queue.flush()
        if refused:
            self.take_answers(refused)

    def take_answers(self, answers: Sequence[Answer]) -> None:
        """Owners' answers to lines of this node; those that nobody here waits for are dropped."""
        for answer in answers:
            self._lines.take(answer.via, answer.said)
        if self._listener:
            self._listener.settled()

    def _refusal(self, record: Record, shard: int, queue: AppendQueue) -> Said | None:
        if type(record.body) not in FOLDS[self._routing.fold(shard)]:
            return NotYet()  # In the log it would be poison.
        if queue.is_full and not record.body.frees_space:
            return Overloaded()
        return None

    def _on_unknown(self, records: Sequence[Record]) -> None:
        self.take_answers([Answer(record.via, Unavailable()) for record in records])

    def note_connection(self, device: int, *, here: bool) -> None:
        if self._prompts:
            self._prompts.note_connection(device, here=here)
        if owner := self._owner(account_of(device)):
            owner.note_connection(device, here=here)

    # --- questions ----------------------------------------------------------------------------

    def offer(
        self, device: int, lane: Lane, after: int, limit: int, limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:  # fmt: skip
        def put(found: Callable[[Sequence[Offered], bool], None]) -> None:
            if owner := self._owner(account_of(device)):
                owner.offer(device, lane, after, limit, limit_bytes, found)

        self._questions.ask(put, then)

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        def put(found: Callable[[Sequence[PendingReceipt]], None]) -> None:
            if owner := self._owner(account_of(device)):
                owner.receipts(device, after, limit, found)

        self._questions.ask(put, then)

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        def put(found: Callable[[Account | None], None]) -> None:
            if owner := self._owner(account):
                owner.account(account, found)

        self._questions.ask(put, then)

    def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
        def put(found: Callable[[Account | None, KnownAccounts | None], None]) -> None:
            if owner := self._owner(account):
                owner.relations(account, found)

        self._questions.ask(put, then)

    def about_group(self, question: GroupQuestion, then: Callable[[GroupAnswer], None]) -> None:
        def put(found: Callable[[GroupAnswer], None]) -> None:
            if owner := self._owner(question.group):
                owner.about_group(question, found)

        self._questions.ask(put, then)

    def high_heads(self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]) -> None:
        def put(found: Callable[[Mapping[int, int]], None]) -> None:
            if owner := self._owner(account_of(devices[0])):
                owner.high_heads(devices, told, found)

        self._questions.ask(put, then)

    def push(self, device: int, then: Callable[[PushSeen | None], None]) -> None:
        def put(found: Callable[[PushSeen | None], None]) -> None:
            if owner := self._owner(account_of(device)):
                owner.push(device, found)

        self._questions.ask(put, then)

    def push_platforms(self, devices: Sequence[int], then: Callable[[Mapping[int, PushPlatform]], None]) -> None:
        def put(found: Callable[[Mapping[int, PushPlatform]], None]) -> None:
            if owner := self._owner(account_of(devices[0])):
                owner.push_platforms(devices, found)

        self._questions.ask(put, then)

    def attend_group(self, group: int, *, here: bool) -> None:
        # It is prompted like a device: after a takeover, and now and then, because news can be lost.
        if self._prompts:
            self._prompts.note_connection(group << DEVICE_BITS, here=here)

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        """Asks every shard: the id names its author, and what became of it lies with each recipient."""
        MessageId.parse(message_id)
        found: dict[int, Trace | None] = {}

        def heard(shard: int, part: Trace | None) -> None:
            found[shard] = part
            if len(found) == self.shards:
                parts = [part for part in found.values() if part is not None]
                then(merged(message_id, parts) if len(parts) == self.shards else None)

        for shard in range(self.shards):
            self._ask_shard(shard, lambda owner, told: owner.trace(message_id, told), partial(heard, shard))

    # --- schedules and dead letters -----------------------------------------------------------

    def schedule(self, account: int, ident: str, then: Callable[[ScheduleSeen | None], None]) -> None:
        self._ask_shard(self._shard_of(account), lambda owner, found: owner.schedule(account, ident, found), then)

    def schedules(
        self, account: int, wanted: ScheduleState | None, before: int, then: Callable[[ScheduleListing], None]
    ) -> None:
        home = self._shard_of(account)
        self._ask_shard(home, lambda owner, found: owner.schedules(account, wanted, before, found), then)

    def letter_counts(self, shard: int, then: Callable[[Mapping[str, int]], None]) -> None:
        self._ask_shard(shard, lambda owner, found: owner.letter_counts(shard, found), then)

    def letters(self, shard: int, error: str, page: int, then: Callable[[Listing], None]) -> None:
        self._ask_shard(shard, lambda owner, found: owner.letters(shard, error, page, found), then)

    def letter(self, shard: int, offset: int, then: Callable[[LetterSeen | None], None]) -> None:
        self._ask_shard(shard, lambda owner, found: owner.letter(shard, offset, found), then)

    # --- blobs --------------------------------------------------------------------------------

    def blob(self, name: BlobId, device: int, then: Callable[[BlobSeen | None], None]) -> None:
        self._ask_shard(self._shard_of(name.owner), lambda owner, found: owner.blob(name, device, found), then)

    def backups(self, account: int, then: Callable[[Sequence[tuple[BlobId, BlobSeen]]], None]) -> None:
        self._ask_shard(self._shard_of(account), lambda owner, found: owner.backups(account, found), then)

    def _ask_shard(
        self, shard: int, question: Callable[[OwnerQuestions, Callable[[T], None]], None], then: Callable[[T], None]
    ) -> None:
        def put(found: Callable[[T], None]) -> None:
            if owner := self._routing.owner(shard):
                question(owner, found)

        self._questions.ask(put, then)

    def _owner(self, account: int) -> OwnerQuestions | None:
        return self._routing.owner(self._shard_of(account))

    def _shard_of(self, account: int) -> int:
        return shard_of(account, len(self._queues))
