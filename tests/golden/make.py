"""Writes the golden logs of the newest fold, and pins what they come to:  python -m tests.golden.make

Older folds stay as they are, for ever: data that they folded is out there.
"""

from __future__ import annotations

import json

from nightmail.core.state import FOLD
from sim.strict import strictly

from .logs import SHARDS, path_of, pinned, pins_of, read_pins
from .story import tell


def main() -> None:
    with strictly():
        logs = {log: tell(shards, FOLD) for log, shards in SHARDS.items()}
        pins = pinned(logs)
    before = read_pins(FOLD) if pins_of(FOLD).exists() else None
    pins_of(FOLD).parent.mkdir(exist_ok=True)
    for log, lines in logs.items():
        path_of(FOLD, log).write_text("".join(f"{line}\n" for line in lines))
    pins_of(FOLD).write_text(json.dumps(pins, indent=2) + "\n")
    if before is None:
        print(f"fold {FOLD}: written")
    elif before == pins:
        print(f"fold {FOLD}: as it was")
    else:
        print(f"fold {FOLD}: CHANGED. If any server has ever folded with it, take this back and make fold {FOLD + 1}.")


if __name__ == "__main__":
    main()
