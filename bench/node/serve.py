"""The server's own entry, for trees without a command line: settings from the environment, then serve."""

from __future__ import annotations

import os
import sys

from nightmail.server.config import load
from nightmail.server.process import run

if __name__ == "__main__":
    sys.exit(run(load(environ=os.environ).config))
