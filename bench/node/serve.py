"""Starts the server under a profiler, to see where its time goes; or with a fold that comes next."""

from __future__ import annotations

import os
import sys
import time
from cProfile import Profile

from nightmail.core.state import NEWEST_FOLD
from nightmail.server.config import load
from nightmail.server.process import run

PROFILE = "BENCH_PROFILE"
"""Names the file that a profile goes to."""
FOLD = "BENCH_FOLD"
"""The version to fold with, if it is not the newest."""


def main() -> int:
    config = load(environ=os.environ).config
    fold = int(os.environ.get(FOLD, NEWEST_FOLD))
    if not (file := os.environ.get(PROFILE)):
        return run(config, newest_fold=fold)
    # CPU time of the one thread that does most: waiting for a busy machine is no cost of ours.
    profiler = Profile(time.thread_time)
    try:
        return profiler.runcall(run, config, newest_fold=fold)
    finally:
        profiler.dump_stats(file)


if __name__ == "__main__":
    sys.exit(main())
