"""What a message costs in the heart of Nightmail: the fold, the log, the checkpoint.

    python -m bench.heart                            everything, in a few minutes
    python -m bench.heart --scenarios busy,crowd
    python -m bench.heart --quick                    small sizes: does it run at all?
    python -m bench.heart --full                     10 million messages, 1 million devices: takes long

A table for people on standard error; the last line on standard output is JSON, a list of one
object per scenario. Fails only if a promise was broken, never because something was slow.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from nightmail.engine.ports import EngineError

from .figures import Figures, as_json, heading, record, row, say
from .measured_node import Broken
from .meter import ACCOUNTS
from .scenario_setup import FULL, QUICK, Settings
from .scenarios import SCENARIOS


def run(names: list[str], settings: Settings) -> list[Figures]:
    """Every scenario in its turn; each shows itself as soon as it is done."""
    results: list[Figures] = []
    say(heading())
    for name in names:
        try:
            for figures in SCENARIOS[name](settings):
                results.append(figures)
                say(row(figures))
        except (Broken, EngineError) as broken:
            results.append(Figures(scenario=name, messages=0, devices=0, broken=str(broken)))
            say(row(results[-1]))
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="some of: " + ", ".join(SCENARIOS))
    parser.add_argument("--messages", type=int, help="measured per scenario")
    parser.add_argument("--history", type=int, help="messages of the past in `history`")
    parser.add_argument("--known", type=int, help="devices in `known`")
    parser.add_argument("--folder", help="where the data folders are made: the disk that is measured")
    parser.add_argument("--gc", choices=("server", "default", "off"), default="server", help="how Python collects")
    parser.add_argument("--record", action="store_true", help="append the results to bench/results.jsonl")
    parser.add_argument("--profile", choices=ACCOUNTS, help="show where one account's time goes; makes it slower")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes")
    size.add_argument("--full", action="store_true", help="the sizes that were promised; takes long")
    options = parser.parse_args(arguments)

    names = [name for name in str(options.scenarios).split(",") if name]
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    settings = QUICK if options.quick else FULL if options.full else Settings()
    chosen = {name: getattr(options, name) for name in ("messages", "history", "known", "folder", "gc", "profile")}
    settings = msgspec.structs.replace(settings, **{name: value for name, value in chosen.items() if value is not None})
    results = run(names, settings)
    if options.record:
        record(results, msgspec.to_builtins(settings))
    print(as_json(results))
    return 1 if any(figures.broken for figures in results) else 0


if __name__ == "__main__":
    sys.exit(main())
