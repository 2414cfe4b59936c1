from __future__ import annotations

import json
from collections import Counter

import pytest

from nightmail.client.groups.sender_keys import SenderKeys
from nightmail.e2ee.groups.sender_keys import SenderChain
from sim.runs import group_clients
from sim.runs.client_campaign import ENOUGH, never_happened
from sim.runs.group_clients import plan_of
from sim.world.plan import run

SEEDS = (("node", 6), ("node", 8), ("cluster", 1), ("cluster", 2))


@pytest.mark.parametrize(("mode", "seed"), SEEDS)
def test_sealed_devices_in_groups_keep_every_promise_and_the_story_is_the_same_every_time(mode: str, seed: int) -> None:
    plan = plan_of(mode, seed, seconds=6)
    first, again = run(plan), run(plan)
    assert (first.events, first.sometimes) == (again.events, again.sometimes)


def test_a_broken_promise_is_found_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chain that is never saved after it has sealed seals the next message with the same key."""
    monkeypatch.setattr(SenderKeys, "put", _put_once)
    asked = ["--seed", "3", "--seeds", "12", "--off", "power,kills,stops,errors,full,slow,pressure"]
    assert group_clients.main(asked) == 1
    told, said = capsys.readouterr()
    assert json.loads(told)["broken"] == "no key twice"
    assert "again:  .venv/bin/python -m sim.runs.group_clients --mode node --seed" in said


def _put_once(keys: SenderKeys, chain: SenderChain) -> None:
    if keys.chain(chain.group) is None:
        right_put(keys, chain)


right_put = SenderKeys.put


def test_a_campaign_in_which_something_never_happened_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert group_clients.main(["--seeds", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] is None
    assert "group changed" in never_happened(group_clients.MUST_HAPPEN, ENOUGH, Counter())
