"""What was folded once is folded so for ever: a change of behaviour needs a new fold version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast, get_args

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.core.step import FOLDS
from nightmail.engine.saver import take_checkpoint
from nightmail.model import answers, refusals
from nightmail.model.effects import Answer
from nightmail.model.records import (
    AnyBody,
    Author,
    BadRecord,
    Forwarded,
    decode_record,
)
from sim.judges.strict import Misstep, strictly

from .logs import (
    SHARDS,
    Line,
    Pins,
    Shard,
    digest_of_state,
    folded,
    logs_of,
    parsed,
    pinned,
    read_log,
    read_pins,
    read_records,
    records_taken,
)
from .story import tell

PINNED = range(1, NEWEST_FOLD + 1)
"""What a later fold makes of a log may still change."""
EVERY_FOLD = pytest.mark.parametrize("fold", PINNED)
EVERY_LOG = pytest.mark.parametrize(("fold", "log"), [(fold, log) for fold in PINNED for log in logs_of(fold)])
ADVICE = (
    "What fold {fold} makes of its golden logs has changed. Servers have folded their logs so, and two that differ "
    "would not hold the same rows. Keep fold {fold} as it was and put the change into fold {next}; see CONTRIBUTING.md."
)


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    with strictly():
        yield


def bodies(lines: list[Line]) -> Iterator[AnyBody]:
    for line in lines:
        for data in line.records:
            try:
                yield decode_record(data).body
            except BadRecord:
                continue


@EVERY_FOLD
def test_each_fold_makes_of_its_golden_logs_what_it_always_made(fold: int) -> None:
    found = pinned({log: read_log(fold, log) for log in logs_of(fold)}, fold)
    assert found == read_pins(fold), ADVICE.format(fold=fold, next=NEWEST_FOLD + 1)


@EVERY_FOLD
def test_each_fold_takes_the_records_that_it_always_took(fold: int) -> None:
    assert records_taken(fold) == read_records(fold), ADVICE.format(fold=fold, next=NEWEST_FOLD + 1)


@EVERY_LOG
def test_the_golden_logs_are_of_the_fold_they_stand_under(fold: int, log: str) -> None:
    lines = read_log(fold, log)
    assert {shard.state.shard.fold for shard in folded(lines, SHARDS[log]).values()} == {fold}
    assert len({line.shard for line in lines}) == SHARDS[log]


@EVERY_FOLD
def test_what_one_shard_tells_another_is_what_stands_in_the_others_log(fold: int) -> None:
    lines = read_log(fold, "four-shards")
    town = folded(lines, SHARDS["four-shards"])
    told = {
        (index, forward.shard, forward.k): forward.body
        for index, shard in town.items()
        for handed in shard.handed
        for _, forward in handed.forwards
    }
    heard: dict[tuple[int, int, int], object] = {}
    for line in lines:
        for body in bodies([line]):
            if isinstance(body, Forwarded):
                heard.setdefault((body.source, line.shard, body.k), body.body)
    assert len(told) > 30
    assert {key: body for key, body in heard.items() if key in told} == told
    assert len(heard) == len(told) + 1  # the one that a zombie told out of its chain


@EVERY_LOG
def test_from_any_checkpoint_on_the_log_comes_to_the_same(fold: int, log: str) -> None:
    lines = read_log(fold, log)
    for index in range(SHARDS[log]):
        mine = [line for line in lines if line.shard == index]
        whole = folded(mine, SHARDS[log])[index]
        for cut in range(1, len(mine)):
            before = folded(mine[:cut], SHARDS[log])[index]
            before.rows.save(take_checkpoint(before.state, 0), lambda _: None)
            after = Shard(index, SHARDS[log], before.rows)
            for line in mine[cut:]:
                after.take(line)
            assert digest_of_state(after, fold) == digest_of_state(whole, fold), f"from the checkpoint after line {cut}"


# --- are they worth it? -----------------------------------------------------------------------

NOT_THE_FOLDS = {
    refusals.Overloaded, refusals.DiskFull, refusals.DeadLettered,
    refusals.NotYet,
    refusals.TooManyDevices,  # after 4,095 of them
}  # fmt: skip


KINDS = [kind for kind in get_args(AnyBody) if kind.since <= NEWEST_FOLD]


def test_the_golden_logs_know_every_record_and_every_answer() -> None:
    told, heard = set[type](), set[type]()
    for log, shards in SHARDS.items():
        lines = read_log(NEWEST_FOLD, log)
        for body in bodies(lines):
            told |= {type(body), type(body.body)} if isinstance(body, Forwarded) else {type(body)}
        for shard in folded(lines, shards).values():
            for handed in shard.handed:
                heard |= {type(effect.said) for effect in handed.effects if isinstance(effect, Answer)}
    assert told == {kind for kind in KINDS if kind.said_by != Author.FOLD}  # others only follow from these
    assert heard == {*get_args(answers.Answer), *get_args(refusals.AnyRefusal)} - NOT_THE_FOLDS


def test_a_line_is_read_back_as_it_was_written() -> None:
    lines = [Line(3, 5, [b"\0\xff", b"x" * 100]), Line(0, 6, [b"a"])]
    assert parsed("".join(f"{line}\n" for line in lines)) == lines


@pytest.mark.parametrize("log", logs_of(NEWEST_FOLD))
def test_the_story_is_told_alike_every_time(log: str) -> None:
    assert tell(log, NEWEST_FOLD) == tell(log, NEWEST_FOLD)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_fold_that_ignored_one_kind_of_record_would_be_noticed(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    needs, _ = FOLDS[NEWEST_FOLD][kind]
    for fold in FOLDS.values():
        monkeypatch.setitem(cast("dict[Any, Any]", fold), kind, (needs, lambda *_: None))
    found: Pins | None = None
    with suppress(Exception, Misstep):  # It may also stumble over what is missing.
        found = pinned({log: read_log(NEWEST_FOLD, log) for log in logs_of(NEWEST_FOLD)}, NEWEST_FOLD)
    assert found != read_pins(NEWEST_FOLD)
