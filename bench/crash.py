"""A node that is killed in the middle of its work: `python -m bench.crash FOLDER MESSAGES SAVES`.

With SAVES 1 it takes checkpoints as usual, with 0 it takes none. Before the end it prints, as JSON, what it had
answered; then it ends as `kill -9` would end it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits

from .measured_node import Rig
from .scenario_setup import Settings, Stage

DEVICES = 50
NEVER = 1 << 40


def main(folder: str, messages: int, *, saves: bool) -> None:
    """Never returns."""
    never = SaverLimits(checkpoint_rows=NEVER, checkpoint_notes=NEVER, checkpoint_bytes=NEVER, checkpoint_ms=NEVER)
    rig = Rig(Path(folder), None if saves else LoopLimits(unsaved_rows=NEVER, saver=never))
    rig.loop.recover()
    at = Stage("crash", rig, Settings())
    at.register(DEVICES)
    clients = at.clients
    for talk in at.pair_up(at.devices):
        clients.begin(talk, messages)
    while clients.delivered < messages:
        clients.turn()
    print(json.dumps({"answered": clients.answered, "delivered": clients.delivered, "last": rig.log.last}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), saves=sys.argv[3] == "1")
