"""A node as a process of its own, as `nightmail serve` runs it.

    python -m tests.server.serve FOLDER [section.key=value …]

Prints its port when it can be connected to.
"""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

from nightmail.server.config import load
from nightmail.server.process import run
from tests.server.rig import SMALL


def main() -> None:
    folder, *settings = sys.argv[1:]
    flags = SMALL | {"data.folder": folder} | dict(each.split("=", 1) for each in settings)
    sys.exit(run(load(flags=flags).config, lambda node: print(urlsplit(node.url).port, flush=True)))


if __name__ == "__main__":
    main()
