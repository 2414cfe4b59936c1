"""The command of a suite that is nothing but seeds: each one passes, or raises what it broke."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def main(name: str, about: str | None, run: Callable[[int], None]) -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    seeds = parser.parse_args().seeds
    for seed in range(1, seeds + 1):
        run(seed)
    print(f'{{"campaign": "{name}", "seeds": {seeds}, "broken": null}}')
