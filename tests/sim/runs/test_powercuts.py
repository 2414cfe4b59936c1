from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext

import pytest

from nightmail.engine.sqlite import connect
from sim.faults.disk import Disk, Killed, PowerCut
from sim.runs.powercuts import ENDINGS, run_campaign


def run(cuts: int, seed: int) -> tuple[dict[str, object], list[str]]:
    said: list[str] = []
    outcome = run_campaign(cuts, seed, said.append)
    del outcome["seconds"]
    return outcome, said


def test_no_power_cut_loses_or_tears_anything() -> None:
    outcome, _ = run(80, seed=1)
    assert (outcome["lost"], outcome["torn"]) == (0, 0)


def test_what_is_counted_as_a_power_cut_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: Counter[str] = Counter()

    def counted(name: str) -> None:
        right = getattr(Disk, name)

        def do(disk: Disk) -> None:
            # A machine that is switched off because of an error had all its operations.
            happened[name if sys.exc_info()[0] in (PowerCut, Killed) else "switched off"] += 1
            right(disk)

        monkeypatch.setattr(Disk, name, do)

    counted("power_cut")
    counted("kill")
    outcome, _ = run(300, seed=1)
    assert (outcome["cuts"], outcome["kills"], outcome["errors"]) == tuple(
        happened[what] for what in ("power_cut", "kill", "switched off")
    )
    assert min(int(str(outcome[ending])) for ending in ENDINGS) > 5
    assert int(str(outcome["cuts"])) >= 300


def test_one_seed_is_one_campaign() -> None:
    assert run(40, seed=7)[0] == run(40, seed=7)[0]


def test_a_store_that_does_not_sync_is_caught_and_its_seed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = connect._set  # pyright: ignore[reportPrivateUsage]

    def lazy(db: object, place: object, pragma: str, value: object, want: object) -> None:
        value, want = ("NORMAL", 1) if pragma == "synchronous" else (value, want)
        ask(db, place, pragma, value, want)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(connect, "_set", lazy)
    outcome, said = run(400, seed=1)
    assert outcome["lost"] or outcome["torn"]
    assert "alone: .venv/bin/python -m sim.runs.powercuts --seed " in said[-1]


def test_a_checkpoint_in_pieces_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "transaction", nullcontext)
    outcome, _ = run(400, seed=1)
    assert outcome["lost"] or outcome["torn"]
