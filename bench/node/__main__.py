"""What a message costs in a whole server.

    python -m bench.node                            everything, in a few minutes
    python -m bench.node --scenarios busy,idle
    python -m bench.node --seconds 20               longer windows
    python -m bench.node --full                     a million devices, 10 million messages: takes long
    python -m bench.node --record                   append the results to bench/results.jsonl

A table for people on standard error; the last line on standard output is JSON, a list of one
object per scenario. Fails only if a promise was broken, never because something was slow.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from bench.figures import say
from bench.measured_node import Broken

from .figures import Figures, as_json, heading, record, row
from .scenario_setup import FULL, TINY, Settings, stage
from .scenarios import DEFAULT, SCENARIOS
from .server import ServerFailed


def run(names: list[str], settings: Settings) -> list[Figures]:
    """Every scenario in its turn; each shows itself as soon as it is done."""
    results: list[Figures] = []
    say(heading())
    for name in names:
        try:
            with stage(settings) as at:
                for figures in SCENARIOS[name](at):
                    results.append(figures)
                    say(row(figures))
        except (Broken, ServerFailed) as broken:
            results.append(Figures(scenario=name, broken=str(broken)))
            say(row(results[-1]))
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", default=",".join(DEFAULT), help="some of: " + ", ".join(SCENARIOS))
    parser.add_argument("--seconds", type=float, help="length of each measured window")
    parser.add_argument("--idle-s", type=float, dest="idle_s", help="how long `idle` is watched")
    parser.add_argument("--connections", type=int, help="`idle` and `storm`: how many, if the machine allows")
    parser.add_argument("--media-mib", type=int, dest="media_mib", help="`media`: the size of the file")
    parser.add_argument("--loads", type=int, choices=(1, 2), help="load processes")
    parser.add_argument("--folder", help="where the data folders are made: the disk that is measured")
    parser.add_argument("--record", action="store_true", help="append the results to bench/results.jsonl")
    parser.add_argument("--plant", action="store_true", help="overlook one message, to see that it is missed")
    parser.add_argument("--profile", type=int, metavar="LINES", help="show where the server's time goes; slows it down")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--tiny", action="store_true", help="does it run at all?")
    size.add_argument("--full", action="store_true", help="the sizes that were promised; takes long")
    options = parser.parse_args(arguments)

    names = [name for name in str(options.scenarios).split(",") if name]
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    settings = TINY if options.tiny else FULL if options.full else Settings()
    chosen = {
        name: getattr(options, name)
        for name in ("seconds", "idle_s", "connections", "media_mib", "loads", "folder", "plant", "profile")
    }
    settings = msgspec.structs.replace(settings, **{name: value for name, value in chosen.items() if value})
    results = run(names, settings)
    if options.record:
        record(results, msgspec.to_builtins(settings))
    print(as_json(results))
    return 1 if any(figures.is_broken for figures in results) else 0


if __name__ == "__main__":
    sys.exit(main())
