"""Checkpoints: everything that changed up to an offset, handed to the rows in one piece.

Knows:   what has changed, what is being saved, what may be forgotten afterwards.
Never:   loses a change: what could not be saved is offered again, unchanged, until it is.

A checkpoint is only a shortcut for recovery, so it is taken in the background and seldom: a
message that is delivered and acknowledged between two of them is never written at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from nightmail.core.state import KEYS_WEIGHT, ShardState

from .cache import forget_entries, forget_keys, freshen, shrink
from .early_encoding import EarlyEncoding
from .forwarder import Forwarder
from .ports import Checkpoint, Failed, Overtaken, Rows


class SaverLimits(Struct, frozen=True):
    checkpoint_rows: int = 40_000
    """Changed rows that start a checkpoint: bounds how long encoding them keeps the loop."""
    checkpoint_notes: int = 120_000
    """Lines of the delivery log that do the same: bounds recovery."""
    checkpoint_bytes: int = 32 * 1024 * 1024
    """Ciphertext filed and still waiting that does the same: bounds memory, and what one save writes."""
    checkpoint_ms: int = 10_000
    """The longest that a change stays unsaved when the disk keeps up. The limits above bound what is to be replayed."""
    retry_ms: tuple[int, ...] = (100, 200, 400, 800, 1_600)
    """Waits after a failed save. After the last one the operator is told, and it goes on at that pace."""
    rows_in_memory: int = 500_000
    """Rows kept for the next time they are needed: bounds memory, about 1 KiB each."""


class Saver:
    def __init__(
        self,
        rows: Rows,
        limits: SaverLimits,
        on_saved: Callable[[Checkpoint | None], None],
        on_trouble: Callable[[str], None],
        forwarder: Forwarder | None = None,
    ) -> None:
        self._rows, self._limits, self._forwarder = rows, limits, forwarder
        self._on_saved, self._on_trouble = on_saved, on_trouble
        self._saving: Checkpoint | None = None
        self._saving_bytes = 0
        """Of its entries."""
        self._under_way = False
        self._retry_at = 0
        self._retries = 0
        self._last_at = 0
        self._early = EarlyEncoding(limits.checkpoint_bytes)
        self._found: list[tuple[int, int]] = []
        """(queue, seq) of entries that the last round found waiting: just saved, or read since the one before."""
        self._round: list[tuple[int, int]] | None = None
        """A round has ended, and nobody has tidied up since: the entries that it saved."""

    @property
    def idle(self) -> bool:
        return self._saving is None

    @property
    def under_way(self) -> bool:
        return self._under_way

    @property
    def notes(self) -> list[bytes]:
        """The delivery log's lines that are being saved or will be, except those that the state still has."""
        return [*(self._saving.notes if self._saving else ()), *self._early.pieces]

    def lines(self, state: ShardState) -> int:
        """Of the delivery log, since the last checkpoint."""
        return len(state.notes) + self._early.lines

    def unsaved(self, state: ShardState) -> int:
        """Rows, lines of the delivery log and forwards that only the log would bring back after a crash now."""
        saving = len(self._saving.rows) if self._saving else 0
        return state.count_changed() + self.lines(state) + saving + self._forwards

    def unsaved_bytes(self, state: ShardState) -> int:
        """Likewise, bytes of entries that wait, and of forwards."""
        return state.filed_bytes + self._saving_bytes + self._forward_bytes

    @property
    def _forwards(self) -> int:
        return self._forwarder.unsaved if self._forwarder else 0

    @property
    def _forward_bytes(self) -> int:
        return self._forwarder.unsaved_bytes if self._forwarder else 0

    def is_due(self, state: ShardState, now: int) -> bool:
        """Whether enough has changed, or for long enough."""
        limits = self._limits
        return (
            now - self._last_at >= limits.checkpoint_ms
            or state.count_changed() + self._forwards >= limits.checkpoint_rows
            # Changed or not: a checkpoint lets go of them all.
            or KEYS_WEIGHT * len(state.keys) >= limits.checkpoint_rows
            or self.lines(state) >= limits.checkpoint_notes
            or state.filed_bytes + self._forward_bytes >= limits.checkpoint_bytes
        )

    def look_ahead(self, state: ShardState, now: int) -> None:
        """Encode some of what the next checkpoint will hold. The state must stand between two records."""
        self._early.look(state, now)

    def start(self, state: ShardState, now: int, at: int) -> None:
        """Take the state as it is now, at time `at`. It must stand between two records."""
        assert self._saving is None
        self._last_at = now
        if sum(map(len, state.tables())) > self._limits.rows_in_memory * 9 // 10:
            freshen(state)  # Soon some must go.
        forwards = self._forwarder.take_unsaved() if self._forwarder else ()
        self._saving = take_checkpoint(state, at, self._early, forwards)
        self._saving_bytes = sum(len(data) for _, _, data in self._saving.entries)
        self._retries = 0

    def tick(self, now: int) -> None:
        """Save what was taken."""
        if self._saving is None or self._under_way or now < self._retry_at:
            return
        self._under_way = True
        self._retry_at = now
        self._rows.save(self._saving, self._saved)

    def abandon(self) -> None:
        """Forget what was taken: the state is rebuilt from the last checkpoint that was saved."""
        assert not self._under_way
        self._done()
        self._found, self._round = [], None
        self._early.clear()

    def rest(self, now: int) -> None:
        """A checkpoint would be due, and there is nothing to save: for what was only read, a round all the same."""
        self._last_at = now
        self._round = []

    def tidy(self, state: ShardState) -> None:
        """Let go of what is saved and not likely to be wanted. The state must stand between two records.

        Not while a checkpoint is being saved: until then the store has older rows than those let go.
        """
        assert self._saving is None
        if self._round is None:
            return  # Once in a round: what was just read must stay long enough to be looked at.
        # What two rounds in a row found waiting is for a device that is away.
        forget_entries(state, self._found)
        self._found, self._round = self._round + state.loaded, None
        state.loaded.clear()
        forget_keys(state)
        shrink(state, self._limits.rows_in_memory)

    def _saved(self, outcome: Overtaken | Failed | None) -> None:
        assert self._saving is not None
        self._under_way = False
        match outcome:
            case Failed(why):
                waits = self._limits.retry_ms
                if self._retries == len(waits):
                    self._on_trouble(why)
                self._retry_at += waits[min(self._retries, len(waits) - 1)]
                self._retries += 1
            case Overtaken():
                self._done()
                self._on_saved(None)
            case None:
                self._round = [(queue, seq) for queue, seq, _ in self._saving.entries]
                if self._forwarder:
                    self._forwarder.saved(self._saving.forwards)
                self._on_saved(self._done())

    def _done(self) -> Checkpoint | None:
        saved, self._saving, self._saving_bytes = self._saving, None, 0
        return saved


def take_checkpoint(
    state: ShardState, at: int, early: EarlyEncoding | None = None, forwards: Sequence[tuple[int, int, bytes]] = ()
) -> Checkpoint:
    """Everything that changed, encoded as it is now; from here on it counts as unchanged."""
    early = early or EarlyEncoding()
    entries = early.take_entries(state)
    for queue, seq, _ in entries:
        # From now on an acknowledgement must clear it from the store, too, even while it is being saved.
        state.stored[queue] = max(seq, state.stored.get(queue, 0))
    checkpoint = Checkpoint(
        upto=state.offset,
        at=at,
        rows=early.take_rows(state),
        entries=entries,
        cleared=list(state.cleared.items()),
        dropped=list(state.dropped),
        notes=early.take_notes(state),
        noted=state.devices_noted(),
        forwards=forwards,
    )
    state.forget_changes()
    early.clear()
    return checkpoint
