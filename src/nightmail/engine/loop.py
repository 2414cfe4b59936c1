"""The one loop: append → durable → fold → effects → checkpoint → recover.

Knows:   the ports, and when each may be called.
Never:   folds what is not durable, or lets the world decide what a record means.

    L1  step depends only on (state after offset - 1, record).
    L2  a replay starts exactly where its checkpoint ends, never on newer rows.
    L3  nothing of the environment (a timeout, a failed write, a retry count) decides a record's fate.
    L4  a row's version is the offset of the last record that changed it; (key, version) determines the bytes.

A batch goes out as soon as the one before it is durable; that one is folded meanwhile. Only a small
one lingers, for `linger_ms` at most. Nothing here waits or sleeps: the loop's driver calls `flush`
after it has submitted something and `tick` a few times a second, and calls back `later`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from nightmail.core.due import is_due
from nightmail.core.groups.sending import answer_from_memory as answer_in_group
from nightmail.core.numbering import answer_from_memory
from nightmail.core.state import ShardState
from nightmail.core.step import FOLDS
from nightmail.model.answers import Said
from nightmail.model.clock import ClockSeen
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.notes import ConnectionChanged, Note
from nightmail.model.records import (
    AnyBody,
    ClockDoubted,
    FoldRaised,
    GroupSealed,
    GroupSent,
    LimitsSet,
    Record,
    Sent,
    Ticked,
    encode_record,
)
from nightmail.model.refusals import DiskFull, NotYet, Overloaded, Unavailable
from nightmail.model.rows import Need

from .batching import count_fitting, records_at_once
from .clock import BatchClock, ClockLimits
from .folding import Durable, Folded, Folding
from .forwarder import Forwarder
from .ports import Checkpoint, EngineError, Log, Rows, Stored
from .saver import Saver, SaverLimits
from .unheard_acks import UnheardAcks
from .watcher import Watcher

TRIM_MS = 60_000
"""How often the log may age when nothing happens."""

TRIM_TIGHT_MS = 1_000
"""How often space is looked for when it ran out."""
QUIET_MS = 20
"""After this long without a batch, the next one goes at once: nobody else is there to wait for."""
REPEAT_MS = 1_000
"""After a failed append, before acknowledgements are written down again: a broken disk is not to be hammered."""
FORGET_MS = 3_600_000
"""How often old lines of the delivery log are dropped."""

TICK = Record(SERVER, 0, Ticked())


class LoopLimits(Struct, frozen=True):
    batch_records: int = 4_096
    """Records made durable together: bounds how long one fold keeps the loop."""
    batch_bytes: int = 4 * 1024 * 1024
    """Likewise, in bytes; one record may be larger."""
    linger_ms: int = 1
    """A small batch waits this long for company, because it costs as much as a large one. 0: never."""
    linger_records: int = 64
    """A batch of so many records is not small."""
    unsaved_rows: int = 400_000
    """Changed rows and forwards that may wait for a checkpoint before sends are refused: bounds memory and recovery."""
    unsaved_bytes: int = 256 * 1024 * 1024
    """Likewise, bytes of entries and forwards: bounds memory while the disk does not keep up."""
    notes_ms: int = 30 * DAY_MS
    """How long the delivery log remembers."""
    saver: SaverLimits = SaverLimits()
    clock: ClockLimits = ClockLimits()


class Loop:
    """One shard: the only place where its log, its fold and its rows meet."""

    def __init__(
        self,
        log: Log,
        rows: Rows,
        clock: Callable[[], int],
        on_effects: Callable[[Sequence[Effect]], None],
        *,
        new_state: Callable[[], ShardState] = ShardState,
        forwarder: Forwarder | None = None,
        pace: Callable[[], int] | None = None,
        later: Callable[[int, Callable[[], None]], None] | None = None,
        limits: LoopLimits | None = None,
        watcher: Watcher | None = None,
        folder_ms: int = 0,
    ) -> None:
        """`folder_ms` is the newest time that the data folder remembers beside the log; 0: none."""
        self._log, self._rows, self._on_effects = log, rows, on_effects
        self._pace = pace or clock
        """Milliseconds that never jump, for waiting; `clock` is for stamping, and may be set at any time."""
        self._later = later
        """Calls back after so many ms. Without it no batch lingers."""
        self._forwarder = forwarder
        self._watcher = watcher or Watcher()
        self.limits = limits or LoopLimits()
        self._span = log.span
        self._at_once = records_at_once(self.limits.batch_records, log.span)
        self._clock = BatchClock(
            clock, self._pace, lambda: self.state.shard.now, folder_ms, self.limits.clock, self._watcher.on_clock
        )
        self._folding = Folding(
            log, rows, new_state, self._folded, self._watcher.on_poison, self._watcher.on_trouble, self._begin
        )
        self._saver = Saver(rows, self.limits.saver, self._saved, self._watcher.on_trouble, forwarder)
        self._records: list[Record] = []
        """Submitted, not yet on its way to the log."""
        self._data: list[bytes] = []
        """Their bytes, one by one."""
        self._appending: Durable | None = None
        """On its way to the log; durable once the log says where it begins."""
        self._lingering = False
        self._went_at = -QUIET_MS
        """When the last batch went out."""
        self._unheard = UnheardAcks()
        self._failed_at = 0
        self._tick_end: int | None = 0
        """The end of the newest batch with a `Ticked`; None while that is not durable. No other follows before it."""
        self._overloaded = False
        self._trimmed_at = 0
        self._forgot_at = 0
        self._believed_at = -REPEAT_MS
        """When it was last submitted that the clock is believed."""
        self._announced = 0
        """The newest offset whose effects were handed out: a rebuild does not repeat them."""

    @property
    def state(self) -> ShardState:
        return self._folding.state

    @property
    def ready(self) -> bool:
        folding = self._folding
        return folding.ready and not folding.wants_rebuild and folding.stopped is None

    @property
    def stopped(self) -> EngineError | None:
        """Why it cannot go on: it takes, folds and saves nothing from here on, and its driver ends."""
        return self._folding.stopped

    @property
    def caught_up(self) -> bool:
        """Everything that is known to be durable is folded."""
        return self.ready and self._folding.caught_up

    @property
    def folded_upto(self) -> int:
        """The newest record that is folded with all that follows from it."""
        return self._folding.folded_upto

    @property
    def idle(self) -> bool:
        """Everything submitted is durable and folded, and nothing is being saved."""
        return self.caught_up and self._appending is None and not self._records and self._saver.idle

    @property
    def clock_seen(self) -> ClockSeen:
        """What the wall clock says, what is thought of it, and the time that the shard goes by."""
        if self.ready:
            self._clock()
        return self._clock.seen

    def recover(self, announce_after: int | None = None) -> None:
        """Start from the checkpoint, and fold what the log has behind it; `ready` when that is done.

        Answers to records up to `announce_after` are not given again: by default, to none of those
        that were durable before, because the sessions that asked are gone.
        """
        self._announced = self._log.last if announce_after is None else announce_after
        self._folding.rebuild()

    def adopt(self, fold: int, limits: FoldLimits) -> bool:
        """Have it written down which fold and which limits decide, if others do. True: it is so.

        Those records may be lost like any other: the caller asks again until it is so.
        """
        shard = self.state.shard
        if shard.fold < fold:
            self.submit(Record(SERVER, 0, FoldRaised(fold)))
        if shard.limits != limits:
            self.submit(Record(SERVER, 0, LimitsSet(limits)))
        self.flush()
        return shard.fold >= fold and shard.limits == limits

    # --- from the sessions --------------------------------------------------------------------

    def submit(self, record: Record, data: bytes | None = None) -> None:
        """Take a record whose form and rights were checked. It is answered by an effect, sooner or later.

        `data` spares encoding it again where its bytes came over the wire.
        """
        body = record.body
        if not self.ready:
            self._say(record, Unavailable())
        elif known := _known(self._folding.state, record):
            self._watcher.on_repeated()
            self._say(record, known)  # A retry: the log has it already.
        elif type(body) not in FOLDS[self._folding.state.shard.fold]:
            self._say(record, NotYet())  # In the log it would be poison.
        elif (self._overloaded or self._log.tight) and (refusal := self._refusal(body)):
            self._say(record, refusal)
        else:
            # First the bytes: a record that has none raises here, and must not be among those that wait.
            self._data.append(data if data is not None else encode_record(record))
            self._records.append(record)

    def submit_all(self, records: Sequence[Record]) -> None:
        """Take what came in one frame."""
        state, waiting, data = self._folding.state, self._records, self._data
        if self._overloaded or self._log.tight or not self.ready:
            for record in records:
                self.submit(record)
            return
        fold = FOLDS[state.shard.fold]
        for record in records:
            body = record.body
            if type(body) is Sent:  # Every fold takes it.
                if known := answer_from_memory(state, record.by, body):
                    self._watcher.on_repeated()
                    self._say(record, known)
                    continue
            elif type(body) not in fold:
                self._say(record, NotYet())
                continue
            elif (type(body) is GroupSent or type(body) is GroupSealed) and (known := _known(state, record)):
                self._watcher.on_repeated()
                self._say(record, known)
                continue
            data.append(encode_record(record))
            waiting.append(record)

    def note_connection(self, device: int, *, here: bool) -> None:
        """A line for the delivery log. It is saved with the next record that is, so only so many wait for one."""
        state = self._folding.state
        if self.ready and self._saver.lines(state) < self.limits.saver.checkpoint_notes:
            state.notes.append(ConnectionChanged(self._clock(), device, here))
            state.noted.add(device)

    def flush(self) -> None:
        """Send what was submitted on its way, unless a batch is on its way already, or lingers for more to come."""
        if self._appending is None and self._records and not self._lingers():
            self._send()

    def _lingers(self) -> bool:
        """A few records wait for company, if there was some a moment ago."""
        limits = self.limits
        if self._later is None or not limits.linger_ms:
            return False
        if len(self._records) >= min(limits.linger_records, limits.batch_records):
            return False
        if not self._lingering:
            if self._pace() - self._went_at >= QUIET_MS:
                return False
            self._lingering = True
            self._later(limits.linger_ms, self._lingered)
        return True

    def _lingered(self) -> None:
        self._lingering = False
        if self._appending is None and self._records:
            self._send()

    def _send(self) -> None:
        at, log = self._clock(), self._log
        if self._clock.doubted_from or self._folding.state.shard.doubted_from:
            self._note_doubt()
        count = count_fitting(self._data, self._at_once, min(self.limits.batch_bytes, log.batch_bytes_max))
        records, data = self._records[:count], self._data[:count]
        del self._records[:count], self._data[:count]
        self._went_at = self._pace()
        self._appending = Durable(0, at, data, records, self._span)
        log.append(at, data, self._appended)

    def _note_doubt(self) -> None:
        """Write down that a doubt begins or ends, before what is filed in this batch: a crash may follow."""
        if bool(self._clock.doubted_from) != bool(self.state.shard.doubted_from):
            self._say_first(ClockDoubted(self._clock.doubted_from))

    def _say_first(self, body: AnyBody) -> None:
        """Like a `Ticked`, whatever else is refused: what is too old must be able to end."""
        if self.state.shard.fold >= body.since:
            self._records.insert(0, record := Record(SERVER, 0, body))
            self._data.insert(0, encode_record(record))

    def tick(self) -> None:
        """Let time pass: what is due becomes a record, what is unsaved becomes a checkpoint."""
        if self.stopped:
            return
        now = self._pace()
        self._folding.retry_load()
        if self._folding.wants_rebuild:
            self._rebuild()
        if self._forwarder:
            self._forwarder.tick(now)
        if not self.ready:
            return
        if self._unheard and now - self._failed_at >= REPEAT_MS:
            for record in self._unheard.take():
                self.submit(record)
        self._believe_clock(now)
        self._let_time_pass(self._clock())
        self.flush()
        self.save()
        if now - self._trimmed_at >= (TRIM_TIGHT_MS if self._log.tight else TRIM_MS):
            self._trim()
        if now - self._forgot_at >= FORGET_MS:
            self._forgot_at = now
            self._rows.forget(self._clock() - self.limits.notes_ms)

    def _let_time_pass(self, now: int) -> None:
        """Have what is due looked at, whatever else is in the log; by one `Ticked` at a time, so that all get on.

        It stands in line with what came before it: an acknowledgement that waits is folded before its entry expires.
        """
        state = self._folding.state
        folded = self._tick_end is not None and state.offset >= self._tick_end
        if folded and is_due(state, now):
            self._tick_end = None
            self._data.append(encode_record(TICK))
            self._records.append(TICK)
            self.flush()

    def _believe_clock(self, now: int) -> None:
        """Have it written down that a clock that was doubted is believed; again, if that record was lost."""
        if (believed := self._clock.to_believe()) and now - self._believed_at >= REPEAT_MS:
            self._believed_at = now
            if self.state.shard.fold < believed.since:
                self._clock.believe()
            self._say_first(believed)

    def save(self, *, at_once: bool = False) -> None:
        """Take a checkpoint if one is due (or `at_once`), and go on saving the one that was taken."""
        now = self._pace()
        saver, state = self._saver, self.state
        if self.ready and self._folding.between_records:
            due = saver.idle and (at_once or saver.is_due(state, now))
            if saver.idle:
                saver.tidy(state)
            if state.offset <= self._rows.pointer:
                if due:
                    saver.rest(now)
            elif due:
                saver.start(state, now, self._clock())
            else:
                saver.look_ahead(state, now)
        saver.tick(now)

    def _refusal(self, body: AnyBody) -> Said | None:
        """While space or time runs out, only what gives some back is taken."""
        if body.frees_space:
            return None
        if not self._log.tight:
            return Overloaded()
        return DiskFull() if self._log.is_full else Unavailable()

    def _weigh(self) -> None:
        """Is there more to save than may wait? Asked when that changes, not for every record."""
        saver, state, limits = self._saver, self.state, self.limits
        self._overloaded = (
            saver.unsaved(state) > limits.unsaved_rows or saver.unsaved_bytes(state) > limits.unsaved_bytes
        )

    def _say(self, record: Record, said: Said) -> None:
        if record.via:
            self._on_effects([Answer(record.via, said)])

    def read(self, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]) -> None:
        """Look at rows: `then` is called with the state once nothing that `wanted` names is missing."""
        if self.ready:
            self._folding.read(wanted, then)

    def unsaved_notes(self) -> tuple[list[bytes], list[Note]]:
        """The delivery log's lines that the rows may not have yet: those being saved, and those since."""
        return self._saver.notes, self.state.notes.copy()

    @property
    def unsaved(self) -> int:
        """Rows, lines and forwards that only the log would bring back after a crash now."""
        return self._saver.unsaved(self.state)

    @property
    def unsaved_bytes(self) -> int:
        """Likewise, bytes of entries and forwards."""
        return self._saver.unsaved_bytes(self.state)

    @property
    def overloaded(self) -> bool:
        """More waits to be saved than may: sends are refused."""
        return self._overloaded

    # --- from the log -------------------------------------------------------------------------

    def _appended(self, first: int | None) -> None:
        assert self._appending is not None
        batch, self._appending = self._appending, None
        if first is None:
            # Nobody knows whether it is durable: never a final no, for it or for those behind it.
            unknown = [*(batch.records or ()), *self._records]
            self._records.clear()
            self._data.clear()
            self._tick_end = 0
            self._failed_at = self._pace()
            self._unheard.keep(unknown)
            self._on_effects([Answer(record.via, Unavailable()) for record in unknown if record.via])
            return
        batch.first = first
        if self._tick_end is None and TICK in (batch.records or ()):
            self._tick_end = batch.last
        self._folding.take(batch)
        self.flush()
        self._folding.run()

    @property
    def next_offset(self) -> int:
        """Where the next batch that is fed must begin."""
        return self._folding.next_offset

    def feed(self, stored: Stored) -> None:
        """A durable batch that somebody, perhaps we ourselves, appended to a log that many append to."""
        self._folding.feed(Durable(stored.first, stored.at, stored.records, None, stored.span))

    def fell_behind(self) -> None:
        """What comes next is trimmed from a shared log: another owner has saved it. Start again from there."""
        self._folding.abandon()

    # --- from the fold ------------------------------------------------------------------------

    def _begin(self, state: ShardState) -> None:
        if self._forwarder:
            self._forwarder.begin(state.shard.told)

    def _folded(self, folded: Folded) -> None:
        if self._forwarder:
            for _, forward in folded.forwards:
                self._forwarder.add(forward)
        self._weigh()
        if folded.upto > self._announced:
            self._announced = folded.upto
            if folded.effects:
                self._on_effects(folded.effects)
        if self.ready:
            # There may be more than one `Ticked` takes: the next one follows at once. What became due since this batch
            # went out is seen by `tick`, so the clock need not be asked once more per batch.
            self._let_time_pass(self._folding.state.shard.now)

    def _rebuild(self) -> None:
        if self._saver.under_way:
            return  # It may yet move the pointer under us.
        self._saver.abandon()
        self._folding.rebuild()

    # --- from the rows ------------------------------------------------------------------------

    def _saved(self, saved: Checkpoint | None) -> None:
        """A checkpoint is durable; or (None) another owner's is, and ours is worth nothing."""
        if saved is None:
            self._folding.abandon()
            return
        self._trim()
        self._weigh()
        self._folding.saved()
        if self._folding.between_records:
            self._saver.tidy(self.state)  # If not, `save` does it.
        self._watcher.on_saved(saved)

    def _trim(self) -> None:
        self._trimmed_at = self._pace()
        self._log.trim(self._rows.pointer, self._clock())


def _known(state: ShardState, record: Record) -> Said | None:
    """What a retry was answered, if that is in memory."""
    body = record.body
    if type(body) is Sent:
        return answer_from_memory(state, record.by, body)
    if type(body) is GroupSent or type(body) is GroupSealed:
        return answer_in_group(state, record.by, body)
    return None
