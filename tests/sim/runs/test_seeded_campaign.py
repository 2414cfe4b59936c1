from __future__ import annotations

from collections import Counter

from sim.runs.groups import WORLDS
from sim.runs.seeded_campaign import ENOUGH, never_happened


def test_what_never_happened_is_named_once_there_were_enough_worlds() -> None:
    named = never_happened(WORLDS, "node", ENOUGH, Counter({"killed": 1}))
    assert named == ["power cut", "power cut in recovery", *WORLDS.must_happen]
    assert never_happened(WORLDS, "node", ENOUGH - 1, Counter()) == []
    assert "taken over" in never_happened(WORLDS, "cluster", ENOUGH, Counter())
