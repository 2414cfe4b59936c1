"""Many worlds whose people talk in groups, one verdict.

    python -m sim.runs.groups --mode node --seeds 100
    python -m sim.runs.groups --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and the end of its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.world.group_plan import run_groups

from .seeded_campaign import Worlds, run_campaign

MUST_HAPPEN = (
    "asked twice", "closed", "group changed", "handed out again", "linked", "notice changed", "notice joined",
    "notice refused", "notice suspended", "refused in a group: not_member", "registered again", "replay compared",
    "stale group", "two changes on one head", "unlinked", "unreadable in a group",
)  # fmt: skip
WORLDS = Worlds("groups", __doc__, run_groups, MUST_HAPPEN)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_campaign(WORLDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
