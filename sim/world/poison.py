"""Messages that the fold cannot take: their step raises, and they become dead letters."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.core.step import FOLDS
from nightmail.model.records import Sent

POISON = "p"
"""How the id of such a message ends."""


class Poison(ValueError):
    """A mistake that was made on purpose."""


@contextmanager
def poisonous(fold: int) -> Generator[None]:
    """From this version of the fold on, until the end of the block."""
    with mock.patch.dict(FOLDS, {version: _poisoned(version) for version in FOLDS if version >= fold}):
        yield


def _poisoned(version: int) -> dict[Any, Any]:
    needs, step = FOLDS[version][Sent]
    return {**FOLDS[version], Sent: (needs, _raising(step))}


def _raising(step: Step) -> Step:
    def raises(state: ShardState, by: int, via: int, sent: Sent) -> None:
        if sent.id.endswith(POISON):
            raise Poison
        step(state, by, via, sent)

    return raises
