from __future__ import annotations

from pathlib import Path

import pytest

from sim.judges.strict import strictly
from tests.core.world import WORLDS, Memory, World
from tests.scenarios.runner import Story

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
@pytest.mark.parametrize(("shards", "memory"), WORLDS.values(), ids=list(WORLDS))
def test_it_happens_as_it_is_told(transcript: Path, shards: int, memory: Memory) -> None:
    with strictly():
        Story(World(shards, memory)).tell(transcript.read_text())


TWO = "alice has 1 device\nbob has 1 device\n"
WRONG = [
    (TWO + 'alice.1 finds normal "something"', "line 3: alice.1 finds normal"),
    (TWO + "alice sings", "this sentence means nothing"),
    (TWO + 'alice.1 sends bob "x" n=2', "nobody mentions the last answer: out of order"),
    (TWO + 'alice.1 sends bob "x" n=1\n→ settled', "accepted"),
    (TWO + 'alice.1 sends bob "x" n=2\nalice.1 repeats', "nobody mentions the answer before"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG)
def test_a_story_that_did_not_happen_is_noticed(text: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        Story(World()).tell(text)
