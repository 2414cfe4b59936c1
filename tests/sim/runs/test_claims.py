"""Keys are claimed by many while the power goes: the campaign itself, short."""

from __future__ import annotations

import pytest

from sim.runs.claims import Broken, Owners, Stock, run_campaign


def test_no_key_is_given_twice_whatever_crashes() -> None:
    outcome = run_campaign(5_000, 8, lambda _: None)
    assert outcome["broken"] is None
    for what in ("crashes", "crashes in recovery", "repeated", "repeated too late", "nothing left of one kind"):
        assert outcome[what], f"{what} never happened"


def test_every_step_keeps_to_the_rows_that_it_named() -> None:
    assert run_campaign(1_000, 3, lambda _: None, watched=True)["broken"] is None


def test_the_same_seed_is_the_same_story() -> None:
    first, again = (run_campaign(800, 11, lambda _: None) for _ in range(2))
    assert {**first, "seconds": 0} == {**again, "seconds": 0}


def test_a_key_that_two_have_is_noticed() -> None:
    owners = Owners()
    owners.give(5, False, 3, 100)
    owners.give(5, False, 3, 100)
    owners.give(5, True, 3, 101)
    owners.give(6, False, 3, 101)
    with pytest.raises(Broken, match="key 3 of 5 was given to request 64 and to 65"):
        owners.give(5, False, 3, 101)


def test_the_model_hands_out_the_oldest_and_repeats_itself() -> None:
    stock = Stock(5)
    stock.upload(2, 1)
    assert [stock.claim((1, n)) for n in (1, 2, 1, 3)] == [(1, 1), (2, 0), (1, 1), (0, 0)]
