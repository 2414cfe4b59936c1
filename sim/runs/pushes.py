"""Many worlds whose devices sleep and are woken, one verdict.

    python -m sim.runs.pushes --mode node --seeds 100
    python -m sim.runs.pushes --mode cluster --seed 17 --seeds 1

A failing seed prints itself, how to run it again, and the end of its story. The last line on standard output is JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sim.world.push_plan import run_pushes

from .seeded_campaign import Worlds, run_campaign

MUST_HAPPEN = (
    "outlet lost a push", "push delivered", "push failed", "push gone", "push refused", "repeats judged",
    "slept with mail", "suspected", "token removed by its device", "token replaced",
)  # fmt: skip
WORLDS = Worlds("pushes", __doc__, run_pushes, MUST_HAPPEN)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_campaign(WORLDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
