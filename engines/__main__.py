"""`python -m engines up|status|kill|down`: real engines in a folder, for a cluster to try and for its tests.

up starts what is not running and prints where each serves, as JSON; kill ends one at once; down ends all and removes
their data.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .engines import Engines
from .jars import COORDINATES, NoEngine, fetch
from .plans import HOST, KINDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m engines", description=__doc__)
    parser.add_argument("verb", choices=["fetch", "up", "status", "kill", "down"])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; none named: all")
    parser.add_argument("--folder", type=Path, default=Path(".engines"))
    asked = parser.parse_args()
    engines, kinds = Engines(asked.folder), asked.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such engine: {', '.join(sorted(unknown))}")
    try:
        match asked.verb:
            case "fetch":
                for kind in COORDINATES.keys() & set(kinds):
                    fetch(kind)
                return 0
            case "up":
                engines.up(kinds)
            case "kill":
                for kind in kinds:
                    engines.kill(kind)
            case "down":
                engines.down()
            case _:
                pass
    except NoEngine as why:
        print(f"engines: {why}", file=sys.stderr)
        return 1
    serving = {
        kind: {"address": f"{HOST}:{plan.port}", "pid": engines.pid(kind)} for kind, plan in engines.plans.items()
    }
    print(json.dumps(serving, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
