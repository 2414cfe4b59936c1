# pyright: reportPrivateUsage=false
"""Bugs in the loop: what may happen before what."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from contextlib import AbstractContextManager

from nightmail.engine.clock import BatchClock
from nightmail.engine.folding import Durable, Folding
from nightmail.engine.loop import Loop
from nightmail.engine.ports import Failed, Overtaken
from nightmail.engine.saver import Saver

from .tools import LOOP, Bug, Focus, edit_method, method


def _fold_before_durable() -> AbstractContextManager[None]:
    """A batch is folded, and answered, when it is on its way to the log."""
    right = Loop.flush

    def flush(loop: Loop) -> None:
        if loop._appending is not None:
            return
        right(loop)
        if loop._appending is not None:
            batch = loop._appending
            loop._folding.feed(Durable(loop._log.last + 1, batch.at, batch.data, batch.records, batch.span))

    return method(Loop, "flush", flush)


def _trim_before_pointer() -> AbstractContextManager[None]:
    """What is folded counts as saved."""

    def trim(loop: Loop) -> None:
        loop._trimmed_at = loop._pace()
        loop._log.trim(loop.state.offset, loop._clock())

    return method(Loop, "_trim", trim)


def _swallow_after_recovery() -> AbstractContextManager[None]:
    """The first things that happen after a recovery are taken for old news."""
    right = Loop.recover

    def recover(loop: Loop, announce_after: int | None = None) -> None:
        right(loop, announce_after)
        loop._announced = loop._log.last + 20

    return method(Loop, "recover", recover)


def _give_up_saving() -> AbstractContextManager[None]:
    """A checkpoint that failed is forgotten; the next one has only what changed since."""
    right = Saver._saved

    def saved(saver: Saver, outcome: Overtaken | Failed | None) -> None:
        if isinstance(outcome, Failed):
            saver._under_way, saver._saving = False, None
        else:
            right(saver, outcome)

    return method(Saver, "_saved", saved)


BUGS = (
    Bug("a batch is folded before it is durable", _fold_before_durable, ("node",), LOOP),
    Bug("the log is trimmed before the pointer", _trim_before_pointer, ("cluster", "node"), LOOP),
    Bug("a recovery swallows answers", _swallow_after_recovery, ("node", "cluster"), LOOP,
        focus=Focus({"write": 60}, ("power", "kills", "stops"))),
    Bug("a checkpoint that failed is forgotten", _give_up_saving, ("node", "cluster"), LOOP),
    Bug("a checkpoint in the middle of a record's consequences",
        lambda: method(Folding, "between_records", property(lambda _: True)), ("cluster", "node"), LOOP),
    Bug("a clock that leaps is believed at once",
        edit_method(BatchClock, "_judge", "ahead <= self._bound", "True"), ("node",), LOOP),
    Bug("time runs backward",
        edit_method(Folding, "_fold", "if batch.at > shard.now and", "if batch.at and"), ("node", "cluster"), LOOP,
        seconds=20, focus=Focus({"write": 60}, ("clock", "kills", "power", "slow"))),
)  # fmt: skip
