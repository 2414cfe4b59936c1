"""Many worlds whose people schedule messages, one verdict.

    python -m sim.runs.schedules --mode node --seeds 100
    python -m sim.runs.schedules --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and the end of its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.world.schedule_plan import run_schedules

from .seeded_campaign import Worlds, run_campaign

MUST_HAPPEN = (
    "a late success", "asked twice", "cancelled", "letter discarded",
    "letter replayed", "not cancelled: already_sent", "not cancelled: in_progress",
    "outlet crashed after a call", "outlet crashed before a call", "replay compared", "scheduled",
    "scheduled to a webhook", "sealed again", "unlinked",
)  # fmt: skip
WORLDS = Worlds("schedules", __doc__, run_schedules, MUST_HAPPEN)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_campaign(WORLDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
