"""Writes the golden logs of the newest fold, and pins what they come to:  python -m tests.golden.make

Older folds stay as they are, for ever: data that they folded is out there.
"""

from __future__ import annotations

import json

from nightmail.core.state import NEWEST_FOLD
from sim.judges.strict import strictly

from .logs import logs_of, path_of, pinned, pins_of, read_pins, records_of, records_taken
from .story import tell


def main() -> None:
    with strictly():
        logs = {log: tell(log, NEWEST_FOLD) for log in logs_of(NEWEST_FOLD)}
        pins = pinned(logs, NEWEST_FOLD)
    before = read_pins(NEWEST_FOLD) if pins_of(NEWEST_FOLD).exists() else None
    pins_of(NEWEST_FOLD).parent.mkdir(exist_ok=True)
    for log, lines in logs.items():
        path_of(NEWEST_FOLD, log).write_text("".join(f"{line}\n" for line in lines))
    records_of(NEWEST_FOLD).write_text(json.dumps(records_taken(NEWEST_FOLD)) + "\n")
    pins_of(NEWEST_FOLD).write_text(json.dumps(pins, indent=2) + "\n")
    if before is None:
        print(f"fold {NEWEST_FOLD}: written")
    elif before == pins:
        print(f"fold {NEWEST_FOLD}: as it was")
    else:
        print(f"fold {NEWEST_FOLD}: CHANGED. If any server has ever folded with it, take this back and add a fold.")


if __name__ == "__main__":
    main()
