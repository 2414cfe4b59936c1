"""What the fuzzer drives works, and stands a few thousand blows. The fuzzer itself runs by `make fuzz`."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.targets import TARGETS, seeds

BLOWS = {"session": 20, "websocket": 60, "door": 60}
"""Per seed; the others stand more."""


@pytest.mark.parametrize("target", TARGETS)
def test_every_seed_and_what_a_few_blows_make_of_it_is_taken(target: str) -> None:
    run, chance = TARGETS[target], Random(target)
    for seed in seeds(target):
        run(seed)
        for _ in range(BLOWS.get(target, 300)):
            blown = bytearray(seed)
            for _ in range(chance.randint(1, 3)):
                at = chance.randrange(len(blown))
                match chance.randrange(3):
                    case 0:
                        blown[at] = chance.randrange(256)
                    case 1:
                        del blown[at : at + chance.randint(1, 4)]
                    case _:
                        blown[at:at] = chance.randbytes(chance.randint(1, 4))
                blown = blown or bytearray(1)
            run(bytes(blown))
