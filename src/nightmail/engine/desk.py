"""The `Desk` of one machine: between sessions and the loop.

Knows:   which line an answer belongs to, and which questions still wait for rows.
Touches: the loop, by `submit` and `read`.
Never:   a socket: sessions have those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter

from nightmail.core.blobs.reading import backups_seen, blob_seen, needs_backups, needs_seen
from nightmail.core.groups import answering
from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters import seen as letters_seen
from nightmail.core.letters.pages import Listing
from nightmail.core.letters.seen import LetterSeen
from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.pushes.reading import needs_platforms, needs_push, platforms_seen, push_seen
from nightmail.core.receipts import needs_receipts, receipts_after
from nightmail.core.schedules import reading
from nightmail.core.schedules.reading import ScheduleListing, ScheduleSeen
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Said
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.effects import (
    Answer,
    Call,
    Dismissed,
    Effect,
    Grew,
    LookForBytes,
    Low,
    ReceiptsGrew,
    RemoveBytes,
    Wake,
)
from nightmail.model.group_questions import GroupAnswer, GroupQuestion, ToldSoFar
from nightmail.model.ids import MessageId
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import Record
from nightmail.model.rows import Account, Entry, Gap, Kept, KnownAccounts, Need, PendingReceipt, RowKey
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.traces import Trace
from nightmail.model.words import Lane, PushPlatform, Reason

from .listeners import together
from .loop import Loop
from .ports import REF_BITS, Listener, Offered
from .questions import Questions
from .trace import Tracer

REF_MASK = (1 << REF_BITS) - 1
LINE_BITS = 64 - REF_BITS

ASK_AGAIN_MS = 1_000
"""Then a question is asked again: rows could not be read, or the state was rebuilt meanwhile."""

_ciphertext_of = attrgetter("ciphertext")


class LoopDesk:
    """A `Desk`. Give `on_effects` to the loop, and the loop to `attend`."""

    def __init__(self, entropy: Callable[[int], bytes], pace: Callable[[], int]) -> None:
        # The log may still name lines of an earlier process: begin at a random place.
        self._next_line = int.from_bytes(entropy(LINE_BITS // 8), "little") >> 1
        self._lines: dict[int, Callable[[int, Said], None]] = {}
        self._questions = Questions(pace, ASK_AGAIN_MS)
        self._loop: Loop | None = None
        self._listener: Listener | None = None
        self._tracer: Tracer | None = None
        self._on_call: Callable[[Call], None] | None = None
        self._on_wake: Callable[[int], None] | None = None
        self._on_bytes: Callable[[RemoveBytes | LookForBytes], None] | None = None

    def attend(
        self, loop: Loop, *listeners: Listener, tracer: Tracer | None = None,
        on_call: Callable[[Call], None] | None = None, on_wake: Callable[[int], None] | None = None,
        on_bytes: Callable[[RemoveBytes | LookForBytes], None] | None = None,
    ) -> None:  # fmt: skip
        """Each listener is told everything, in the order given. Without a tracer nothing is traced; without `on_call`
        no webhook is called, without `on_wake` no device is woken, without `on_bytes` no bytes are removed."""
        self._loop, self._listener, self._tracer = loop, together(*listeners), tracer
        self._on_call, self._on_wake, self._on_bytes = on_call, on_wake, on_bytes

    # --- in -----------------------------------------------------------------------------------

    def open_line(self, on_answer: Callable[[int, Said], None]) -> int:
        self._next_line = line = self._next_line % ((1 << LINE_BITS) - 1) + 1
        self._lines[line] = on_answer
        return line

    def close_line(self, line: int) -> None:
        self._lines.pop(line, None)

    def submit(self, records: Sequence[Record]) -> None:
        assert self._loop is not None
        self._loop.submit_all(records)

    @property
    def shards(self) -> int:
        return 1

    def submit_to(self, shard: int, record: Record) -> None:
        assert shard == 0
        self.submit([record])

    def note_connection(self, device: int, *, here: bool) -> None:
        assert self._loop is not None
        self._loop.note_connection(device, here=here)

    # --- looking ------------------------------------------------------------------------------

    def offer(
        self, device: int, lane: Lane, after: int, limit: int, limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:  # fmt: skip
        state = self._state
        if state is not None and (offered := _offer_at_once(state, device, lane, after, limit, limit_bytes)):
            then(*offered)
        elif state is not None and not needs_offer(state, device, lane, after, limit):
            then(*_offer(state, device, lane, after, limit, limit_bytes))
        else:
            self._wait(
                lambda state: needs_offer(state, device, lane, after, limit),
                lambda state: then(*_offer(state, device, lane, after, limit, limit_bytes)),
            )

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        state = self._state
        if state is not None and not needs_receipts(state, device):
            then(receipts_after(state, device, after, limit))
        else:
            self._wait(
                lambda state: needs_receipts(state, device),
                lambda state: then(receipts_after(state, device, after, limit)),
            )

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        state = self._state
        if state is not None and account in state.accounts:
            then(state.accounts[account])
        else:
            self._wait(
                lambda state: () if account in state.accounts else (RowKey(Kept.ACCOUNT, account),),
                lambda state: then(state.accounts[account]),
            )

    def relations(self, account: int, then: Callable[[Account | None, KnownAccounts | None], None]) -> None:
        state = self._state
        # Every watched account is looked at again and again: in the tables' own dicts.
        if state is not None and account in (rows := state.accounts.rows) and account in (known := state.known.rows):
            then(rows[account], known[account])
        else:
            self._wait(
                lambda state: _needs_relations(state, account),
                lambda state: then(state.accounts[account], state.known[account]),
            )

    def about_group(self, question: GroupQuestion, then: Callable[[GroupAnswer], None]) -> None:
        state = self._state
        if state is not None and not answering.needs_answer(state, question):
            then(answering.answer(state, question))
        else:
            self._wait(
                lambda state: answering.needs_answer(state, question),
                lambda state: then(answering.answer(state, question)),
            )

    def high_heads(self, devices: Sequence[int], told: ToldSoFar, then: Callable[[Mapping[int, int]], None]) -> None:
        state = self._state
        if state is not None and not _needs_mailboxes(state, devices):
            then(_high_heads(state, devices))
        else:
            self._wait(lambda state: _needs_mailboxes(state, devices), lambda state: then(_high_heads(state, devices)))

    def push(self, device: int, then: Callable[[PushSeen | None], None]) -> None:
        self._wait(lambda state: needs_push(state, device), lambda state: then(push_seen(state, device)))

    def push_platforms(self, devices: Sequence[int], then: Callable[[Mapping[int, PushPlatform]], None]) -> None:
        self._wait(
            lambda state: needs_platforms(state, devices),
            lambda state: then(platforms_seen(state, devices)),
        )

    def attend_group(self, group: int, *, here: bool) -> None:
        """The listener is told everything in any case."""

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        MessageId.parse(message_id)
        assert self._loop is not None
        if self._tracer is None or not self._loop.ready:
            then(None)
            return
        self._tracer.ask(message_id, *self._loop.unsaved_notes(), then)

    # --- schedules and dead letters -----------------------------------------------------------

    def schedule(self, account: int, ident: str, then: Callable[[ScheduleSeen | None], None]) -> None:
        self._wait(
            lambda state: reading.needs_one(state, account, ident),
            lambda state: then(reading.one(state, account, ident)),
        )

    def schedules(
        self, account: int, wanted: ScheduleState | None, before: int, then: Callable[[ScheduleListing], None]
    ) -> None:
        self._wait(
            lambda state: reading.needs_listing(state, account, wanted, before),
            lambda state: then(reading.listing(state, account, wanted, before)),
        )

    def letter_counts(self, shard: int, then: Callable[[Mapping[str, int]], None]) -> None:
        assert shard == 0
        self._wait(letter_pages.needs_counts, lambda state: then(letter_pages.counts(state)))

    def letters(self, shard: int, error: str, page: int, then: Callable[[Listing], None]) -> None:
        assert shard == 0
        self._wait(
            lambda state: letter_pages.needs_listing(state, error, page),
            lambda state: then(letter_pages.listing(state, error, page)),
        )

    def letter(self, shard: int, offset: int, then: Callable[[LetterSeen | None], None]) -> None:
        assert shard == 0
        self._wait(
            lambda state: letters_seen.needs_letter(state, offset),
            lambda state: then(letters_seen.letter_seen(state, offset)),
        )

    # --- blobs --------------------------------------------------------------------------------

    def blob(self, name: BlobId, device: int, then: Callable[[BlobSeen | None], None]) -> None:
        self._wait(lambda state: needs_seen(state, name, device), lambda state: then(blob_seen(state, name, device)))

    def backups(self, account: int, then: Callable[[Sequence[tuple[BlobId, BlobSeen]]], None]) -> None:
        self._wait(lambda state: needs_backups(state, account), lambda state: then(backups_seen(state, account)))

    @property
    def _state(self) -> ShardState | None:
        """What is in memory, if it may be looked at."""
        assert self._loop is not None
        return self._loop.state if self._loop.ready else None

    def _wait(self, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]) -> None:
        """Ask for rows that are not in memory."""
        assert self._loop is not None
        self._questions.ask(partial(self._loop.read, wanted), then)

    def tick(self) -> None:
        """Ask again what was not answered."""
        self._questions.tick()

    # --- out ----------------------------------------------------------------------------------

    def on_effects(self, effects: Sequence[Effect]) -> None:
        lines, listener = self._lines, self._listener
        assert listener is not None
        grown: dict[Grew, None] = {}
        """A busy device is told once, however much came."""
        for effect in effects:
            if type(effect) is Answer:
                if on_answer := lines.get(effect.via >> REF_BITS):
                    on_answer(effect.via & REF_MASK, effect.said)
            elif type(effect) is Grew:
                grown[effect] = None
            elif type(effect) is ReceiptsGrew:
                listener.changed(effect.device)
            elif type(effect) is Dismissed:
                listener.dismissed(effect.device)
            elif type(effect) is Low:
                listener.low(effect.device)
            elif type(effect) is Call and self._on_call:
                self._on_call(effect)
            elif type(effect) is Wake and self._on_wake:
                self._on_wake(effect.device)
            elif isinstance(effect, RemoveBytes | LookForBytes) and self._on_bytes:
                self._on_bytes(effect)
        for grew in grown:
            listener.grew(grew.device, grew.lane)
        listener.settled()


def _needs_relations(state: ShardState, account: int) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account, missing)
    missing_row(state.known, Kept.KNOWN, account, missing)
    return missing


def _needs_mailboxes(state: ShardState, devices: Sequence[int]) -> list[Need]:
    missing: list[Need] = []
    for device in devices:
        missing_row(state.mailboxes, Kept.MAILBOX, device, missing)
    return missing


def _high_heads(state: ShardState, devices: Sequence[int]) -> dict[int, int]:
    boxes = ((device, state.mailboxes[device]) for device in devices)
    return {device: box.lanes[Lane.HIGH].head if box else 0 for device, box in boxes}


def _offer_at_once(
    state: ShardState, device: int, lane: Lane, after: int, limit: int, limit_bytes: int
) -> tuple[list[Offered], bool] | None:
    """What `_offer` says in the usual case: all that waits is in memory, and nothing is missing in between."""
    mailbox, entries = state.mailboxes.rows.get(device), state.entries.get(device << 1 | lane)
    if mailbox is None or entries is None:
        return None
    queue = mailbox.lanes[lane]
    head = queue.head
    if queue.gaps or not queue.acked <= after < head or len(entries) != queue.waiting:
        return None
    last = min(head, after + limit)
    run = tuple(map(entries.__getitem__, range(after + 1, last + 1)))
    size = sum(map(len, map(_ciphertext_of, run)))
    return ([(after + 1, run)], head > last) if size <= limit_bytes else None


def _offer(
    state: ShardState, device: int, lane: Lane, after: int, limit: int, limit_bytes: int
) -> tuple[list[Offered], bool]:
    """Consecutive entries together, up to so many bytes; and whether there is more."""
    mailbox = state.mailboxes[device]
    if mailbox is None:
        return [], False
    queue = mailbox.lanes[lane]
    runs: list[Offered] = []
    entries: list[Entry] = []
    first = last = size = 0
    if after < queue.acked:
        # It acknowledged these, and has forgotten: restored from a backup, perhaps. They will not come again.
        last = queue.acked
        runs.append(Gap(after + 1, last, Reason.ACKNOWLEDGED))
    for item in offer(state, device, lane, after, limit):
        if isinstance(item, tuple):
            if size >= limit_bytes:
                break
            last, entry = item
            if not entries:
                first = last
            entries.append(entry)
            size += len(entry.ciphertext)
        else:
            if entries:
                runs.append((first, tuple(entries)))
                entries = []
            runs.append(item)
            last = item.high
    if entries:
        runs.append((first, tuple(entries)))
    return runs, queue.head > max(last, after)
