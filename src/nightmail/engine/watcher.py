"""What an operator hears of a loop."""

from __future__ import annotations

from nightmail.model.clock import ClockSeen

from .ports import Checkpoint


class Watcher:
    """What the loop tells an operator. Does nothing; replace what you care about."""

    def on_poison(self, offset: int, error: Exception) -> None:
        """A record could not be applied and was set aside."""

    def on_trouble(self, why: str) -> None:
        """Checkpoints keep failing, or rows cannot be read. Nothing is lost, but nothing gets better by itself."""

    def on_clock(self, seen: ClockSeen) -> None:
        """The wall clock begins to be doubted, or is far behind the shard's time, or neither any more."""

    def on_saved(self, checkpoint: Checkpoint) -> None:
        """A checkpoint is durable."""

    def on_repeated(self) -> None:
        """A retry was answered from memory."""
